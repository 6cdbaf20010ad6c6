//! Parameters of another program, so that its keys serve: towers, how rescales group them, and the scales between.

use std::collections::BTreeMap;

use fhe_bytecode::{CheckedProgram, CostModel, Op, Params, ParamsSpec, TowerIdx};

use super::key_switching::ScheduleError;
use crate::schedule::{Chain, ChainError, LEAST_HEADROOM, Moduli, Problem, Schedule, Sizes};

/// Bits that all scales may be smaller than in the other program, where values are larger.
const MOST_LOWERED: u32 = 12;
/// Bits between result and error that weights are balanced for; what comes of it is predicted as always.
const BALANCED_FOR: f64 = 9.0;

/// What the schedule of a program is made of.
#[derive(Clone, Debug, PartialEq)]
pub struct Like {
    /// Parameters.
    pub(super) params: ParamsSpec,
    /// The moduli of all levels.
    moduli: Moduli,
    /// Bits of the scale after each rescale, in order of evaluation.
    activations: Vec<f64>,
    /// Bits of the scale of the input.
    input: f64,
}

impl Like {
    /// The schedule of a program; none for one that leaves a level out.
    #[must_use]
    pub fn of(program: &CheckedProgram) -> Option<Self> {
        let params = program.spec().params.clone();
        let up_to = |level: usize| (0..=level as u16).map(TowerIdx).collect();
        let sets: Vec<Vec<TowerIdx>> = match &params.pool {
            Some(pool) => pool.levels.clone(),
            None => (0..params.towers.len()).map(up_to).collect(),
        };
        // The scale after the rescale to every level.
        let mut scales: BTreeMap<usize, f64> = BTreeMap::new();
        for step in program.steps() {
            if let (Op::Rescale { .. }, Some(after)) = (step.op(), step.result) {
                scales.entry(usize::from(after.level.0)).or_insert_with(|| after.scale.log2());
            }
        }
        let activations = (0..sets.len() - 1).rev().map(|level| scales.get(&level).copied());
        let activations = activations.collect::<Option<Vec<f64>>>()?;
        let input = program.spec().input.scale.log2();
        let moduli = Moduli::of_sets(params.towers.clone(), sets);
        Some(Self { params, moduli, activations, input })
    }
}

/// The schedule that another program has, for a circuit of the same depth.
pub(super) fn schedule(
    problem: Problem<'_>,
    like: &Like,
    costs: &CostModel,
) -> Result<Schedule, ScheduleError> {
    let target = (problem.output_peak() * (-BALANCED_FOR).exp2()).powi(2);
    let balanced = problem.balanced_sizes(target, LEAST_HEADROOM)?;
    let mut last =
        ChainError::TowerCount { needed: balanced.activations.len() + 1, given: like.moduli.n_rungs() };
    if balanced.activations.len() != like.activations.len() {
        return Err(last.into());
    }
    for lowered in 0..=MOST_LOWERED {
        let less = f64::from(lowered);
        let activations = like.activations.iter().map(|bits| bits - less).collect();
        let sizes = Sizes { input: like.input - less, activations, ..balanced.clone() };
        match Chain::new(problem.positions(), &sizes, like.moduli.clone()) {
            Ok(chain) => {
                return problem.with_chain(Params::new(like.params.clone())?, chain, sizes, costs);
            }
            Err(error) => last = error,
        }
    }
    Err(last.into())
}
