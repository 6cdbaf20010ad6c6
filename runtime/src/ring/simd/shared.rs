//! Sums of rows, each multiplied once, in double precision; see [`crate::ring::shared`].
//!
//! Residues are balanced, |x| ≤ p/2. With T = ⌊2^53/p⌋, sums of T rows are exact, and so is a sum of products with T rows
//! in all: it stays below T·p²/4, its high part is a multiple of 2^k and its low part at most 2^52 in magnitude. Primes
//! with a small T reduce each sum of rows first; then T counts products.

use super::dot::{accumulate, finish};
use super::lanes::Lanes;
use super::prime::{Prime, from_int};
use super::{FMA_PRIME_BOUND, Width};
use crate::ring::modulus::Modulus;
use crate::ring::shared::{Places, STRIP, SharedList, Strip};

/// Below this T the sums of rows are reduced before the product.
const FEW: usize = 256;
/// No list of rows is longer without a reduction in between.
const MOST: usize = 1 << 14;

/// The kernel of one prime.
#[derive(Clone, Debug)]
pub struct FmaShared {
    width: Width,
    q: Modulus,
    /// T of the module documentation.
    limit: usize,
    /// 1.5·2^(52+k).
    anchor: f64,
}

impl FmaShared {
    /// The kernel of a prime below [`FMA_PRIME_BOUND`].
    ///
    /// # Panics
    /// When the prime is too large.
    pub fn new(width: Width, q: Modulus) -> Self {
        assert!(q.value() < FMA_PRIME_BOUND, "prime too large for double precision");
        let p = q.value() as f64;
        let limit = ((2f64.powi(53) / p) as usize).min(MOST);
        let largest = limit as f64 * p * p / 4.0;
        let k = (largest.log2().ceil() as i32 - 51).max(0);
        Self { width, q, limit, anchor: 1.5 * 2f64.powi(52 + k) }
    }

    /// See [`crate::ring::shared::SharedKernel::place`].
    pub fn place(&self, out: &mut [Strip], places: Places, residues: &[u64], doubles: bool) {
        assert!(residues.len().is_multiple_of(STRIP));
        match self.width {
            Width::Four(s) => place(s, self.q, out, places, residues, doubles),
            Width::Eight(s) => place(s, self.q, out, places, residues, doubles),
        }
    }

    /// See [`crate::ring::shared::SharedKernel::sum_products`].
    pub fn sum_products(&self, out: &mut [u64; STRIP], list: &SharedList, rows: &[Strip], plains: &[Strip]) {
        match self.width {
            Width::Four(s) => s.run(
                #[inline(always)]
                || sum_products::<_, { STRIP / 4 }>(s, self, out, list, rows, plains),
            ),
            Width::Eight(s) => s.run(
                #[inline(always)]
                || sum_products::<_, { STRIP / 8 }>(s, self, out, list, rows, plains),
            ),
        }
    }
}

fn place<S: Lanes>(s: S, q: Modulus, out: &mut [Strip], places: Places, residues: &[u64], doubles: bool) {
    s.run(
        #[inline(always)]
        || {
            let prime = Prime::new(s, q.value());
            for (strip, residues) in residues.chunks_exact(STRIP).enumerate() {
                let target = S::words_mut(&mut out[places.first + strip * places.step].0).0;
                for (target, word) in target.iter_mut().zip(S::words(residues).0) {
                    let bits = s.load(word);
                    let value = if doubles { bits } else { from_int(s, bits) };
                    s.store(target, prime.balance(value));
                }
            }
        },
    );
}

/// The sums on one strip, which is N vectors.
#[inline(always)]
fn sum_products<S: Lanes, const N: usize>(
    s: S,
    plan: &FmaShared,
    out: &mut [u64; STRIP],
    list: &SharedList,
    rows: &[Strip],
    plains: &[Strip],
) {
    let prime = Prime::new(s, plan.q.value());
    let start = s.splat(plan.anchor);
    let reduces = plan.limit < FEW;
    let mut high = [start; N];
    let mut low = [s.splat(0.0); N];
    let mut budget = plan.limit;
    for entry in &list.entries {
        let factor = S::words(&plains[entry.plain as usize].0).0;
        for shared in list.rows[entry.start as usize..entry.end as usize].chunks(plan.limit) {
            let mut sum = [s.splat(0.0); N];
            for &row in shared {
                let row = S::words(&rows[row as usize].0).0;
                for v in 0..N {
                    sum[v] = s.add(sum[v], s.load(&row[v]));
                }
            }
            let weight = if reduces { 1 } else { shared.len() };
            if reduces && shared.len() > 1 {
                for v in 0..N {
                    sum[v] = prime.balance(sum[v]);
                }
            }
            if weight > budget {
                for v in 0..N {
                    low[v] = from_int(s, finish(&prime, start, high[v], low[v]));
                }
                high = [start; N];
                budget = plan.limit;
            }
            budget -= weight;
            for v in 0..N {
                accumulate(s, &mut high[v], &mut low[v], s.load(&factor[v]), sum[v]);
            }
        }
    }
    let out = S::words_mut(out).0;
    for v in 0..N {
        s.store(&mut out[v], finish(&prime, start, high[v], low[v]));
    }
}
