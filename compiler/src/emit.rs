//! Emission: from a scheduled circuit to the instructions of a program.
//!
//! A value is one run of registers, written once and freed after its last reader. Levels and scales are implied by the
//! positions; the checker of the bytecode replays them.

use fhe_bytecode::{
    CheckErrors, CheckedProgram, CtRange, InputSpec, Instruction, Interval, LayerId, LayerSpec, LayoutId,
    Level, LinearMap, LinearTerm, MapId, Op, Origin, OutputSpec, Plan, Prediction, Preprocessing,
    ProgramSpec, required_keys,
};

use crate::layout::{Part, Placed};
use crate::lower::{CircuitOp, ValueId};
use crate::measure::Stats;
use crate::search::Schedule;
use crate::timed::Positions;

/// Names and preprocessing that a program carries for its users.
#[derive(Clone, Debug, Default)]
pub struct Labels {
    /// Name, producer and packing.
    pub origin: Origin,
    /// Name of the input in the model.
    pub input: String,
    /// Name of the output in the model.
    pub output: String,
    /// How raw images become inputs.
    pub preprocessing: Preprocessing,
    /// Names of the classes.
    pub classes: Vec<String>,
}

/// Writes the program of a scheduled circuit.
///
/// # Errors
/// When the checker finds a fault, which is a bug of this crate.
pub fn emit(
    placed: &Placed,
    positions: &Positions,
    schedule: &Schedule,
    stats: &Stats,
    plans: Vec<Plan>,
    labels: Labels,
) -> Result<CheckedProgram, CheckErrors> {
    let mut emitter = Emitter::new(placed, positions, schedule, plans);
    for id in placed.circuit.ids() {
        emitter.value(id, stats.extent.peak[id.index()]);
    }
    let output = placed.circuit.outputs[0];
    emitter.push(Op::Output { src: emitter.registers[output.index()].expect("the output was computed") });
    let input = placed.circuit.inputs()[0];
    let mut spec = ProgramSpec {
        params: schedule.params.spec().clone(),
        origin: labels.origin,
        input: InputSpec {
            name: labels.input,
            layout: emitter.layout_ids[input.index()],
            level: schedule.chain.level(positions.rung(0)),
            scale: schedule.chain.scale(0),
            preprocessing: labels.preprocessing,
            range: Some(interval(stats.extent.input)),
        },
        output: OutputSpec {
            name: labels.output,
            layout: emitter.layout_ids[output.index()],
            labels: labels.classes,
            range: Some(interval(stats.extent.output)),
        },
        layouts: emitter.layouts,
        constants: placed.constants.clone(),
        maps: emitter.maps,
        layers: emitter.layers,
        instructions: emitter.instructions,
        rotation_keys: Vec::new(),
        relin_level: None,
        conjugation_level: None,
        prediction: Prediction::default(),
    };
    let keys = required_keys(&spec)?;
    spec.rotation_keys = keys.rotations;
    spec.relin_level = keys.relin;
    spec.conjugation_level = keys.conjugation;
    CheckedProgram::new(spec)
}

fn interval([low, high]: [f64; 2]) -> Interval {
    Interval { low, high }
}

struct Emitter<'a> {
    placed: &'a Placed,
    positions: &'a Positions,
    schedule: &'a Schedule,
    /// Plans of the maps that have not run yet.
    plans: std::vec::IntoIter<Plan>,
    layouts: Vec<fhe_bytecode::LayoutSpec>,
    layout_ids: Vec<LayoutId>,
    maps: Vec<LinearMap>,
    layers: Vec<LayerSpec>,
    instructions: Vec<Instruction>,
    registers: Vec<Option<CtRange>>,
    next_register: u32,
    /// Readers of each value that have not run yet.
    pending: Vec<usize>,
}

impl<'a> Emitter<'a> {
    fn new(placed: &'a Placed, positions: &'a Positions, schedule: &'a Schedule, plans: Vec<Plan>) -> Self {
        let mut layouts: Vec<fhe_bytecode::LayoutSpec> = Vec::new();
        let mut layout_ids = Vec::with_capacity(placed.layouts.len());
        for layout in &placed.layouts {
            let known = layouts.iter().position(|l| l == layout.spec());
            layout_ids.push(LayoutId(known.unwrap_or(layouts.len()) as u32));
            if known.is_none() {
                layouts.push(layout.spec().clone());
            }
        }
        Self {
            placed,
            positions,
            schedule,
            plans: plans.into_iter(),
            layouts,
            layout_ids,
            maps: Vec::new(),
            layers: Vec::new(),
            instructions: Vec::new(),
            registers: vec![None; placed.circuit.values.len()],
            next_register: 0,
            pending: placed.circuit.use_counts(),
        }
    }

    fn push(&mut self, op: Op) {
        let layer = LayerId(self.layers.len().saturating_sub(1) as u32);
        self.instructions.push(Instruction { layer, op });
    }

    fn fresh(&mut self, id: ValueId) -> CtRange {
        let n_cts = self.placed.layouts[id.index()].n_cts() as u32;
        let range = CtRange::new(self.next_register, n_cts);
        self.next_register += n_cts;
        range
    }

    /// Frees a temporary run.
    fn free(&mut self, src: CtRange) {
        self.push(Op::Free { src });
    }

    fn register(&self, id: ValueId) -> CtRange {
        self.registers[id.index()].expect("operands come first and live until their last reader")
    }

    fn value(&mut self, id: ValueId, peak: f64) {
        let value = self.placed.circuit.value(id);
        self.layers.push(LayerSpec { name: value.name.clone(), peak, ..LayerSpec::default() });
        let result = match &value.op {
            CircuitOp::Input => {
                let dst = self.fresh(id);
                self.push(Op::Input { dst });
                dst
            }
            CircuitOp::Product(factors) => {
                let dst = self.fresh(id);
                let [a, b] = factors.map(|f| self.register(f));
                self.push(if a == b { Op::Square { dst, src: a } } else { Op::Mul { dst, a, b } });
                self.rescaled(id, dst)
            }
            CircuitOp::Affine(affine) => {
                let still: Vec<ValueId> = affine
                    .terms
                    .iter()
                    .filter(|t| self.positions.is_still(t, id))
                    .map(|t| t.source)
                    .collect();
                self.affine(id, &still)
            }
        };
        self.registers[id.index()] = Some(result);
        for source in value.op.sources() {
            self.pending[source.index()] -= 1;
            if self.pending[source.index()] == 0 {
                let src = self.register(source);
                self.free(src);
            }
        }
    }

    /// Sum of the parts at the raw scale, rescaled, plus what needs no multiplication, plus the constant.
    fn affine(&mut self, id: ValueId, still: &[ValueId]) -> CtRange {
        let mut sum: Option<CtRange> = None;
        for part in &self.placed.parts[id.index()] {
            let range = self.part(id, part);
            sum = Some(match sum {
                None => range,
                Some(other) => {
                    let dst = self.fresh(id);
                    self.push(Op::Add { dst, a: other, b: range });
                    self.free(other);
                    self.free(range);
                    dst
                }
            });
        }
        // Registers of other values must not be freed with the temporaries.
        let mut owned = sum.is_some();
        let mut result = sum.map(|range| self.rescaled(id, range));
        for &source in still {
            let range = self.register(source);
            result = Some(match result {
                None => range,
                Some(other) => {
                    let dst = self.fresh(id);
                    self.push(Op::Add { dst, a: other, b: range });
                    if owned {
                        self.free(other);
                    }
                    owned = true;
                    dst
                }
            });
        }
        let result = result.expect("a sum has a summand");
        match self.placed.biases[id.index()] {
            None => result,
            Some(tensor) => {
                let dst = self.fresh(id);
                self.push(Op::AddPlain { dst, src: result, tensor });
                if owned {
                    self.free(result);
                }
                dst
            }
        }
    }

    fn part(&mut self, id: ValueId, part: &Part) -> CtRange {
        let position = self.positions.of(id);
        let level = self.schedule.chain.level(self.positions.working_rung(position));
        let scale = self.schedule.chain.raw(position);
        let mut dropped = Vec::new();
        let dst;
        match part {
            Part::Scalar { source } => {
                let src = self.at_level(*source, level, &mut dropped);
                dst = self.fresh(id);
                self.push(Op::MulScalar { dst, src, value: 1.0, scale });
            }
            Part::Plain { source, factor } => {
                let src = self.at_level(*source, level, &mut dropped);
                dst = self.fresh(id);
                self.push(Op::MulPlain { dst, src, tensor: *factor, scale });
            }
            Part::Map(map) => {
                let src: Vec<CtRange> =
                    map.sources.iter().map(|&s| self.at_level(s, level, &mut dropped)).collect();
                dst = self.fresh(id);
                let terms = map.ops.iter().zip(&map.sources);
                let terms = terms
                    .map(|(op, s)| LinearTerm { op: op.clone(), input: self.layout_ids[s.index()] })
                    .collect();
                let plan = self.plans.next().unwrap_or_else(|| Plan::trivial(&map.diagonals));
                let map_id = MapId(self.maps.len() as u32);
                let (output, pairing) = (self.layout_ids[id.index()], map.diagonals.pairing());
                self.maps.push(LinearMap { terms, output, pairing, plan });
                self.push(Op::Linear { dst, src, map: map_id, scale });
            }
        }
        for range in dropped {
            self.free(range);
        }
        dst
    }

    /// The registers of a value at a level, dropped if it has more towers.
    fn at_level(&mut self, source: ValueId, level: Level, dropped: &mut Vec<CtRange>) -> CtRange {
        let src = self.register(source);
        let rung = self.positions.rung(self.positions.of(source));
        if self.schedule.chain.level(rung) == level {
            return src;
        }
        let dst = self.fresh(source);
        self.push(Op::Drop { dst, src, level });
        dropped.push(dst);
        dst
    }

    /// The value after its rescale, if its position has one: a division by every tower of the rung.
    fn rescaled(&mut self, id: ValueId, src: CtRange) -> CtRange {
        let position = self.positions.of(id);
        if !self.positions.is_boundary(position) {
            return src;
        }
        let mut result = src;
        for _ in self.schedule.chain.divisors(self.positions.working_rung(position)) {
            let dst = self.fresh(id);
            self.push(Op::Rescale { dst, src: result });
            self.free(result);
            result = dst;
        }
        result
    }
}
