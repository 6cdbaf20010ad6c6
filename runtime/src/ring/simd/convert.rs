//! Base conversion to one prime below 2^50 from primes below 2^50.

use std::arch::x86_64::*;

use super::lanes::{Prime, V, load_f64, load_int, splat, store};
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
    /// When the prime is too large.
    pub fn new(token: FmaToken, q: Modulus, constants: &[u64], product: u64) -> Self {
        assert!(q.value() < FMA_PRIME_BOUND, "prime too large for double precision");
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
        unsafe {
            match y.len() {
                1 => convert_few::<1>(self, out, y, overflow),
                2 => convert_few::<2>(self, out, y, overflow),
                3 => convert_few::<3>(self, out, y, overflow),
                4 => convert_few::<4>(self, out, y, overflow),
                _ => convert_many(self, out, y, overflow),
            }
        }
    }
}

/// The usual numbers of sources, with every constant in a register.
#[target_feature(enable = "avx2,fma")]
fn convert_few<const K: usize>(plan: &FmaConverter, out: &mut [u64], y: &[&[u64]], overflow: &[f64]) {
    let prime = Prime::new(plan.q.value());
    let product = splat(-plan.product);
    let w: [V; K] = std::array::from_fn(|k| splat(plan.constants[k]));
    let wp: [V; K] = std::array::from_fn(|k| _mm256_mul_pd(w[k], prime.inv));
    let y: [&[[u64; 4]]; K] = std::array::from_fn(|k| y[k].as_chunks::<4>().0);
    for (i, (out, v)) in out.as_chunks_mut::<4>().0.iter_mut().zip(overflow.as_chunks::<4>().0).enumerate() {
        // |v·D| is at most 2p and each product at most 5/8 of p.
        let mut sum = _mm256_mul_pd(load_f64(v), product);
        for k in 0..K {
            sum = _mm256_add_pd(sum, prime.mul_const(load_int(&y[k][i]), w[k], wp[k]));
        }
        store(out, prime.canonical(sum));
    }
}

/// Any number of sources.
#[target_feature(enable = "avx2,fma")]
fn convert_many(plan: &FmaConverter, out: &mut [u64], y: &[&[u64]], overflow: &[f64]) {
    let prime = Prime::new(plan.q.value());
    for (i, (out, v)) in out.as_chunks_mut::<4>().0.iter_mut().zip(overflow.as_chunks::<4>().0).enumerate() {
        let v = load_f64(v);
        let mut sum = prime.balance(prime.mul(v, splat(-plan.product)));
        for (y, &c) in y.iter().zip(&plan.constants) {
            let w = splat(c);
            let term = prime.mul_const(load_int(&y.as_chunks::<4>().0[i]), w, _mm256_mul_pd(w, prime.inv));
            sum = prime.balance(_mm256_add_pd(sum, term));
        }
        store(out, prime.canonical(sum));
    }
}
