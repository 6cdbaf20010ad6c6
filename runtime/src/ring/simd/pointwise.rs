//! Element-wise kernels for one prime below 2^50.

use std::arch::x86_64::*;

use super::dot::FmaDot;
use super::lanes::{Prime, V, load, load_f64, load_int, splat, store, store_f64, to_int};
use super::{FMA_PRIME_BOUND, FmaToken};
use crate::ring::modulus::{Modulus, ShoupConstant};
use crate::ring::scalar::{self, Mode, Term};

/// Element-wise operations in double precision; every result has the bits of [`scalar`].
#[derive(Clone, Debug)]
pub struct FmaPointwise {
    _token: FmaToken,
    q: Modulus,
    dot: FmaDot,
}

/// Runs the body with the kernel's CPU features.
macro_rules! with_features {
    ($body:expr) => {{
        // SAFETY: the token in `self` proves that the CPU has AVX2 and FMA.
        unsafe { $body }
    }};
}

impl FmaPointwise {
    /// Kernels for a prime below [`FMA_PRIME_BOUND`].
    ///
    /// # Panics
    /// When the prime is too large.
    pub fn new(token: FmaToken, q: Modulus) -> Self {
        assert!(q.value() < FMA_PRIME_BOUND, "prime too large for double precision");
        Self { _token: token, q, dot: FmaDot::new(token, q) }
    }

    /// See [`scalar::add_assign`].
    pub fn add_assign(&self, a: &mut [u64], b: &[u64]) {
        assert_eq!(a.len(), b.len());
        with_features!(add_assign(self.q, a, b));
    }

    /// See [`scalar::sub_assign`].
    pub fn sub_assign(&self, a: &mut [u64], b: &[u64]) {
        assert_eq!(a.len(), b.len());
        with_features!(sub_assign(self.q, a, b));
    }

    /// See [`scalar::mul_into`].
    pub fn mul_into(&self, out: &mut [u64], a: &[u64], b: &[u64]) {
        assert!(out.len() == a.len() && a.len().is_multiple_of(b.len()));
        with_features!(mul_into(self.q, out, a, b));
    }

    /// See [`scalar::mul_scalar_assign`].
    pub fn mul_scalar_assign(&self, a: &mut [u64], w: ShoupConstant) {
        with_features!(mul_scalar_assign(self.q, a, w));
    }

    /// See [`scalar::sub_mul_scalar_from`].
    pub fn sub_mul_scalar_from(&self, b: &mut [u64], a: &[u64], w: ShoupConstant) {
        assert_eq!(a.len(), b.len());
        with_features!(sub_mul_scalar_from(self.q, b, a, w));
    }

    /// See [`scalar::weigh`].
    pub fn weigh(&self, y: &mut [u64], x: &[u64], w: ShoupConstant, overflow: &mut [f64]) {
        assert!(y.len() == overflow.len() && x.len() == y.len());
        with_features!(weigh(self.q, y, x, w, overflow));
    }

    /// See [`scalar::dot2`].
    pub fn dot2(&self, sums: [&mut [u64]; 2], terms: &[Term<'_>], mode: Mode) {
        self.dot.dot2(sums, terms, mode);
    }

    /// Rounds to the nearest integers, ties to even; any |x| < 2^51.
    pub fn round(&self, x: &mut [f64]) {
        with_features!(round(x));
    }

    /// See [`scalar::reduce_f64`].
    pub fn reduce_f64(&self, out: &mut [u64], x: &[f64]) {
        assert_eq!(out.len(), x.len());
        with_features!(reduce_f64(self.q, out, x));
    }
}

#[target_feature(enable = "avx2,fma")]
fn add_assign(q: Modulus, a: &mut [u64], b: &[u64]) {
    let (a, a_tail) = a.as_chunks_mut::<4>();
    let (b, b_tail) = b.as_chunks::<4>();
    let p = _mm256_set1_epi64x(q.value() as i64);
    for (a, b) in a.iter_mut().zip(b) {
        let sum = _mm256_add_epi64(_mm256_castpd_si256(load(a)), _mm256_castpd_si256(load(b)));
        let keep = _mm256_cmpgt_epi64(p, sum);
        store(a, _mm256_castsi256_pd(_mm256_sub_epi64(sum, _mm256_andnot_si256(keep, p))));
    }
    scalar::add_assign(q, a_tail, b_tail);
}

#[target_feature(enable = "avx2,fma")]
fn sub_assign(q: Modulus, a: &mut [u64], b: &[u64]) {
    let (a, a_tail) = a.as_chunks_mut::<4>();
    let (b, b_tail) = b.as_chunks::<4>();
    let p = _mm256_set1_epi64x(q.value() as i64);
    for (a, b) in a.iter_mut().zip(b) {
        let diff = _mm256_sub_epi64(_mm256_castpd_si256(load(a)), _mm256_castpd_si256(load(b)));
        let negative = _mm256_cmpgt_epi64(_mm256_setzero_si256(), diff);
        store(a, _mm256_castsi256_pd(_mm256_add_epi64(diff, _mm256_and_si256(negative, p))));
    }
    scalar::sub_assign(q, a_tail, b_tail);
}

#[target_feature(enable = "avx2,fma")]
fn mul_into(q: Modulus, out: &mut [u64], a: &[u64], b: &[u64]) {
    let prime = Prime::new(q.value());
    let run = a.len() / b.len();
    if run > 1 && !a.len().is_multiple_of(4) {
        return scalar::mul_into(q, out, a, b);
    }
    let (out, out_tail) = out.as_chunks_mut::<4>();
    let (a, a_tail) = a.as_chunks::<4>();
    for (i, (out, a)) in out.iter_mut().zip(a).enumerate() {
        store(out, prime.canonical_small(prime.mul(load_int(a), spread(b, run, i))));
    }
    if !out_tail.is_empty() {
        scalar::mul_into(q, out_tail, a_tail, &b[4 * a.len()..]);
    }
}

#[target_feature(enable = "avx2,fma")]
fn mul_scalar_assign(q: Modulus, a: &mut [u64], w: ShoupConstant) {
    let prime = Prime::new(q.value());
    let (w_lane, wp) = constant(q, w.value());
    let (a, tail) = a.as_chunks_mut::<4>();
    for a in a {
        let x = prime.mul_const(load_int(a), w_lane, wp);
        store(a, prime.canonical_small(x));
    }
    scalar::mul_scalar_assign(q, tail, w);
}

#[target_feature(enable = "avx2,fma")]
fn sub_mul_scalar_from(q: Modulus, b: &mut [u64], a: &[u64], w: ShoupConstant) {
    let prime = Prime::new(q.value());
    let (w_lane, wp) = constant(q, w.value());
    let (b, b_tail) = b.as_chunks_mut::<4>();
    let (a, a_tail) = a.as_chunks::<4>();
    for (b, a) in b.iter_mut().zip(a) {
        let diff = _mm256_sub_pd(load_int(a), load_int(b));
        store(b, prime.canonical_small(prime.mul_const(diff, w_lane, wp)));
    }
    scalar::sub_mul_scalar_from(q, b_tail, a_tail, w);
}

#[target_feature(enable = "avx2,fma")]
fn weigh(d: Modulus, y: &mut [u64], x: &[u64], w: ShoupConstant, overflow: &mut [f64]) {
    let prime = Prime::new(d.value());
    let (w_lane, wp) = constant(d, w.value());
    let (y, y_tail) = y.as_chunks_mut::<4>();
    let (x, x_tail) = x.as_chunks::<4>();
    let (v, v_tail) = overflow.as_chunks_mut::<4>();
    for ((y, x), v) in y.iter_mut().zip(x).zip(v) {
        let product = prime.add_if_negative(prime.mul_const(load_int(x), w_lane, wp));
        // Multiplied and added in two steps, as the scalar twin does.
        let sum = _mm256_add_pd(load_f64(v), _mm256_mul_pd(product, prime.inv));
        store(y, to_int(product));
        store_f64(v, sum);
    }
    scalar::weigh(d, y_tail, x_tail, w, v_tail);
}

#[target_feature(enable = "avx2,fma")]
fn round(x: &mut [f64]) {
    let (x, tail) = x.as_chunks_mut::<4>();
    for x in x {
        let rounded = _mm256_round_pd::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(load_f64(x));
        store_f64(x, rounded);
    }
    scalar::round(tail);
}

/// A balanced constant and its quotient in every lane.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn constant(q: Modulus, w: u64) -> (V, V) {
    let balanced = q.center(w) as f64;
    (splat(balanced), splat(balanced / q.value() as f64))
}

/// Entries 4i … 4i+3 of a factor that repeats each of its entries `run` times.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn spread(x: &[u64], run: usize, i: usize) -> V {
    match run {
        1 => load_int(&x.as_chunks::<4>().0[i]),
        2 => {
            let (low, high) = (x[2 * i] as f64, x[2 * i + 1] as f64);
            _mm256_setr_pd(low, low, high, high)
        }
        _ => splat(x[(4 * i) >> run.trailing_zeros()] as f64),
    }
}

#[target_feature(enable = "avx2,fma")]
fn reduce_f64(q: Modulus, out: &mut [u64], x: &[f64]) {
    let prime = Prime::new(q.value());
    let (out, out_tail) = out.as_chunks_mut::<4>();
    let (x, x_tail) = x.as_chunks::<4>();
    let bound = splat(2f64.powi(51));
    let sign = splat(-0.0);
    for (out, x) in out.iter_mut().zip(x) {
        // Adding zero turns a negative zero into a positive one.
        let v = _mm256_add_pd(load_f64(x), _mm256_setzero_pd());
        let large = _mm256_cmp_pd::<_CMP_GE_OQ>(_mm256_andnot_pd(sign, v), bound);
        if _mm256_movemask_pd(large) != 0 {
            scalar::reduce_f64(q, out, x);
        } else {
            store(out, prime.canonical(v));
        }
    }
    scalar::reduce_f64(q, out_tail, x_tail);
}
