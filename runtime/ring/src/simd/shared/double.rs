//! In double precision.
//!
//! Residues are balanced, |x| ≤ p/2. With T = ⌊2^53/p⌋, sums of T rows are exact, and so is a sum of products with T rows
//! in all: it stays below T·p²/4, its high part is a multiple of 2^k and its low part at most 2^52 in magnitude. Primes
//! with a small T reduce each sum of rows first; then T counts products.

use super::{Products, Rows, add_all, load, store};
use crate::modulus::Modulus;
use crate::shared::{Partial, STRIP, SharedList, Strip};
use crate::simd::dot::{accumulate, finish};
use crate::simd::lanes::Lanes;
use crate::simd::prime::{Prime, from_int, load_int};
use crate::simd::{FMA_PRIME_BOUND, Width};

/// Below this T the sums of rows are reduced before the product.
const FEW: usize = 256;
/// No list of rows is longer without a reduction in between.
const MOST: usize = 1 << 14;

/// The kernel of one prime.
#[derive(Clone, Debug)]
pub struct DoubleShared {
    width: Width,
    q: Modulus,
    /// T of the module documentation.
    limit: usize,
    /// 1.5·2^(52+k).
    anchor: f64,
}

impl DoubleShared {
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

    /// See [`crate::shared::SharedKernel::to_words`].
    pub fn to_words(&self, residues: &mut [u64]) {
        match self.width {
            Width::Four(s) => to_words(s, self.q, residues),
            Width::Eight(s) => to_words(s, self.q, residues),
        }
    }

    /// See [`crate::shared::SharedKernel::nothing`].
    pub fn nothing(&self) -> Partial {
        Partial { low: Strip::ZERO, high: Strip([self.anchor.to_bits(); STRIP]) }
    }

    /// See [`crate::shared::SharedKernel::sum_products`].
    pub fn sum_products(
        &self,
        sum: &mut Partial,
        used: usize,
        list: &SharedList,
        rows: &[Strip],
        plains: &[Strip],
    ) {
        let rows = Rows::of(list, rows);
        match self.width {
            Width::Four(s) => add_list::<_, { STRIP / 4 }>(s, self, sum, used, list, &rows, plains),
            Width::Eight(s) => add_list::<_, { STRIP / 8 }>(s, self, sum, used, list, &rows, plains),
        }
    }

    /// See [`crate::shared::SharedKernel::reduce`].
    pub fn reduce(&self, out: &mut [u64; STRIP], sum: &Partial) {
        match self.width {
            Width::Four(s) => reduce::<_, { STRIP / 4 }>(s, self, out, sum),
            Width::Eight(s) => reduce::<_, { STRIP / 8 }>(s, self, out, sum),
        }
    }
}

fn add_list<S: Lanes, const N: usize>(
    s: S,
    kernel: &DoubleShared,
    sum: &mut Partial,
    used: usize,
    list: &SharedList,
    rows: &Rows<'_>,
    plains: &[Strip],
) {
    s.run(
        #[inline(always)]
        || {
            let mut own = Sum::<S, N>::new(s, kernel, sum, used);
            add_all(&mut own, list, rows, plains);
            store(s, sum, [&own.low, &own.high]);
        },
    );
}

fn reduce<S: Lanes, const N: usize>(s: S, kernel: &DoubleShared, out: &mut [u64; STRIP], sum: &Partial) {
    s.run(
        #[inline(always)]
        || {
            let sum = Sum::<S, N>::new(s, kernel, sum, 0);
            let out = S::words_mut(out).0;
            for v in 0..N {
                s.store(&mut out[v], finish(&sum.prime, sum.start, sum.high[v], sum.low[v]));
            }
        },
    );
}

/// Balanced doubles.
fn to_words<S: Lanes>(s: S, q: Modulus, residues: &mut [u64]) {
    let (vectors, tail) = S::words_mut(residues);
    s.run(
        #[inline(always)]
        || {
            let prime = Prime::new(s, q.value());
            for words in vectors {
                s.store(words, prime.balance(load_int(s, words)));
            }
        },
    );
    tail.iter_mut().for_each(|word| *word = (q.center(*word) as f64).to_bits());
}

/// A sum on one strip, which is N vectors.
struct Sum<S: Lanes, const N: usize> {
    prime: Prime<S>,
    start: S::V,
    limit: usize,
    high: [S::V; N],
    low: [S::V; N],
    /// Rows, or products of reduced rows, that may still be added.
    budget: usize,
}

impl<S: Lanes, const N: usize> Sum<S, N> {
    /// A sum of `used` rows so far.
    #[inline(always)]
    fn new(s: S, kernel: &DoubleShared, sum: &Partial, used: usize) -> Self {
        let [low, high] = load(s, sum);
        Self {
            prime: Prime::new(s, kernel.q.value()),
            start: s.splat(kernel.anchor),
            limit: kernel.limit,
            high,
            low,
            budget: kernel.limit.saturating_sub(used),
        }
    }
}

impl<S: Lanes, const N: usize> Products for Sum<S, N> {
    #[inline(always)]
    fn most_rows(&self) -> usize {
        self.limit
    }

    #[inline(always)]
    fn add(&mut self, factor: &Strip, shared: &[u32], rows: &Rows<'_>) {
        let s = self.prime.s;
        let mut sum = [s.splat(0.0); N];
        for (k, &row) in shared.iter().enumerate() {
            let row = S::words(&rows.get(row).0).0;
            for v in 0..N {
                sum[v] = if k == 0 { s.load(&row[v]) } else { s.add(sum[v], s.load(&row[v])) };
            }
        }
        let reduces = self.limit < FEW;
        if reduces && shared.len() > 1 {
            for v in 0..N {
                sum[v] = self.prime.balance(sum[v]);
            }
        }
        let weight = if reduces { 1 } else { shared.len() };
        if weight > self.budget {
            for v in 0..N {
                self.low[v] = from_int(s, finish(&self.prime, self.start, self.high[v], self.low[v]));
            }
            self.high = [self.start; N];
            self.budget = self.limit;
        }
        self.budget -= weight;
        let factor = S::words(&factor.0).0;
        for v in 0..N {
            accumulate(s, &mut self.high[v], &mut self.low[v], s.load(&factor[v]), sum[v]);
        }
    }
}
