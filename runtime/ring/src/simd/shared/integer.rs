//! With 52-bit integer products (AVX512-IFMA): two instructions a product where double precision takes four.
//!
//! Residues are in [0, q). Sums of at most 2^52/q rows are below 2^52, as the instructions want them. The low and high 52
//! bits of products are added up apart; with 2^103/q² rows in all, what the high halves hold stays below 2^52, so
//! both parts are exact doubles when the sum is reduced.

use super::{Products, Rows, add_all, load, store};
use crate::modulus::Modulus;
use crate::shared::{Partial, STRIP, SharedList, Strip};
use crate::simd::FMA_PRIME_BOUND;
use crate::simd::lanes::{Avx512, Ifma, Lanes};
use crate::simd::prime::{Factor, Prime, from_int};

/// Vectors of a strip.
const N: usize = STRIP / Avx512::WIDTH;
/// Rows that leave the low halves below 2^63.
const MOST: usize = 1 << 11;

type V = <Avx512 as Lanes>::V;

/// The kernel of one prime.
#[derive(Clone, Debug)]
pub struct IntegerShared {
    token: Ifma,
    q: Modulus,
    /// Rows that may be added before a product.
    most_rows: usize,
    /// Rows that may be added before a reduction.
    limit: usize,
    /// 2^52 modulo q, balanced.
    radix: f64,
}

impl IntegerShared {
    /// The kernel of a prime below [`FMA_PRIME_BOUND`].
    ///
    /// # Panics
    /// When the prime is too large.
    pub fn new(token: Ifma, q: Modulus) -> Self {
        assert!(q.value() < FMA_PRIME_BOUND, "prime too large for 52-bit products");
        let p = u128::from(q.value());
        let limit = ((1 << 103) / (p * p)).min(MOST as u128) as usize;
        let most_rows = (((1 << 52) / p) as usize).min(limit);
        let radix = (1u64 << 52) % q.value();
        let radix = if 2 * radix > q.value() { -((q.value() - radix) as f64) } else { radix as f64 };
        Self { token, q, most_rows, limit, radix }
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
        self.token.run(
            #[inline(always)]
            || {
                let mut own = Sum::new(self, sum, used);
                add_all(&mut own, list, &rows, plains);
                store(self.token.lanes(), sum, [&own.low, &own.high]);
            },
        );
    }

    /// See [`crate::shared::SharedKernel::reduce`].
    pub fn reduce(&self, out: &mut [u64; STRIP], sum: &Partial) {
        self.token.run(
            #[inline(always)]
            || {
                let sum = Sum::new(self, sum, 0);
                let out = Avx512::words_mut(out).0;
                for v in 0..N {
                    self.token.lanes().store(&mut out[v], sum.reduced(v));
                }
            },
        );
    }
}

/// A sum on one strip.
struct Sum {
    token: Ifma,
    prime: Prime<Avx512>,
    radix: Factor<Avx512>,
    most_rows: usize,
    limit: usize,
    /// Integers, as the bits of doubles.
    high: [V; N],
    low: [V; N],
    /// Rows that may still be added.
    budget: usize,
}

impl Sum {
    /// A sum of `used` rows so far.
    #[inline(always)]
    fn new(kernel: &IntegerShared, sum: &Partial, used: usize) -> Self {
        let s = kernel.token.lanes();
        let prime = Prime::new(s, kernel.q.value());
        let [low, high] = load(s, sum);
        Self {
            token: kernel.token,
            radix: prime.factor(s.splat(kernel.radix)),
            prime,
            most_rows: kernel.most_rows,
            limit: kernel.limit,
            high,
            low,
            budget: kernel.limit.saturating_sub(used),
        }
    }

    /// high·2^52 + low as integers in [0, q).
    #[inline(always)]
    fn reduced(&self, v: usize) -> V {
        let (s, token) = (self.token.lanes(), self.token);
        let high = from_int(s, s.add_words(self.high[v], token.above_52(self.low[v])));
        let low = from_int(s, token.below_52(self.low[v]));
        // At most 5/4·q + 2^52 in magnitude.
        self.prime.canonical(s.add(self.prime.mul_factor(high, &self.radix), low))
    }
}

impl Products for Sum {
    #[inline(always)]
    fn most_rows(&self) -> usize {
        self.most_rows
    }

    #[inline(always)]
    fn add(&mut self, factor: &Strip, shared: &[u32], rows: &Rows<'_>) {
        let s = self.token.lanes();
        let mut sum = [s.splat(0.0); N];
        for (k, &row) in shared.iter().enumerate() {
            let row = Avx512::words(&rows.get(row).0).0;
            for v in 0..N {
                sum[v] = if k == 0 { s.load(&row[v]) } else { s.add_words(sum[v], s.load(&row[v])) };
            }
        }
        if shared.len() > self.budget {
            for v in 0..N {
                self.low[v] = self.reduced(v);
            }
            self.high = [s.splat(0.0); N];
            self.budget = self.limit;
        }
        self.budget -= shared.len();
        let factor = Avx512::words(&factor.0).0;
        for v in 0..N {
            let factor = s.load(&factor[v]);
            self.low[v] = self.token.add_low(self.low[v], factor, sum[v]);
            self.high[v] = self.token.add_high(self.high[v], factor, sum[v]);
        }
    }
}
