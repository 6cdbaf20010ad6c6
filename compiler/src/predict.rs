//! Predictions about a program: time, memory and error, in all and layer by layer.

use std::collections::{BTreeMap, BTreeSet};

use fhe_bytecode::{
    CheckedProgram, CostModel, Diagonals, ExpandedPlan, Level, MapId, Op, Params, PlaintextKey, Prediction,
    Rotation,
};

use crate::schedule::Schedule;

/// Deviations of the error that no result is expected to exceed.
pub const ERROR_DEVIATIONS: f64 = 6.0;

/// Fills in the predictions of a program; `layer_errors` has the deviation of every layer's own noise in the results.
pub fn predict(program: &mut CheckedProgram, schedule: &Schedule, layer_errors: &[f64], costs: &CostModel) {
    let params = program.params();
    let mut prediction =
        Prediction { max_abs_error: ERROR_DEVIATIONS * schedule.error, ..Prediction::default() };
    let mut layers: Vec<(f64, f64)> = layer_errors.iter().map(|&error| (0.0, error)).collect();
    for (index, instruction) in program.spec().instructions.iter().enumerate() {
        let level = working_level(program, index);
        let step = costs.at(params, level);
        let n_cts = instruction.op.dst().map_or(0, |dst| dst.len()) as f64;
        let seconds = match &instruction.op {
            Op::Linear { map, .. } => {
                let use_of = plaintexts(program, *map, level);
                prediction.encode_seconds += step.encode(use_of.count, use_of.period);
                prediction.plaintext_bytes += use_of.bytes;
                step.linear(&program.map(*map).plan.counts())
            }
            Op::Square { .. } | Op::Mul { .. } => n_cts * step.product,
            Op::Rescale { .. } => n_cts * step.rescale,
            Op::Input { .. }
            | Op::Add { .. }
            | Op::Sub { .. }
            | Op::AddPlain { .. }
            | Op::MulPlain { .. }
            | Op::MulScalar { .. }
            | Op::Drop { .. }
            | Op::Free { .. }
            | Op::Output { .. } => 0.0,
        };
        prediction.seconds += seconds;
        layers[instruction.layer.index()].0 += seconds;
    }
    let spec = program.spec();
    let keys = spec.rotation_keys.iter().map(|k| k.level);
    let keys = keys.chain(spec.relin_level).chain(spec.conjugation_level);
    prediction.key_bytes = keys.map(|level| params.key_bytes(level)).sum();
    prediction.ciphertext_bytes = live_ciphertext_bytes(program).into_iter().max().unwrap_or(0);
    program.set_predictions(prediction, &layers);
}

/// Distinct plaintexts of a linear map.
#[derive(Clone, Copy, Debug)]
pub struct PlaintextUse {
    /// How many.
    pub count: usize,
    /// Slots after which each repeats.
    pub period: usize,
    /// Bytes of all of them, encoded over the towers of the level and the special primes.
    pub bytes: u64,
}

impl PlaintextUse {
    /// What the plaintexts of a planned map take at a level.
    #[must_use]
    pub fn new(diagonals: &Diagonals, plan: &ExpandedPlan, params: &Params, level: Level) -> Self {
        let mut distinct: BTreeSet<(PlaintextKey, Rotation)> = BTreeSet::new();
        for group in &plan.groups {
            distinct.extend(group.terms.iter().map(|t| (diagonals.key(t.diagonal), group.giant)));
        }
        let period = diagonals.period();
        let towers = level.n_towers() + params.special_primes().len();
        let bytes = (distinct.len() * 2 * period * towers * 8) as u64;
        Self { count: distinct.len(), period, bytes }
    }
}

/// What the plaintexts of a map of a program take at a level.
#[must_use]
pub fn plaintexts(program: &CheckedProgram, map: MapId, level: Level) -> PlaintextUse {
    let checked = program.map(map);
    PlaintextUse::new(&checked.diagonals, &checked.plan, program.params(), level)
}

/// Bytes of rotated inputs and sums while a map is evaluated at a level.
#[must_use]
pub fn working_bytes(params: &Params, plan: &ExpandedPlan, level: Level) -> u64 {
    let pair = 2 * 8 * (level.n_towers() + params.special_primes().len()) * params.n();
    (pair * plan.working_pairs(params.n_digits(level))) as u64
}

/// The level an instruction works at: that of its result, one more for a rescale.
fn working_level(program: &CheckedProgram, index: usize) -> Level {
    let level = program.fact(index).map_or(Level(0), |fact| fact.level);
    match program.spec().instructions[index].op {
        Op::Rescale { .. } => Level(level.0 + 1),
        _ => level,
    }
}

/// Bytes of the ciphertexts alive while each instruction runs, with the rotated inputs and sums inside it.
#[must_use]
pub fn live_ciphertext_bytes(program: &CheckedProgram) -> Vec<u64> {
    let mut alive: BTreeMap<u32, u64> = BTreeMap::new();
    let mut now = 0;
    let mut live = Vec::with_capacity(program.spec().instructions.len());
    for (index, instruction) in program.spec().instructions.iter().enumerate() {
        if let (Some(dst), Some(fact)) = (instruction.op.dst(), program.fact(index)) {
            let bytes = (2 * fact.level.n_towers() * program.params().n() * 8) as u64;
            for register in dst.iter() {
                alive.insert(register.0, bytes);
                now += bytes;
            }
        }
        let within = match (&instruction.op, program.fact(index)) {
            (Op::Linear { map, .. }, Some(fact)) => {
                working_bytes(program.params(), &program.map(*map).plan, fact.level)
            }
            _ => 0,
        };
        live.push(now + within);
        if let Op::Free { src } | Op::Output { src } = &instruction.op {
            now -= src.iter().filter_map(|register| alive.remove(&register.0)).sum::<u64>();
        }
    }
    live
}
