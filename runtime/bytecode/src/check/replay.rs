//! Replays the instructions over registers that hold layout, level and scale.

use super::error::Fault;
use super::header::header;
use super::keys::Keys;
use super::outline::Outline;
use super::registers::{Registers, bounded};
use super::steps::Trace;
use super::{CheckError, CheckErrors, MAX_ERRORS, Parts, Place, plain_repeat};
use crate::ids::{CtRange, LayerId, LayoutId, MapId, TensorId};
use crate::layout::Layout;
use crate::linear::{LinearOp, Pairing};
use crate::params::{Level, Params};
use crate::program::{LayerSpec, Op, Port, ProgramSpec, RotationKey, SegmentKeys, batch};
use crate::rotation::Rotation;
use crate::scale::Scale;
use std::collections::BTreeMap;

/// Characters of a layer's name that an error repeats.
const MAX_NAME: usize = 80;
/// Bits by which a value may exceed what calibration saw.
const SAFETY_BITS: f64 = 1.5;

/// Bits that a number may have at the scale that it is encoded at. Doubles hold 1024: encoding adds some.
const MAX_ENCODED_BITS: f64 = 960.0;

/// What is known of a tensor in registers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fact {
    /// Its layout.
    pub layout: LayoutId,
    /// Its level.
    pub level: Level,
    /// Its scale.
    pub scale: Scale,
    /// Tensors of this layout in the run, one after the other.
    pub lanes: u32,
}

/// The outcome of a replay without faults.
pub(super) struct Replayed {
    pub(super) trace: Trace,
    pub(super) output: Fact,
    pub(super) keys: Keys,
}

/// Replays everything but the list of keys.
pub(super) fn replay(
    spec: &ProgramSpec,
    Parts { params, layouts, maps }: &Parts,
) -> Result<Replayed, CheckErrors> {
    let mut replay = Replay {
        spec,
        params,
        layouts,
        maps,
        peaks: spec.constants.peaks(),
        registers: Registers::default(),
        map_levels: vec![vec![None; params.lower().len() + 1]; maps.len()],
        relin: vec![None; params.lower().len() + 1],
        entries: vec![None; params.lower().len() + 1],
        has_input: false,
        output: None,
    };
    let mut errors = Vec::new();
    let mut fault = |place, fault: Fault| {
        if errors.len() < MAX_ERRORS {
            errors.push(CheckError::at(place, fault));
        }
    };
    header(spec, layouts).into_iter().for_each(|f| fault(Place::Header, f));
    let mut trace = Trace::default();
    for (index, instruction) in spec.instructions.iter().enumerate() {
        let place = Place::Instruction(index);
        if instruction.layer.index() >= spec.layers.len() {
            fault(place, Fault::NoLayer(instruction.layer));
        }
        if replay.output.is_some() && !matches!(instruction.op, Op::Free { .. }) {
            fault(place, Fault::AfterOutput);
        }
        trace.sources.extend(instruction.op.sources().iter().filter_map(|src| replay.read_lanes(*src).ok()));
        trace.source_ends.push(trace.sources.len());
        let fact = replay.step(&instruction.op);
        trace.results.push(fact.as_ref().ok().copied().flatten());
        let headroom = |fact: &Fact| replay.headroom(instruction.layer, *fact);
        if let Some(missing) = fact.as_ref().ok().and_then(|fact| fact.as_ref().and_then(headroom)) {
            fault(place, missing);
        }
        if let Err(error) = fact {
            fault(place, error);
        }
    }
    for (present, what) in [(replay.has_input, "input"), (replay.output.is_some(), "output")] {
        if !present {
            fault(Place::End, Fault::Absent(what));
        }
    }
    if let Some((first, more)) = replay.registers.leaked() {
        fault(Place::End, Fault::Leaked(format!("c{first} and {more} more")));
    }
    let keys = replay.keys();
    match (errors.is_empty(), replay.output) {
        (true, Some(output)) => Ok(Replayed { trace, output, keys }),
        _ => Err(CheckErrors::new(errors)),
    }
}

struct Replay<'a> {
    spec: &'a ProgramSpec,
    params: &'a Params,
    layouts: &'a [Layout],
    maps: &'a [Outline],
    /// The largest magnitude of every tensor.
    peaks: Vec<f64>,
    registers: Registers,
    /// Highest level at which a map is used, in every segment.
    map_levels: Vec<Vec<Option<Level>>>,
    /// Highest level of a relinearization, in every segment.
    relin: Vec<Option<Level>>,
    /// Highest level at which every segment is entered.
    entries: Vec<Option<Level>>,
    has_input: bool,
    output: Option<Fact>,
}

impl Replay<'_> {
    /// Effect of one instruction; the fact of what it defines.
    fn step(&mut self, op: &Op) -> Result<Option<Fact>, Fault> {
        let fact = match op {
            Op::Input { dst } => {
                if std::mem::replace(&mut self.has_input, true) {
                    return Err(Fault::SecondInput);
                }
                let input = &self.spec.input;
                let lanes = self.lanes(input.layout, &input.ports, *dst)?;
                let (level, max) = (input.level, self.params.max_level());
                if level > max {
                    return Err(Fault::AboveChain { level, max });
                }
                Fact { layout: input.layout, level: input.level, scale: input.scale, lanes }
            }
            Op::Linear { src, map, scale, .. } => self.linear(src, *map, *scale)?,
            Op::Square { src, .. } => self.product(*src, *src)?,
            Op::Mul { a, b, .. } => self.product(*a, *b)?,
            Op::Add { a, b, .. } | Op::Sub { a, b, .. } => {
                let (a, b) = self.aligned(*a, *b)?;
                if !a.scale.agrees(b.scale) {
                    return Err(Fault::Scales(a.scale, b.scale));
                }
                a
            }
            Op::AddPlain { src, tensor, .. } => {
                let fact = self.read(*src)?;
                self.constant(*tensor, fact.layout)?;
                encodable(self.peak(*tensor), fact.scale)?;
                fact
            }
            Op::MulPlain { src, tensor, scale, .. } => {
                let fact = self.read(*src)?;
                self.constant(*tensor, fact.layout)?;
                encodable(self.peak(*tensor), scale.over(fact.scale))?;
                times_plain(fact, *scale)?
            }
            Op::MulScalar { src, value, scale, .. } => {
                if !value.is_finite() {
                    return Err(Fault::NotFinite);
                }
                let fact = self.read(*src)?;
                encodable(value.abs(), scale.over(fact.scale))?;
                times_plain(fact, *scale)?
            }
            Op::Rescale { src, .. } => {
                let fact = self.read(*src)?;
                let level = fact.level.lower().ok_or(Fault::NoTower)?;
                let division = self.params.rescale(fact.level, level).ok_or(Fault::NoTower)?;
                self.enter(fact.level, level);
                Fact { level, scale: division.rescaled(self.params.towers(), fact.scale), ..fact }
            }
            Op::Drop { src, level, .. } => {
                let fact = self.read(*src)?;
                if *level > fact.level {
                    return Err(Fault::DropUp { from: fact.level, to: *level });
                }
                let division = self.params.drop(fact.level, *level);
                self.enter(fact.level, *level);
                let scale = division.map_or(fact.scale, |d| d.rescaled(self.params.towers(), fact.scale));
                Fact { level: *level, scale, ..fact }
            }
            Op::Free { src } => {
                self.free(*src)?;
                return Ok(None);
            }
            Op::Output { src } => {
                let fact = self.read(*src)?;
                if self.layout(fact.layout)? != self.layout(self.spec.output.layout)? {
                    return Err(Fault::Layouts);
                }
                self.lanes(fact.layout, &self.spec.output.ports, *src)?;
                self.output = Some(fact);
                self.free(*src)?;
                return Ok(None);
            }
        };
        if let Some(dst) = op.dst() {
            self.define(dst, fact)?;
        }
        Ok(Some(fact))
    }

    fn linear(&mut self, src: &[CtRange], map: MapId, scale: Scale) -> Result<Fact, Fault> {
        let missing = || Fault::Missing { what: format!("map {map}") };
        let index = map.index();
        let pairing = self.maps.get(index).ok_or_else(missing)?.pairing;
        let map = self.spec.maps.get(index).ok_or_else(missing)?;
        if src.len() != map.terms.len() {
            return Err(Fault::Terms { found: src.len(), needed: map.terms.len() });
        }
        let mut level = None;
        let mut lanes = None;
        for (range, term) in src.iter().zip(&map.terms) {
            let fact = self.read_lanes(*range)?;
            let first = *lanes.get_or_insert(fact.lanes);
            if first != fact.lanes {
                return Err(Fault::Lanes(first, fact.lanes));
            }
            if self.layout(fact.layout)? != self.layout(term.input)? {
                return Err(Fault::Layouts);
            }
            // Weights are encoded at no less than one, also where pairing halves their scale.
            let weight_scale = pairing.weight_scale(scale, fact.scale);
            times_plain(fact, weight_scale.times(fact.scale))?;
            let peak = match &term.op {
                LinearOp::Conv2d { weight, .. } | LinearOp::Dense { weight } => self.peak(*weight),
                LinearOp::SumPool { factor, .. } => factor.abs(),
                LinearOp::Pick { factors, .. } => factors.map_or(1.0, |factors| self.peak(factors)),
            };
            encodable(peak, weight_scale)?;
            let first = *level.get_or_insert(fact.level);
            if first != fact.level {
                return Err(Fault::Levels(first, fact.level));
            }
        }
        let level = level.ok_or(Fault::Terms { found: 0, needed: 1 })?;
        let highest = &mut self.map_levels[index][self.params.segment(level)];
        *highest = (*highest).max(Some(level));
        Ok(Fact { layout: map.output, level, scale, lanes: lanes.unwrap_or(1) })
    }

    /// A way down leads through all segments between, those of a smaller ring by their keys.
    fn enter(&mut self, from: Level, to: Level) {
        for segment in self.params.segment(from) + 1..=self.params.segment(to) {
            if self.params.lower()[segment - 1].entry().is_some() {
                self.entries[segment] = self.entries[segment].max(Some(to));
            }
        }
    }

    fn keys(&self) -> Keys {
        let SegmentKeys { rotations, relin, conjugation, .. } = self.segment_keys(0);
        let lower = (1..self.relin.len()).map(|segment| self.segment_keys(segment)).collect();
        Keys { rotations, relin, conjugation, lower }
    }

    /// Every map needs its rotations, and its conjugation, at the highest level of a segment that it is used at.
    fn segment_keys(&self, segment: usize) -> SegmentKeys {
        let mut rotations: BTreeMap<Rotation, Level> = BTreeMap::new();
        let mut conjugation = None;
        for (map, levels) in self.maps.iter().zip(&self.map_levels) {
            let Some(level) = levels[segment] else { continue };
            for &rotation in &map.rotations {
                let highest = rotations.entry(rotation).or_insert(level);
                *highest = level.max(*highest);
            }
            if map.pairing != Pairing::None {
                conjugation = conjugation.max(Some(level));
            }
        }
        let rotations = rotations.into_iter().map(|(rotation, level)| RotationKey { rotation, level });
        let (entry, relin) = (self.entries[segment], self.relin[segment]);
        SegmentKeys { entry, rotations: rotations.collect(), relin, conjugation }
    }

    fn product(&mut self, a: CtRange, b: CtRange) -> Result<Fact, Fault> {
        let (a, b) = self.aligned(a, b)?;
        let highest = &mut self.relin[self.params.segment(a.level)];
        *highest = (*highest).max(Some(a.level));
        Ok(Fact { scale: a.scale.times(b.scale), ..a })
    }

    /// Two tensors of one layout and level.
    fn aligned(&self, a: CtRange, b: CtRange) -> Result<(Fact, Fact), Fault> {
        let (a, b) = (self.read(a)?, self.read(b)?);
        if self.layout(a.layout)? != self.layout(b.layout)? {
            return Err(Fault::Layouts);
        }
        if a.level != b.level {
            return Err(Fault::Levels(a.level, b.level));
        }
        if a.lanes != b.lanes {
            return Err(Fault::Lanes(a.lanes, b.lanes));
        }
        Ok((a, b))
    }

    fn layout(&self, id: LayoutId) -> Result<&Layout, Fault> {
        self.layouts.get(id.index()).ok_or_else(|| Fault::Missing { what: format!("layout {id}") })
    }

    /// Checks a constant by its length: nothing is spread out.
    fn constant(&self, tensor: TensorId, layout: LayoutId) -> Result<(), Fault> {
        let tensor =
            self.spec.constants.tensor(tensor).map_err(|error| Fault::Constant(error.to_string()))?;
        plain_repeat(tensor.members as usize, tensor.len(), &tensor.shape, self.layout(layout)?)
            .map(drop)
            .map_err(Fault::Constant)
    }

    /// The largest magnitude of a tensor that exists.
    fn peak(&self, tensor: TensorId) -> f64 {
        self.peaks.get(tensor.index()).copied().unwrap_or(0.0)
    }

    fn read(&self, range: CtRange) -> Result<Fact, Fault> {
        self.registers.read(range)
    }

    /// As [`Self::read`], for a map, which may take some of the lanes of a run.
    fn read_lanes(&self, range: CtRange) -> Result<Fact, Fault> {
        let (offset, fact) = self.registers.read_part(range)?;
        let each = self.layout(fact.layout)?.n_cts();
        let is_whole = (offset as usize).is_multiple_of(each) && range.len().is_multiple_of(each);
        match u32::try_from(range.len() / each) {
            Ok(lanes) if is_whole => Ok(Fact { lanes, ..fact }),
            _ => Err(Fault::NotATensor(range)),
        }
    }

    /// Lanes of an input or output whose ports tell a batch.
    fn lanes(&self, layout: LayoutId, ports: &[Port], run: CtRange) -> Result<u32, Fault> {
        bounded(run)?;
        let layout = self.layout(layout)?;
        let lanes = layout.lanes(batch(ports, layout.shape().len()));
        let needed = layout.n_cts().saturating_mul(lanes);
        match u32::try_from(lanes) {
            Ok(lanes) if run.len() == needed => Ok(lanes),
            _ => Err(Fault::Length { found: run.len(), needed }),
        }
    }

    fn define(&mut self, dst: CtRange, fact: Fact) -> Result<(), Fault> {
        bounded(dst)?;
        let needed = self.layout(fact.layout)?.n_cts().saturating_mul(fact.lanes as usize);
        if dst.len() != needed {
            return Err(Fault::Length { found: dst.len(), needed });
        }
        let (period, slots) = (self.layout(fact.layout)?.period(), self.params.at(fact.level).slots());
        if period > slots {
            return Err(Fault::Period { period, slots, level: fact.level });
        }
        self.registers.define(dst, fact)?;
        // Below one, values would be less than their rounding, and products of scales could leave the range of numbers.
        if fact.scale.value() < 1.0 {
            return Err(Fault::Underflow(fact.scale));
        }
        let log2_q = self.params.log2_q_at(fact.level);
        if fact.scale.log2() >= log2_q {
            return Err(Fault::Overflow { scale: fact.scale, log2_q, level: fact.level });
        }
        Ok(())
    }

    /// What is missing between the values of a layer and half the modulus, which they must not reach.
    fn headroom(&self, layer: LayerId, fact: Fact) -> Option<Fault> {
        let LayerSpec { name, peak, .. } = self.spec.layers.get(layer.index())?;
        if peak.is_nan() || *peak <= 0.0 {
            return None;
        }
        let log2_q = self.params.log2_q_at(fact.level);
        let missing = fact.scale.log2() + peak.log2() + SAFETY_BITS + 1.0 - log2_q;
        let Fact { scale, level, .. } = fact;
        let name = name.chars().take(MAX_NAME).collect();
        (missing > 0.0).then_some(Fault::Headroom { layer, name, peak: *peak, scale, log2_q, level, missing })
    }

    fn free(&mut self, range: CtRange) -> Result<(), Fault> {
        self.registers.free(range)
    }
}

/// Refuses numbers that would leave the range of doubles when they are encoded.
fn encodable(peak: f64, scale: Scale) -> Result<(), Fault> {
    let is_small = peak == 0.0 || peak.log2() + scale.log2() <= MAX_ENCODED_BITS;
    if is_small { Ok(()) } else { Err(Fault::Unencodable { peak, scale }) }
}

/// A product with a plaintext of scale at least one, with the scale of the result given.
fn times_plain(fact: Fact, scale: Scale) -> Result<Fact, Fault> {
    if scale.value() < fact.scale.value() && !scale.agrees(fact.scale) {
        return Err(Fault::PlainScale { scale, source_scale: fact.scale });
    }
    Ok(Fact { scale, ..fact })
}
