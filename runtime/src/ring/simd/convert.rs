//! Base conversion to one prime below 2^50 from primes below 2^50.

use std::arch::x86_64::*;

use super::lanes::{Prime, load_f64, load_int, splat, store};
use super::{FMA_PRIME_BOUND, FmaToken};
use crate::ring::modulus::Modulus;

/// The constants of one target prime.
#[derive(Clone, Debug)]
pub struct FmaConverter {
    _token: FmaToken,
    q: Modulus,
    /// Balanced constants cᵢ.
    constants: Vec<f64>,
    /// The product of the sources modulo q, balanced.
    product: f64,
}

impl FmaConverter {
    /// Prepares the constants of [`crate::ring::scalar::convert`].
    ///
    /// # Panics
    /// When the prime is too large or there are more than 2^8 sources.
    pub fn new(token: FmaToken, q: Modulus, constants: &[u64], product: u64) -> Self {
        assert!(q.value() < FMA_PRIME_BOUND && constants.len() <= 256, "conversion out of range");
        Self {
            _token: token,
            q,
            constants: constants.iter().map(|&c| q.center(c) as f64).collect(),
            product: q.center(product) as f64,
        }
    }

    /// See [`crate::ring::scalar::convert`]; sources below 2^50.
    pub fn convert(&self, out: &mut [u64], y: &[&[u64]], overflow: &[f64]) {
        assert!(y.len() == self.constants.len() && overflow.len() == out.len());
        assert!(out.len().is_multiple_of(4) && y.iter().all(|y| y.len() == out.len()));
        // SAFETY: the token in `self` proves that the CPU has AVX2 and FMA.
        unsafe { convert(self, out, y, overflow) }
    }
}

#[target_feature(enable = "avx2,fma")]
fn convert(plan: &FmaConverter, out: &mut [u64], y: &[&[u64]], overflow: &[f64]) {
    let prime = Prime::new(plan.q.value());
    let product = splat(plan.product);
    for (i, (out, v)) in out.as_chunks_mut::<4>().0.iter_mut().zip(overflow.as_chunks::<4>().0).enumerate() {
        // Overflow counts are at most the number of sources, so v·D stays below 2^53 after balancing.
        let mut sum = prime.balance(_mm256_sub_pd(_mm256_setzero_pd(), _mm256_mul_pd(load_f64(v), product)));
        for (y, &c) in y.iter().zip(&plan.constants) {
            let w = splat(c);
            let wp = _mm256_mul_pd(w, prime.inv);
            let term = prime.mul_const(load_int(&y.as_chunks::<4>().0[i]), w, wp);
            sum = _mm256_add_pd(sum, term);
        }
        store(out, prime.canonical(sum));
    }
}
