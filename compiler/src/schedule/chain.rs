//! The modulus chain and the exact scale of every position.
//!
//! Between two rescales the scale goes from X through products (squaring it) and linear maps (times a weight scale W) to
//! S, and the rescale by q brings it to the next X. Where the stretch has a linear map its W is chosen such that the next
//! X is met exactly; where it has none, the next X is what the prime gives.

use fhe_bytecode::params::{MAX_PRIME_BITS, ntt_primes_near};
use fhe_bytecode::{Scale, params::PrimeSearchError};

use super::positions::{Positions, Step};

/// Room that the last prime has above the scale of the output, however small the results are: a modulus holds its scale.
const LEAST_HEADROOM: f64 = 1.0;
/// Smallest scale of weights: with paired diagonals one bit of it is lost, and no scale is below one.
const LEAST_WEIGHT_BITS: f64 = 1.0;

/// The sizes a chain is made from, in bits.
#[derive(Clone, Debug, PartialEq)]
pub struct Sizes {
    /// Scale of the input.
    pub input: f64,
    /// Scale after each rescale, in order of evaluation; the last is that of the output.
    pub activations: Vec<f64>,
    /// Wanted scale of the weights at each position, from position 1 on; entries of products are not read.
    pub weights: Vec<f64>,
    /// Room of the output above its scale: bits of the largest result, sign and margin.
    pub headroom: f64,
}

/// Towers and scales that fit each other.
#[derive(Clone, Debug, PartialEq)]
pub struct Chain {
    /// q_0, q_1, ….
    pub towers: Vec<u64>,
    /// Scale of a position after its rescale, from position 0 on.
    scales: Vec<Scale>,
    /// Scale of a position before its rescale, from position 0 on.
    raw: Vec<Scale>,
}

/// Why there is no chain of the wanted sizes.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ChainError {
    /// A level needs more than the largest prime.
    #[error(
        "level {level} needs a prime of {bits:.1} bits, the largest has {MAX_PRIME_BITS}; use fewer sublevels or smaller scales"
    )]
    PrimeTooLarge {
        /// The level.
        level: usize,
        /// Bits it needs.
        bits: f64,
    },
    /// No prime left.
    #[error(transparent)]
    Primes(#[from] PrimeSearchError),
    /// Given towers do not have one prime per level.
    #[error("the circuit needs {needed} towers, {given} are given")]
    TowerCount {
        /// Levels and one.
        needed: usize,
        /// Towers given.
        given: usize,
    },
    /// Given towers are too small for the given scales.
    #[error("a scale of 2^{scale:.1} does not fit the modulus of 2^{modulus:.1} at level {level}")]
    ScaleTooLarge {
        /// The level.
        level: usize,
        /// Bits of the scale.
        scale: f64,
        /// Bits of the modulus.
        modulus: f64,
    },
    /// Given towers leave no room for weights.
    #[error("the towers leave the weights at level {level} a scale of 2^{bits:.1}, which rounds them away")]
    WeightsTooSmall {
        /// The level.
        level: usize,
        /// Bits of the scale.
        bits: f64,
    },
}

impl Chain {
    /// Searches primes of the wanted sizes.
    ///
    /// # Errors
    /// When a prime would be too large, or none is left.
    pub fn search(positions: &Positions, sizes: &Sizes, log_n: u32) -> Result<Self, ChainError> {
        let n_levels = positions.n_levels() as usize;
        let mut towers = vec![0; n_levels + 1];
        let mut taken = Vec::new();
        let mut from = sizes.input;
        // The prime nearest to a size that is larger than another size.
        let mut pick = |bits: f64, least: f64, level: usize| -> Result<u64, ChainError> {
            // Small primes are sparse: 2N·ln(q) numbers lie between neighbours.
            let bits = bits.max(f64::from(log_n) + 4.0);
            if bits > f64::from(MAX_PRIME_BITS) - 0.01 {
                return Err(ChainError::PrimeTooLarge { level, bits });
            }
            loop {
                let prime = ntt_primes_near(bits.exp2(), log_n, 1, &taken)?[0];
                taken.push(prime);
                if (prime as f64).log2() > least {
                    return Ok(prime);
                }
            }
        };
        for (rescale, stretch) in stretches(positions).into_iter().enumerate() {
            let level = n_levels - rescale;
            let to = sizes.activations[rescale];
            let has_weights = stretch.clone().any(|p| positions.step(p) == Step::Linear);
            let wanted = walk(positions, stretch, from, |p| sizes.weights[p as usize - 1]);
            let reached = *wanted.last().expect("a stretch has a position");
            towers[level] = pick(reached - to, 0.0, level)?;
            from = if has_weights { to } else { reached - (towers[level] as f64).log2() };
        }
        let headroom = sizes.headroom.max(LEAST_HEADROOM);
        towers[0] = pick(from + headroom, from + headroom - LEAST_HEADROOM, 0)?;
        Self::with_towers(positions, sizes, towers)
    }

    /// Scales for given towers; weight scales follow from them.
    ///
    /// # Errors
    /// When the number of towers is not that of the levels and one, or they do not fit the scales.
    pub fn with_towers(positions: &Positions, sizes: &Sizes, towers: Vec<u64>) -> Result<Self, ChainError> {
        let needed = positions.n_levels() as usize + 1;
        if towers.len() != needed {
            return Err(ChainError::TowerCount { needed, given: towers.len() });
        }
        let mut scales = vec![Scale::from_log2(sizes.input)];
        let mut raw = scales.clone();
        for (rescale, stretch) in stretches(positions).into_iter().enumerate() {
            let prime = towers[needed - 1 - rescale];
            let from = scales.last().expect("the input has a scale").log2();
            // One more unit of weight scale everywhere: how much of it reaches the end.
            let wanted = |p: u32| sizes.weights[p as usize - 1];
            let nominal =
                *walk(positions, stretch.clone(), from, wanted).last().expect("a stretch has a position");
            let shifted = *walk(positions, stretch.clone(), from, |p| wanted(p) + 1.0).last().expect("same");
            let target = sizes.activations[rescale] + (prime as f64).log2();
            let correction = if shifted > nominal { (target - nominal) / (shifted - nominal) } else { 0.0 };
            let exact = walk(positions, stretch, from, |p| wanted(p) + correction);
            for (i, bits) in exact.iter().enumerate() {
                let last = i + 1 == exact.len();
                raw.push(Scale::from_log2(*bits));
                scales.push(if last {
                    Scale::from_log2(*bits).rescaled(prime)
                } else {
                    Scale::from_log2(*bits)
                });
            }
        }
        let chain = Self { towers, scales, raw };
        chain.fits(positions)?;
        Ok(chain)
    }

    /// What the checker asks of every scale: it lies within the modulus, and no product makes it smaller.
    fn fits(&self, positions: &Positions) -> Result<(), ChainError> {
        let within = |scale: Scale, level: usize| {
            let modulus: f64 = self.towers[..=level].iter().map(|&q| (q as f64).log2()).sum();
            let scale = scale.log2();
            if scale < modulus { Ok(()) } else { Err(ChainError::ScaleTooLarge { level, scale, modulus }) }
        };
        within(self.scale(0), self.towers.len() - 1)?;
        for position in 1..=positions.depth() {
            let level = usize::from(positions.working_level(position).0);
            within(self.raw(position), level)?;
            within(self.scale(position), usize::from(positions.level(position).0))?;
            let bits = self.raw(position).log2() - self.scale(position - 1).log2();
            if positions.step(position) == Step::Linear && bits < LEAST_WEIGHT_BITS {
                return Err(ChainError::WeightsTooSmall { level, bits });
            }
        }
        Ok(())
    }

    /// Scale of a value at a position, after its rescale if there is one.
    #[must_use]
    pub fn scale(&self, position: u32) -> Scale {
        self.scales[position as usize]
    }

    /// Scale of a value at a position, before its rescale.
    #[must_use]
    pub fn raw(&self, position: u32) -> Scale {
        self.raw[position as usize]
    }
}

/// The positions between rescales, in order of evaluation.
fn stretches(positions: &Positions) -> Vec<std::ops::RangeInclusive<u32>> {
    let mut first = 1;
    let mut all = Vec::new();
    for position in 1..=positions.depth() {
        if positions.is_boundary(position) {
            all.push(first..=position);
            first = position + 1;
        }
    }
    all
}

/// Bits of the scale after each position of a stretch.
fn walk(
    positions: &Positions,
    stretch: std::ops::RangeInclusive<u32>,
    from: f64,
    weight: impl Fn(u32) -> f64,
) -> Vec<f64> {
    let mut bits = from;
    stretch
        .map(|p| {
            bits = match positions.step(p) {
                Step::Product => 2.0 * bits,
                Step::Linear => bits + weight(p),
            };
            bits
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::positions::tests::chain;

    fn sizes(positions: &Positions) -> Sizes {
        Sizes {
            input: 30.0,
            activations: vec![22.0; positions.n_levels() as usize],
            weights: vec![16.0; positions.depth() as usize],
            headroom: 6.0,
        }
    }

    #[test]
    fn scales_after_rescales_are_exactly_the_wanted_ones() {
        let positions = chain("lplplpl", 2);
        let found = Chain::search(&positions, &sizes(&positions), 15).unwrap();
        assert_eq!(found.towers.len(), 5);
        for position in [1, 3, 5, 7] {
            assert!(found.scale(position).agrees(Scale::from_log2(22.0)), "{}", found.scale(position));
        }
        assert!(found.raw(2).agrees(found.scale(1).squared()));
    }

    #[test]
    fn primes_follow_the_scales_of_a_pair() {
        let positions = chain("lplpl", 2);
        let found = Chain::search(&positions, &sizes(&positions), 15).unwrap();
        let bits: Vec<f64> = found.towers.iter().map(|&q| (q as f64).log2().round()).collect();
        assert_eq!(bits, [28.0, 38.0, 38.0, 24.0]);
    }

    #[test]
    fn stretch_of_products_takes_the_scale_its_prime_gives() {
        let positions = chain("lp", 1);
        let found = Chain::search(&positions, &sizes(&positions), 12).unwrap();
        let expected = found.scale(1).squared().rescaled(found.towers[1]);
        assert!(found.scale(2).agrees(expected));
    }

    #[test]
    fn last_prime_holds_the_scale_of_small_results() {
        let positions = chain("lplpl", 2);
        for (log_n, headroom) in [(9, -0.4), (13, -7.0), (15, -30.0)] {
            let small = Sizes { headroom, ..sizes(&positions) };
            let found = Chain::search(&positions, &small, log_n).unwrap();
            let (scale, prime) = (found.scale(5).log2(), (found.towers[0] as f64).log2());
            assert!(scale < prime, "2^{scale} in 2^{prime} at N = 2^{log_n}");
        }
    }

    #[test]
    fn last_prime_is_at_most_a_bit_smaller_than_asked_for() {
        let positions = chain("lpp", 1);
        for log_n in [5, 9, 13, 15] {
            for tenth in 0..60 {
                let activations = vec![20.0, 19.0, 10.0 + f64::from(tenth) / 10.0];
                let sizes = Sizes { activations, headroom: 3.0, ..sizes(&positions) };
                let found = Chain::search(&positions, &sizes, log_n).unwrap();
                let room = (found.towers[0] as f64).log2() - found.scale(3).log2();
                assert!(room > 2.0, "{room} bits at N = 2^{log_n}, {sizes:?}");
            }
        }
    }

    #[test]
    fn given_towers_hold_the_given_scales() {
        let positions = chain("lpl", 1);
        let check = |towers: [u64; 4], expected: &str| {
            let error = Chain::with_towers(&positions, &sizes(&positions), towers.to_vec()).unwrap_err();
            assert_eq!(error.to_string(), expected);
        };
        check(
            [(1 << 20) + 1, 1 << 40, 1 << 40, 1 << 40],
            "a scale of 2^62.0 does not fit the modulus of 2^60.0 at level 1",
        );
        check(
            [1 << 40, 1 << 22, 1 << 22, 1 << 8],
            "the towers leave the weights at level 3 a scale of 2^0.0, which rounds them away",
        );
    }

    #[test]
    fn level_beyond_the_largest_prime_is_refused() {
        let positions = chain("plpl", 4);
        let error = Chain::search(&positions, &sizes(&positions), 15).unwrap_err();
        assert!(matches!(error, ChainError::PrimeTooLarge { level: 1, .. }), "{error}");
    }
}
