//! Predictions about a program: time, memory and error, in all and layer by layer.

use std::collections::BTreeSet;

use fhe_bytecode::{
    CheckedProgram, CostModel, Diagonals, ExpandedPlan, Expectation, Kind, Level, MapId, Memory, Params,
    PlaintextKey, Prediction, Rotation,
};

/// Deviations of the error that no result is expected to exceed.
pub const ERROR_DEVIATIONS: f64 = 6.0;

/// What is expected of a program whose worst result has an error of this deviation.
#[must_use]
pub fn predict(program: &CheckedProgram, worst_error: f64, costs: &CostModel) -> Expectation {
    let params = program.params();
    let mut prediction =
        Prediction { max_abs_error: ERROR_DEVIATIONS * worst_error, ..Prediction::default() };
    let mut layer_seconds = vec![0.0; program.spec().layers.len()];
    for step in program.steps() {
        let cost = costs.at(params, step.level());
        let n_cts = step.op().dst().map_or(0, |dst| dst.len()) as f64;
        let seconds = match step.op().kind() {
            Kind::Map(map) => {
                let use_of = plaintexts(program, map, step.level());
                prediction.encode_seconds += cost.encode(use_of.count, use_of.period);
                prediction.plaintext_bytes += use_of.bytes;
                let lanes = step.result.map_or(1, |fact| fact.lanes);
                cost.linear_of_lanes(&program.map(map).plan.counts(), lanes as usize)
            }
            Kind::Product => n_cts * cost.product,
            Kind::Rescale => {
                let level = step.level();
                let division = level.lower().and_then(|lower| params.rescale(level, lower));
                let entered = level.lower().map_or(0.0, |lower| costs.enter(params, level, lower));
                n_cts * (cost.rescale(division.map_or(1, |division| division.divided.len())) + entered)
            }
            Kind::Drop => {
                n_cts * step.result.map_or(0.0, |result| costs.enter(params, step.level(), result.level))
            }
            Kind::Input
            | Kind::PlainSum(_)
            | Kind::PlainProduct(_)
            | Kind::ScalarProduct
            | Kind::Exact
            | Kind::End => 0.0,
        };
        prediction.seconds += seconds;
        layer_seconds[step.instruction.layer.index()] += seconds;
    }
    let Memory { keys, working } = Memory::of(program);
    (prediction.key_bytes, prediction.ciphertext_bytes) = (keys, working);
    Expectation { prediction, layer_seconds }
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
        let towers = params.n_towers(level) + params.at(level).special_primes().len();
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
    params.key_pair_bytes(level) * plan.working_pairs(params.at(level).n_digits(level)) as u64
}
