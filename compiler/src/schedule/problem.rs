//! What a search works on: a circuit in slots, with everything about it that does not depend on the parameters.

use fhe_bytecode::noise::NoiseModel;
use fhe_bytecode::{CostModel, Level, Params};

use super::chain::Chain;
use super::noise::{Contribution, Copies, MapFacts, contributions};
use super::room::{Room, rooms};
use crate::layout::Placed;
use crate::lower::CircuitOp;
use crate::measure::{Case, Moments, Stats};
use crate::timed::{Positions, Time};

/// How many times the error of the samples the bound allows for inputs unlike them.
const MOST_STRAY: f64 = 4.0;

/// The variance of the error of a result that a bound is for, where samples and inputs unlike them have these at most.
pub(crate) fn covering(usual: f64, stray: f64) -> f64 {
    usual.max(stray.min(usual * MOST_STRAY * MOST_STRAY))
}

/// What a search works on.
#[derive(Clone, Copy, Debug)]
pub struct Problem<'a> {
    /// The circuit in slots.
    pub placed: &'a Placed,
    /// Facts of its linear maps.
    pub facts: &'a [MapFacts],
    /// Sizes and gains of the values.
    pub stats: &'a Stats,
    /// log2 of the ring degree.
    pub log_n: u32,
    /// Ciphertexts that the input may be the sum of: each of the model's inputs may be encrypted by itself.
    pub n_encryptions: usize,
}

impl<'a> Problem<'a> {
    /// The multiplications of the circuit.
    #[must_use]
    pub fn positions(&self) -> &'a Positions {
        self.placed.timed.positions()
    }

    /// The largest result seen.
    #[must_use]
    pub fn output_peak(&self) -> f64 {
        self.stats.largest_result().max(f64::MIN_POSITIVE)
    }

    /// What the moduli have to hold.
    #[must_use]
    pub fn rooms(&self) -> Vec<Room> {
        rooms(&self.placed.timed, self.stats)
    }

    pub(crate) fn contributions(
        &self,
        params: &Params,
        levels: &[Level],
        moments: &Moments,
        copies: Copies,
    ) -> Vec<Contribution> {
        let model = NoiseModel::new(params);
        contributions(self.placed, self.facts, levels, moments, copies, &model, self.n_encryptions)
    }

    /// The largest deviation of the error of a single result: over the samples, and over inputs that nothing tells from them.
    pub(crate) fn worst_error(&self, params: &Params, chain: &Chain) -> f64 {
        let levels = chain.levels();
        let variance = |moments: &Moments| {
            let all = self.contributions(params, &levels, moments, Copies::Worst);
            all.iter().map(|c| c.variance(chain)).sum::<f64>()
        };
        let largest = |cases: &[Case]| cases.iter().map(|c| variance(&c.moments)).fold(0.0, f64::max);
        let usual = largest(&self.stats.cases).max(variance(&self.stats.mean));
        covering(usual, largest(&self.stats.strays)).sqrt()
    }

    /// Predicted seconds on one core, encodings left out.
    #[must_use]
    pub fn seconds(&self, params: &Params, chain: &Chain, costs: &CostModel) -> f64 {
        let placed = self.placed;
        let at = |time: Time| costs.at(params, chain.level(time.working));
        let mut total = 0.0;
        for map in self.facts {
            let lanes = placed.value(map.value()).lanes;
            total += at(placed.timed.time(map.value())).linear_of_lanes(map.counts(), lanes);
        }
        for id in placed.circuit().ids() {
            let time = placed.timed.time(id);
            let step = at(time);
            let n_cts = placed.value(id).n_cts() as f64;
            if matches!(placed.circuit().value(id).op, CircuitOp::Product(_)) {
                total += n_cts * step.product;
            }
            let working = chain.level(time.working);
            if placed.is_rescaled(id) {
                let division = chain.moduli().rescale(time.working);
                total += n_cts * step.rescale(division.divided.len());
                total += n_cts * costs.enter(params, working, chain.level(time.rung));
            }
            // What is ready early is dropped for every reader.
            for source in placed.circuit().value(id).op.sources() {
                let from = chain.level(placed.timed.time(source).rung);
                if from > working {
                    total += placed.value(source).n_cts() as f64 * costs.enter(params, from, working);
                }
            }
        }
        total
    }
}
