//! Emission: from a scheduled circuit to the instructions of a program.
//!
//! A value is one run of registers, written once and freed after its last reader. Levels and scales are those of the
//! scheduled values; the checker of the bytecode replays them.

use std::collections::BTreeMap;

use fhe_bytecode::{
    CheckErrors, CheckedProgram, CostModel, CtRange, InputSpec, Instruction, LayerId, LayerSpec, LayoutId,
    Level, LinearMap, LinearTerm, MapId, Op, Origin, OutputSpec, Port, Prediction, Preprocessing,
    ProgramSpec, Tail, required_keys,
};

use crate::layout::{Part, PlacedTerm};
use crate::lower::{CircuitOp, ValueId};
use crate::predict;
use crate::schedule::{PlannedMap, Scheduled};

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
    /// The model's inputs.
    pub input_ports: Vec<Port>,
    /// The model's outputs, as far as they are computed under encryption.
    pub output_ports: Vec<Port>,
    /// The model's outputs that a client computes from those.
    pub tails: Vec<Tail>,
}

/// Writes the program of a scheduled circuit, with what is expected of it under these costs.
///
/// # Errors
/// When the checker finds a fault, which is a bug of this crate.
pub fn emit(scheduled: &Scheduled, costs: &CostModel, labels: Labels) -> Result<CheckedProgram, CheckErrors> {
    let circuit = scheduled.placed.circuit();
    let mut emitter = Emitter::new(scheduled);
    for id in circuit.ids() {
        emitter.value(id);
    }
    let output = circuit.outputs[0];
    emitter.push(Op::Output { src: emitter.registers[output.index()].expect("the output was computed") });
    let input = circuit.inputs()[0];
    let mut spec = ProgramSpec {
        params: scheduled.schedule.params.spec().clone(),
        origin: labels.origin,
        input: InputSpec {
            name: labels.input,
            layout: emitter.layout_ids[input.index()],
            level: scheduled.value(input).level,
            scale: scheduled.value(input).scale,
            preprocessing: labels.preprocessing,
            range: Some(scheduled.input_range),
            ports: labels.input_ports,
        },
        output: OutputSpec {
            name: labels.output,
            layout: emitter.layout_ids[output.index()],
            labels: labels.classes,
            range: Some(scheduled.output_range),
            ports: labels.output_ports,
            tails: labels.tails,
        },
        layouts: emitter.layouts,
        constants: scheduled.placed.constants.clone(),
        maps: emitter.maps,
        layers: emitter.layers,
        instructions: emitter.instructions,
        rotation_keys: Vec::new(),
        relin_level: None,
        conjugation_level: None,
        lower_keys: Vec::new(),
        prediction: Prediction::default(),
    };
    let keys = required_keys(&spec)?;
    spec.rotation_keys = keys.rotations;
    spec.relin_level = keys.relin;
    spec.conjugation_level = keys.conjugation;
    spec.lower_keys = keys.lower;
    let worst_error = scheduled.schedule.worst_error;
    CheckedProgram::with_prediction(spec, |program| predict::predict(program, worst_error, costs))
}

struct Emitter<'a> {
    scheduled: &'a Scheduled,
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
    fn new(scheduled: &'a Scheduled) -> Self {
        let circuit = scheduled.placed.circuit();
        let mut layouts: Vec<fhe_bytecode::LayoutSpec> = Vec::new();
        let mut layout_ids = Vec::with_capacity(circuit.values.len());
        for id in circuit.ids() {
            let layout = scheduled.placed.layout(id).spec();
            let known = layouts.iter().position(|l| l == layout);
            layout_ids.push(LayoutId(known.unwrap_or(layouts.len()) as u32));
            if known.is_none() {
                layouts.push(layout.clone());
            }
        }
        Self {
            scheduled,
            layouts,
            layout_ids,
            maps: Vec::new(),
            layers: Vec::new(),
            instructions: Vec::new(),
            registers: vec![None; circuit.values.len()],
            next_register: 0,
            pending: circuit.use_counts(),
        }
    }

    fn push(&mut self, op: Op) {
        let layer = LayerId(self.layers.len().saturating_sub(1) as u32);
        self.instructions.push(Instruction { layer, op });
    }

    fn fresh(&mut self, id: ValueId) -> CtRange {
        let n_cts = self.scheduled.placed.value(id).n_cts() as u32;
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

    fn value(&mut self, id: ValueId) {
        let value = self.scheduled.placed.circuit().value(id);
        let (peak, error) = (self.scheduled.value(id).peak, self.scheduled.value(id).error);
        self.layers.push(LayerSpec { name: value.name.clone(), peak, error, ..LayerSpec::default() });
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
            CircuitOp::Affine(_) => self.affine(id),
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
    fn affine(&mut self, id: ValueId) -> CtRange {
        let (scheduled, placed) = (self.scheduled, self.scheduled.placed.value(id));
        let mut sum: Option<CtRange> = None;
        for part in &scheduled.value(id).parts {
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
        for &source in &placed.still {
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
        match placed.bias {
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

    fn part(&mut self, id: ValueId, part: &Part<PlannedMap>) -> CtRange {
        let value = self.scheduled.value(id);
        let (level, scale) = (value.working, value.raw);
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
            Part::Map(PlannedMap { map, plan }) => {
                let mut runs: BTreeMap<ValueId, CtRange> = BTreeMap::new();
                for source in map.sources() {
                    let at_level = || self.at_level(source, level, &mut dropped);
                    runs.entry(source).or_insert_with(at_level);
                }
                let placed = &self.scheduled.placed;
                // As many lanes of every operand as the result has.
                let part = |term: &PlacedTerm| {
                    let len = (placed.value(id).lanes * placed.layout(term.source).n_cts()) as u32;
                    CtRange::new(runs[&term.source].first.0 + term.part * len, len)
                };
                let src: Vec<CtRange> = map.terms.iter().map(part).collect();
                dst = self.fresh(id);
                let term = |term: &PlacedTerm| LinearTerm {
                    op: term.op.clone(),
                    input: self.layout_ids[term.source.index()],
                };
                let terms = map.terms.iter().map(term).collect();
                let map_id = MapId(self.maps.len() as u32);
                let (output, pairing) = (self.layout_ids[id.index()], map.diagonals.pairing());
                self.maps.push(LinearMap { terms, output, pairing, plan: plan.clone() });
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
        if self.scheduled.value(source).level == level {
            return src;
        }
        let dst = self.fresh(source);
        self.push(Op::Drop { dst, src, level });
        dropped.push(dst);
        dst
    }

    /// The value after its rescale, if it has one.
    fn rescaled(&mut self, id: ValueId, src: CtRange) -> CtRange {
        if !self.scheduled.placed.is_rescaled(id) {
            return src;
        }
        let dst = self.fresh(id);
        self.push(Op::Rescale { dst, src });
        self.free(src);
        dst
    }
}
