//! What a search works on: a circuit in slots, with everything about it that does not depend on the parameters.

use fhe_bytecode::noise::NoiseModel;
use fhe_bytecode::{CostModel, Level, Params};

use super::noise::{Contribution, MapFacts, contributions, rescales};
use super::positions::Positions;
use super::stats::Stats;
use crate::layout::Placed;
use crate::lower::CircuitOp;

/// Bits kept free above the largest result seen: results may be larger than the samples', and carry noise.
const MARGIN_BITS: f64 = 2.0;

/// What a search works on.
#[derive(Clone, Copy, Debug)]
pub struct Problem<'a> {
    /// The circuit in slots.
    pub placed: &'a Placed,
    /// Facts of its linear maps.
    pub facts: &'a [MapFacts],
    /// Where everything is computed.
    pub positions: &'a Positions,
    /// Sizes and gains of the values.
    pub stats: &'a Stats,
    /// log2 of the ring degree.
    pub log_n: u32,
}

impl Problem<'_> {
    /// The largest result seen.
    #[must_use]
    pub fn output_peak(&self) -> f64 {
        let peak = |o: &crate::lower::ValueId| self.stats.peak[o.index()];
        self.placed.circuit.outputs.iter().map(peak).fold(f64::MIN_POSITIVE, f64::max)
    }

    /// Bits of the largest result with sign and margin.
    #[must_use]
    pub fn headroom(&self) -> f64 {
        self.output_peak().log2() + 1.0 + MARGIN_BITS
    }

    pub(super) fn contributions(&self, params: &Params) -> Vec<Contribution> {
        contributions(self.placed, self.facts, self.positions, self.stats, &NoiseModel::new(params))
    }

    /// Predicted seconds on one core, encodings left out.
    #[must_use]
    pub fn seconds(&self, params: &Params, costs: &CostModel) -> f64 {
        let at = |level: Level| costs.at(params, level);
        let mut total = 0.0;
        for map in self.facts {
            let level = self.positions.working_level(self.positions.of(map.value()));
            total += at(level).linear(map.counts());
        }
        for id in self.placed.circuit.ids() {
            let position = self.positions.of(id);
            let step = at(self.positions.working_level(position));
            let n_cts = self.placed.layouts[id.index()].n_cts() as f64;
            if matches!(self.placed.circuit.value(id).op, CircuitOp::Product(_)) {
                total += n_cts * step.product;
            }
            if self.positions.is_boundary(position) && rescales(self.placed, id) {
                total += n_cts * step.rescale;
            }
        }
        total
    }
}
