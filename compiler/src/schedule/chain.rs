//! The modulus chain and the exact scale of every position.
//!
//! Between two rescales the scale goes from X through products (squaring it) and linear maps (times a weight scale W) to
//! S, and the rescale by q brings it to the next X. Where the stretch has a linear map its W is chosen such that the next
//! X is met exactly; where it has none, the next X is what the prime gives.

use fhe_bytecode::params::{Level, MAX_PRIME_BITS, ntt_primes_near};
use fhe_bytecode::{Scale, params::PrimeSearchError};

use super::room::{LEAST_HEADROOM, Room};
use crate::timed::{Positions, Rung, Step};

/// Smallest scale of weights: with paired diagonals one bit of it is lost, and no scale is below one.
const LEAST_WEIGHT_BITS: f64 = 1.0;
/// Size up to which a rescale divides by a single prime, in bits.
const ONE_PRIME_BITS: f64 = MAX_PRIME_BITS as f64 - 0.01;
/// Largest prime where a rescale divides by several: transforms are fastest up to this size.
const EACH_PRIME_BITS: f64 = 50.0;
/// More than sums of logarithms are off by, in bits.
const EXACT_BITS: f64 = 1e-9;
/// How far primes may be from the sizes asked for, in bits.
const ROUNDING_BITS: f64 = 0.05;

/// The sizes a chain is made from, in bits.
#[derive(Clone, Debug, PartialEq)]
pub struct Sizes {
    /// Scale of the input.
    pub input: f64,
    /// Scale after each rescale, in order of evaluation; the last is that of the output.
    pub activations: Vec<f64>,
    /// Wanted scale of the weights at each position, from position 1 on; entries of products are not read.
    pub weights: Vec<f64>,
    /// What the moduli have to hold.
    pub rooms: Vec<Room>,
    /// Bits kept free between every value and half the modulus it is in.
    pub headroom: f64,
}

/// Towers and scales that fit each other.
#[derive(Clone, Debug, PartialEq)]
pub struct Chain {
    /// For every rung the towers that its rescale divides by; those of the last rung stay.
    groups: Vec<Vec<u64>>,
    /// Scale of a position after its rescale, from position 0 on.
    scales: Vec<Scale>,
    /// Scale of a position before its rescale, from position 0 on.
    raw: Vec<Scale>,
}

/// Why there is no chain of the wanted sizes.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ChainError {
    /// No prime left.
    #[error(transparent)]
    Primes(#[from] PrimeSearchError),
    /// Given towers do not have one prime per rescale.
    #[error("the circuit needs {needed} towers, {given} are given")]
    TowerCount {
        /// Rescales and one.
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
    /// Given towers are too small for the values.
    #[error(
        "values of 2^{value:.1} at a scale of 2^{scale:.1} leave {free:.1} bits of the modulus at level {level} free, at least {LEAST_HEADROOM} are needed; a larger first tower holds them"
    )]
    ValuesTooLarge {
        /// The level.
        level: usize,
        /// Bits of the largest value.
        value: f64,
        /// Bits of its scale.
        scale: f64,
        /// Bits between the value and half the modulus.
        free: f64,
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
    /// When no prime is left.
    pub fn search(positions: &Positions, sizes: &Sizes, log_n: u32) -> Result<Self, ChainError> {
        let mut groups = vec![Vec::new(); positions.n_rescales() as usize + 1];
        let mut primes = Primes { log_n, taken: Vec::new() };
        let mut from = sizes.input;
        for (rescale, stretch) in stretches(positions).into_iter().enumerate() {
            let rung = groups.len() - 1 - rescale;
            let to = sizes.activations[rescale];
            let has_weights = stretch.clone().any(|p| positions.step(p) == Step::Linear);
            let wanted = walk(positions, stretch, from, |p| sizes.weights[p as usize - 1]);
            let reached = *wanted.last().expect("a stretch has a position");
            groups[rung] = primes.of_size(reached - to)?;
            from = if has_weights { to } else { reached - bits(&groups[rung]) };
        }
        let mut chain = Self::scaled(positions, sizes, groups);
        // The towers that stay are part of every modulus: they make room for everything.
        let missing =
            |room: &Room| chain.log2_scale(room) + room.bits(sizes.headroom) - chain.log2_modulus(room.rung);
        let needed = sizes.rooms.iter().map(missing).fold(0.0, f64::max);
        chain.groups[0] = primes.of_at_least(needed + EXACT_BITS)?;
        chain.fits(positions, &sizes.rooms)?;
        Ok(chain)
    }

    /// Scales for given towers, one for every rescale; weight scales follow from them.
    ///
    /// # Errors
    /// When the number of towers is not that of the rescales and one, or they do not fit the scales.
    pub fn with_towers(positions: &Positions, sizes: &Sizes, towers: Vec<u64>) -> Result<Self, ChainError> {
        let needed = positions.n_rescales() as usize + 1;
        if towers.len() != needed {
            return Err(ChainError::TowerCount { needed, given: towers.len() });
        }
        let chain = Self::scaled(positions, sizes, towers.into_iter().map(|q| vec![q]).collect());
        chain.fits(positions, &sizes.rooms)?;
        Ok(chain)
    }

    /// The exact scales under given towers; the last group may still be empty.
    fn scaled(positions: &Positions, sizes: &Sizes, groups: Vec<Vec<u64>>) -> Self {
        let mut scales = vec![Scale::from_log2(sizes.input)];
        let mut raw = scales.clone();
        for (rescale, stretch) in stretches(positions).into_iter().enumerate() {
            let group = &groups[groups.len() - 1 - rescale];
            let from = scales.last().expect("the input has a scale").log2();
            // One more unit of weight scale everywhere: how much of it reaches the end.
            let wanted = |p: u32| sizes.weights[p as usize - 1];
            let nominal =
                *walk(positions, stretch.clone(), from, wanted).last().expect("a stretch has a position");
            let shifted = *walk(positions, stretch.clone(), from, |p| wanted(p) + 1.0).last().expect("same");
            let target = sizes.activations[rescale] + bits(group);
            let correction = if shifted > nominal { (target - nominal) / (shifted - nominal) } else { 0.0 };
            let exact = walk(positions, stretch, from, |p| wanted(p) + correction);
            for (i, bits) in exact.iter().enumerate() {
                let (reached, last) = (Scale::from_log2(*bits), i + 1 == exact.len());
                raw.push(reached);
                let rescaled = |scale: Scale, prime: &u64| scale.rescaled(*prime);
                scales.push(if last { group.iter().rev().fold(reached, rescaled) } else { reached });
            }
        }
        Self { groups, scales, raw }
    }

    /// What the checker asks of every scale: it lies within the modulus with the values, and no product makes it smaller.
    fn fits(&self, positions: &Positions, rooms: &[Room]) -> Result<(), ChainError> {
        let within = |scale: Scale, rung: Rung, level: usize| {
            let (scale, modulus) = (scale.log2(), self.log2_modulus(rung));
            if scale < modulus { Ok(()) } else { Err(ChainError::ScaleTooLarge { level, scale, modulus }) }
        };
        within(self.scale(0), positions.rung(0), positions.level(0) as usize)?;
        for position in 1..=positions.depth() {
            let level = positions.level(position - 1) as usize;
            within(self.raw(position), positions.working_rung(position), level)?;
            within(self.scale(position), positions.rung(position), positions.level(position) as usize)?;
            let bits = self.raw(position).log2() - self.scale(position - 1).log2();
            if positions.step(position) == Step::Linear && bits < LEAST_WEIGHT_BITS {
                return Err(ChainError::WeightsTooSmall { level, bits });
            }
        }
        let free = |room: &Room| self.free_bits(room);
        match rooms.iter().min_by(|a, b| free(a).total_cmp(&free(b))) {
            Some(room) if free(room) < LEAST_HEADROOM => Err(ChainError::ValuesTooLarge {
                level: positions.level(room.position.saturating_sub(u32::from(room.raw))) as usize,
                value: room.log2_peak,
                scale: self.log2_scale(room),
                free: free(room),
            }),
            _ => Ok(()),
        }
    }

    /// All towers, those that stay first.
    #[must_use]
    pub fn towers(&self) -> Vec<u64> {
        self.groups.concat()
    }

    /// The towers that a rescale from this rung divides by, the last one first.
    #[must_use]
    pub fn divisors(&self, rung: Rung) -> &[u64] {
        &self.groups[rung.index()]
    }

    /// The level of ciphertexts at a rung: towers that may still go.
    #[must_use]
    pub fn level(&self, rung: Rung) -> Level {
        Level((self.groups[..=rung.index()].iter().map(Vec::len).sum::<usize>() - 1) as u16)
    }

    /// The level of ciphertexts at every rung.
    #[must_use]
    pub fn levels(&self) -> Vec<Level> {
        (0..self.groups.len() as u16).map(|rung| self.level(Rung(rung))).collect()
    }

    /// Bits between a value and half the modulus it is in.
    #[must_use]
    pub fn free_bits(&self, room: &Room) -> f64 {
        self.log2_modulus(room.rung) - self.log2_scale(room) - room.log2_peak - 1.0
    }

    fn log2_modulus(&self, rung: Rung) -> f64 {
        self.groups[..=rung.index()].iter().map(|group| bits(group)).sum()
    }

    fn log2_scale(&self, room: &Room) -> f64 {
        if room.raw { self.raw(room.position) } else { self.scale(room.position) }.log2()
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

/// Primes of one ring, each given out once.
struct Primes {
    log_n: u32,
    taken: Vec<u64>,
}

impl Primes {
    /// The fewest primes whose product is about as large.
    fn of_size(&mut self, bits: f64) -> Result<Vec<u64>, ChainError> {
        // Small primes are sparse: 2N·ln(q) numbers lie between neighbours.
        let bits = bits.max(f64::from(self.log_n) + 4.0);
        let n = if bits <= ONE_PRIME_BITS { 1 } else { (bits / EACH_PRIME_BITS).ceil() as usize };
        let mut found = Vec::with_capacity(n);
        let mut left = bits;
        for to_come in (1..=n).rev() {
            let prime = ntt_primes_near((left / to_come as f64).exp2(), self.log_n, 1, &self.taken)?[0];
            self.taken.push(prime);
            left -= (prime as f64).log2();
            found.push(prime);
        }
        Ok(found)
    }

    /// The fewest primes whose product is larger, but not by much.
    fn of_at_least(&mut self, least: f64) -> Result<Vec<u64>, ChainError> {
        let mut wanted = least;
        loop {
            let found = self.of_size(wanted)?;
            if bits(&found) >= least {
                return Ok(found);
            }
            wanted += ROUNDING_BITS;
        }
    }
}

/// Size of a product.
fn bits(primes: &[u64]) -> f64 {
    primes.iter().map(|&q| (q as f64).log2()).sum()
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
mod tests;
