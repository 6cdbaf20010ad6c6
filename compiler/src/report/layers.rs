//! The layers of a program as people look at them: where each is computed, what it takes, and what noise it adds.
//!
//! Everything here is read off the checked program, so a program file tells as much as a fresh build.

use std::collections::BTreeMap;

use fhe_bytecode::{CheckedProgram, CtRange, Kind, Level, Op};

use crate::predict::plaintexts;

/// What a layer mainly does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayerKind {
    /// Takes the encrypted input.
    Input,
    /// Multiplies by constants.
    Linear,
    /// Multiplies encrypted values.
    Product,
    /// Adds.
    Sum,
}

/// One layer of a program.
#[derive(Clone, Debug)]
pub struct Layer {
    /// Position among the layers of the program.
    pub index: usize,
    /// Name in the model.
    pub name: String,
    /// What it mainly does.
    pub kind: LayerKind,
    /// Level of the result.
    pub level: Level,
    /// Which multiplication of its level comes next, from one.
    pub sublevel: u32,
    /// Scale of the result in bits.
    pub scale_bits: f64,
    /// Extents of the result.
    pub shape: String,
    /// Ciphertexts of the result.
    pub ciphertexts: usize,
    /// Share of their slots that hold a number of their own.
    pub slots_used: f64,
    /// Operations and plaintexts.
    pub work: LayerWork,
    /// Predicted seconds on one core.
    pub seconds: f64,
    /// Most bytes of ciphertexts alive while it runs.
    pub ciphertext_bytes: u64,
    /// Deviation of its own noise in the results.
    pub error: f64,
    /// Its share of the variance of the results.
    pub error_share: f64,
    /// The layers it reads, as positions in this list.
    pub operands: Vec<usize>,
}

/// Operations and plaintexts of a layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LayerWork {
    /// Rotations, hoisted or not.
    pub rotations: usize,
    /// Products with plaintexts.
    pub plaintext_products: usize,
    /// Distinct plaintexts of its maps.
    pub plaintexts: usize,
    /// Bytes of these, encoded.
    pub plaintext_bytes: u64,
    /// Products of ciphertexts.
    pub ciphertext_products: usize,
}

impl Layer {
    /// Level and sublevel, as `L5.1`.
    #[must_use]
    pub fn at(&self) -> String {
        format!("{}.{}", self.level, self.sublevel)
    }

    /// Bytes it needs beside the keys.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.ciphertext_bytes + self.work.plaintext_bytes
    }
}

/// Operations and plaintexts of every layer.
#[must_use]
pub(super) fn work(program: &CheckedProgram) -> Vec<LayerWork> {
    let mut all = vec![LayerWork::default(); program.spec().layers.len()];
    for step in program.steps() {
        let layer = &mut all[step.instruction.layer.index()];
        match step.op().kind() {
            Kind::Map(map) => {
                let counts = program.map(map).plan.counts();
                let used = plaintexts(program, map, step.level());
                layer.rotations += counts.rotations();
                layer.plaintext_products += counts.terms;
                layer.plaintexts += used.count;
                layer.plaintext_bytes += used.bytes;
            }
            Kind::Product => layer.ciphertext_products += step.op().dst().map_or(0, |dst| dst.len()),
            Kind::Input
            | Kind::PlainSum(_)
            | Kind::PlainProduct(_)
            | Kind::ScalarProduct
            | Kind::Rescale
            | Kind::Drop
            | Kind::Exact
            | Kind::End => {}
        }
    }
    all
}

/// The layers that compute something, in order.
#[must_use]
pub fn layers(program: &CheckedProgram) -> Vec<Layer> {
    let spec = program.spec();
    let variance: f64 = spec.layers.iter().map(|l| l.error * l.error).sum::<f64>().max(f64::MIN_POSITIVE);
    let work = work(program);
    let mut registers = Registers::default();
    let mut found: Vec<Layer> = Vec::new();
    for step in program.steps() {
        let instruction = step.instruction;
        let (Some(dst), Some(fact)) = (instruction.op.dst(), step.result) else { continue };
        let id = instruction.layer.index();
        if found.last().is_none_or(|l| l.index != id) {
            found.push(Layer {
                index: id,
                name: spec.layers[id].name.clone(),
                kind: LayerKind::Sum,
                level: fact.level,
                sublevel: 1,
                scale_bits: 0.0,
                shape: String::new(),
                ciphertexts: 0,
                slots_used: 0.0,
                work: work[id],
                seconds: spec.layers[id].seconds,
                ciphertext_bytes: 0,
                error: spec.layers[id].error,
                error_share: spec.layers[id].error.powi(2) / variance,
                operands: Vec::new(),
            });
        }
        let position = found.len() - 1;
        let sublevel = registers.sublevel(&instruction.op);
        let layer = &mut found[position];
        layer.kind = kind(instruction.op.kind()).unwrap_or(layer.kind);
        for operand in instruction.op.sources().iter().filter_map(|src| registers.maker(*src)) {
            if operand != position && !layer.operands.contains(&operand) {
                layer.operands.push(operand);
            }
        }
        let layout = program.layout(fact.layout);
        (layer.level, layer.sublevel, layer.scale_bits) = (fact.level, sublevel, fact.scale.log2());
        (layer.shape, layer.ciphertexts) = (layout.shape().to_string(), layout.n_cts());
        let all_slots = (layout.n_cts() * layout.slots()).max(1) as f64;
        layer.slots_used = 1.0 - layout.spare_slots() as f64 / all_slots;
        layer.ciphertext_bytes = layer.ciphertext_bytes.max(step.bytes());
        registers.define(dst, position, sublevel);
    }
    found
}

/// What an instruction makes of its layer; nothing if it only prepares or finishes.
fn kind(op: Kind) -> Option<LayerKind> {
    match op {
        Kind::Input => Some(LayerKind::Input),
        Kind::Map(_) | Kind::PlainProduct(_) | Kind::ScalarProduct => Some(LayerKind::Linear),
        Kind::Product => Some(LayerKind::Product),
        Kind::PlainSum(_) | Kind::Rescale | Kind::Drop | Kind::Exact | Kind::End => None,
    }
}

/// Who made the first register of a run, and which multiplication of its level comes next.
#[derive(Default)]
struct Registers(BTreeMap<u32, (usize, u32)>);

impl Registers {
    fn maker(&self, run: CtRange) -> Option<usize> {
        self.0.get(&run.iter().next()?.0).map(|(layer, _)| *layer)
    }

    fn define(&mut self, run: CtRange, layer: usize, sublevel: u32) {
        self.0.extend(run.iter().map(|register| (register.0, (layer, sublevel))));
    }

    /// The sublevel of a result.
    fn sublevel(&self, op: &Op) -> u32 {
        let of = |run: &CtRange| run.iter().next().and_then(|r| self.0.get(&r.0)).map_or(1, |(_, s)| *s);
        let operands = op.sources().iter().map(of).max().unwrap_or(1);
        match op.kind() {
            Kind::Input | Kind::Rescale => 1,
            Kind::Map(_) | Kind::Product | Kind::PlainProduct(_) | Kind::ScalarProduct => operands + 1,
            Kind::PlainSum(_) | Kind::Drop | Kind::Exact | Kind::End => operands,
        }
    }
}
