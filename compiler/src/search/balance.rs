//! Scales in closed form: the noise of rescales and of weight encodings is amount/scale² summed over the circuit. For a given
//! sum the fewest bits are spent when all summands are equal.

use fhe_bytecode::params::ntt_primes_below;
use fhe_bytecode::{Level, Params, ParamsSpec};

use super::key_switching::ScheduleError;
use crate::schedule::Problem;
use crate::schedule::noise::{Anchor, Contribution, Copies};
use crate::schedule::{ChainError, Sizes};
use crate::schedule::{LEAST_HEADROOM, Room};
use crate::timed::Positions;

/// Largest noise-to-signal ratio of one contribution in its value, in bits of the variance. Beyond it noise no longer acts
/// linearly, and what a gain says about the result is void.
pub(super) const MAX_LOCAL_BITS: f64 = -11.0;

impl Problem<'_> {
    /// Scales at which every rescale, every layer's weights and the input add the same variance, `target` in all, in one ring.
    pub(super) fn balanced_sizes(&self, target: f64, headroom: f64) -> Result<Sizes, ScheduleError> {
        let positions = self.positions();
        // Any parameters of this ring degree will do: rescale and encoding noise do not depend on the rest.
        let towers = ntt_primes_below(40, self.log_n, positions.n_rescales() as usize + 1, &[])
            .map_err(ChainError::from)?;
        let special_primes = ntt_primes_below(59, self.log_n, 2, &[]).map_err(ChainError::from)?;
        let spec = ParamsSpec::toy(self.log_n, towers, special_primes);
        let levels: Vec<Level> = (0..=positions.n_rescales() as u16).map(Level).collect();
        let all = self.contributions(&Params::new(spec)?, &levels, &self.stats.mean, Copies::Alike);
        Ok(self.balanced(&all, target, headroom))
    }

    /// The same for the noise of given parameters, whose lower levels may be in smaller rings and add less.
    pub(super) fn balanced(&self, all: &[Contribution], target: f64, headroom: f64) -> Sizes {
        let positions = self.positions();
        let depth = positions.depth();
        let mut after = vec![0.0; depth as usize + 1];
        let mut weight = vec![0.0; depth as usize + 1];
        // Bits below which the noise of a value would be too large for the value.
        let mut after_least: Vec<f64> = vec![12.0; depth as usize + 1];
        let mut weight_least: Vec<f64> = vec![6.0; depth as usize + 1];
        for c in all {
            let least = 0.5 * (c.local.log2() - MAX_LOCAL_BITS);
            match c.anchor {
                Anchor::After(p) if p == 0 || positions.is_boundary(p) => {
                    after[p as usize] += c.amount;
                    after_least[p as usize] = after_least[p as usize].max(least);
                }
                Anchor::Weight { to, .. } => {
                    weight[to as usize] += c.amount;
                    weight_least[to as usize] = weight_least[to as usize].max(least);
                }
                Anchor::After(_) | Anchor::Before(_) => {}
            }
        }
        let n = after.iter().chain(&weight).filter(|a| **a > 0.0).count().max(1) as f64;
        let bits = |amount: f64, least: f64| (0.5 * (amount * n / target).log2()).max(least);
        let boundaries = (1..=depth).filter(|&p| positions.is_boundary(p));
        Sizes {
            input: bits(after[0], after_least[0]),
            activations: boundaries.map(|p| bits(after[p as usize], after_least[p as usize])).collect(),
            weights: (1..=depth as usize).map(|p| bits(weight[p], weight_least[p])).collect(),
            rooms: self.rooms(),
            headroom,
        }
    }
}

/// The sizes of uniform scales: one for activations, one for weights.
#[must_use]
pub(super) fn uniform_sizes(positions: &Positions, input: f64, activation: f64, rooms: Vec<Room>) -> Sizes {
    Sizes {
        input,
        activations: vec![activation; positions.n_rescales() as usize],
        weights: vec![activation; positions.depth() as usize],
        rooms,
        headroom: LEAST_HEADROOM,
    }
}
