//! A prime for every rescale, or several where one would be too large.

use fhe_bytecode::params::{MAX_PRIME_BITS, ntt_primes_near};

use super::{FAST_BITS, bits};
use crate::schedule::chain::{stretches, walk};
use crate::schedule::{Chain, ChainError, Moduli, Sizes};
use crate::timed::{Positions, Step};

/// Size up to which a rescale divides by a single prime, in bits.
const ONE_PRIME_BITS: f64 = MAX_PRIME_BITS as f64 - 0.01;
/// More than sums of logarithms are off by, in bits.
const EXACT_BITS: f64 = 1e-9;
/// How far primes may be from the sizes asked for, in bits.
const ROUNDING_BITS: f64 = 0.05;

/// Primes of the wanted sizes.
pub(super) fn chain(positions: &Positions, sizes: &Sizes, log_n: u32) -> Result<Chain, ChainError> {
    let mut groups = vec![Vec::new(); positions.n_rescales() as usize + 1];
    let mut primes = Primes { log_n, taken: Vec::new() };
    let mut from = sizes.input;
    for (rung, stretch) in stretches(positions) {
        let to = sizes.after(rung);
        let has_weights = stretch.clone().any(|p| positions.step(p) == Step::Linear);
        let wanted = walk(positions, stretch, from, |p| sizes.weights[p as usize - 1]);
        let reached = *wanted.last().expect("a stretch has a position");
        let group = primes.of_size(reached - to)?;
        from = if has_weights { to } else { reached - bits(&group) };
        groups[rung.index()] = group;
    }
    // The towers that stay are part of every modulus: they make room for everything.
    let without = Chain::scaled(positions, sizes, Moduli::nested(&groups));
    let needed = without.missing_bits(&sizes.rooms, sizes.headroom).max(0.0);
    groups[0] = primes.of_at_least(needed + EXACT_BITS)?;
    Chain::new(positions, sizes, Moduli::nested(&groups))
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
        let n = if bits <= ONE_PRIME_BITS { 1 } else { (bits / f64::from(FAST_BITS)).ceil() as usize };
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
