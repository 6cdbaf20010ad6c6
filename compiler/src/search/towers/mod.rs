//! Moduli of the wanted sizes: a prime for every rescale, or sets of towers from a pool.

mod per_level;
mod pool;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::schedule::{Chain, ChainError, Sizes};
use crate::timed::Positions;

/// Size up to which transforms are fastest, in bits.
pub(super) const FAST_BITS: u32 = 50;

/// How towers make up the moduli.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Towers {
    /// A rescale divides by primes of its own.
    PerLevel,
    /// Rungs have sets of large towers of this many bits and a few small ones.
    Pool {
        /// Bits of the large towers.
        large_bits: u32,
    },
}

/// Which of them a build may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TowerChoice {
    /// Sets of large towers and a few small ones, or a prime per level where that is faster.
    #[default]
    Pool,
    /// A prime of its own for every rescale.
    PrimePerLevel,
}

impl TowerChoice {
    /// What is tried.
    pub(super) fn all(self) -> &'static [Towers] {
        const ALL: [Towers; 5] = [
            Towers::PerLevel,
            Towers::Pool { large_bits: FAST_BITS },
            Towers::Pool { large_bits: 49 },
            Towers::Pool { large_bits: 48 },
            Towers::Pool { large_bits: 46 },
        ];
        match self {
            Self::Pool => &ALL,
            Self::PrimePerLevel => &ALL[..1],
        }
    }
}

/// Chains by the sizes they were asked for: many ways of key switching ask for the same.
pub(super) struct Chains<'a> {
    positions: &'a Positions,
    log_n: u32,
    known: Mutex<Known>,
}

type Known = HashMap<(Towers, Vec<u64>), Option<Arc<Chain>>>;

impl<'a> Chains<'a> {
    pub(super) fn new(positions: &'a Positions, log_n: u32) -> Self {
        Self { positions, log_n, known: Mutex::default() }
    }

    /// log2 of the ring degree.
    pub(super) fn log_n(&self) -> u32 {
        self.log_n
    }

    /// The chain of these sizes; nothing where such towers make none.
    pub(super) fn of(&self, towers: Towers, sizes: &Sizes) -> Result<Option<Arc<Chain>>, ChainError> {
        let key = (towers, key(sizes));
        if let Some(found) = self.known().get(&key) {
            return Ok(found.clone());
        }
        let found = match towers {
            Towers::PerLevel => Some(per_level::chain(self.positions, sizes, self.log_n)?),
            Towers::Pool { large_bits } => pool::chain(self.positions, sizes, self.log_n, large_bits)?,
        };
        let found = found.map(Arc::new);
        self.known().insert(key, found.clone());
        Ok(found)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What tells the sizes of one problem apart; rooms do not change.
fn key(sizes: &Sizes) -> Vec<u64> {
    let all = sizes.activations.iter().chain(&sizes.weights).chain([&sizes.input, &sizes.headroom]);
    all.map(|bits| bits.to_bits()).collect()
}

/// Size of a product, in bits.
fn bits(primes: &[u64]) -> f64 {
    primes.iter().map(|&q| (q as f64).log2()).sum()
}
