//! Tables of the powers of ψ that butterflies multiply by.

use crate::modulus::Modulus;
use crate::simd::lanes::Lanes;
use crate::simd::prime::{Factor, Prime};

/// Twiddles of three layers over a group of eight entries.
pub(super) const INNER: usize = 7;

/// The tables of one direction.
#[derive(Clone, Debug)]
pub(super) struct Twiddles<S: Lanes> {
    /// Entry m + i belongs to block i of the layer with m blocks, for m < n/8; balanced.
    pub(super) outer: Vec<f64>,
    /// For eight vectors of entries, seven vectors for the layers with n/8, n/4 and n/2 blocks, a group per lane.
    pub(super) inner: Vec<[S::Words; INNER]>,
}

impl<S: Lanes> Twiddles<S> {
    /// The powers of `root`, of order 2n.
    pub(super) fn new(q: Modulus, n: usize, root: u64) -> Self {
        let bits = n.trailing_zeros();
        let mut table = vec![0.0; n];
        let mut power = 1;
        for k in 0..n {
            table[k.reverse_bits() >> (usize::BITS - bits)] = q.center(power) as f64;
            power = q.mul(power, root);
        }
        let lanes = |f: &dyn Fn(usize) -> usize| S::words_from(|lane| table[f(lane)].to_bits());
        let inner = (0..n / (8 * S::WIDTH))
            .map(|rows| {
                let first = S::WIDTH * rows;
                std::array::from_fn(|j| match j {
                    0 => lanes(&|l| n / 8 + first + l),
                    1..=2 => lanes(&|l| n / 4 + 2 * (first + l) + j - 1),
                    _ => lanes(&|l| n / 2 + 4 * (first + l) + j - 3),
                })
            })
            .collect();
        table.truncate(n / 8);
        Self { outer: table, inner }
    }

    /// Outer twiddle `at` in every lane.
    #[inline(always)]
    fn one(&self, prime: &Prime<S>, at: usize) -> Factor<S> {
        prime.factor(prime.s.splat(self.outer[at]))
    }

    /// Outer twiddle `at` times a residue, as a residue.
    pub(super) fn scaled(&self, q: Modulus, at: usize, factor: u64) -> u64 {
        q.mul(q.reduce_f64(self.outer[at]), factor)
    }

    /// The twiddles of block `i` of the layer with `m` blocks and of its two halves.
    #[inline(always)]
    pub(super) fn three(&self, prime: &Prime<S>, m: usize, i: usize) -> [Factor<S>; 3] {
        let at = m + i;
        // No closure: one that stays a call has none of the CPU features.
        [self.one(prime, at), self.one(prime, 2 * at), self.one(prime, 2 * at + 1)]
    }
}
