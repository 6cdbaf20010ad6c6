//! The loops of element-wise kernels for one prime below 2^50, for any vectors; each has the bits of its twin in [`scalar`].

use super::lanes::{Lanes, bits};
use super::prime::{Factor, Prime, from_int, load_int};
use crate::modulus::{Modulus, ShoupConstant};
use crate::scalar;

pub(crate) fn mul_into<S: Lanes>(s: S, q: Modulus, out: &mut [u64], a: &[u64], b: &[u64]) {
    let run = a.len() / b.len();
    if run > 1 && !a.len().is_multiple_of(S::WIDTH) {
        return scalar::mul_into(q, out, a, b);
    }
    let (out, out_tail) = S::words_mut(out);
    let (a, a_tail) = S::words(a);
    s.run(
        #[inline(always)]
        || {
            let prime = Prime::new(s, q.value());
            for (i, (out, a)) in out.iter_mut().zip(a).enumerate() {
                let b = from_int(s, s.load_runs(b, run, i));
                s.store(out, prime.canonical_small(prime.mul_short(load_int(s, a), b)));
            }
        },
    );
    if !out_tail.is_empty() {
        scalar::mul_into(q, out_tail, a_tail, &b[S::WIDTH * a.len()..]);
    }
}

pub(crate) fn mul_assign<S: Lanes>(s: S, q: Modulus, a: &mut [u64], b: &[u64]) {
    let run = a.len() / b.len();
    if run > 1 && !a.len().is_multiple_of(S::WIDTH) {
        return scalar::mul_assign(q, a, b);
    }
    let (a, tail) = S::words_mut(a);
    s.run(
        #[inline(always)]
        || {
            let prime = Prime::new(s, q.value());
            for (i, a) in a.iter_mut().enumerate() {
                let b = from_int(s, s.load_runs(b, run, i));
                s.store(a, prime.canonical_small(prime.mul_short(load_int(s, a), b)));
            }
        },
    );
    if !tail.is_empty() {
        scalar::mul_assign(q, tail, &b[S::WIDTH * a.len()..]);
    }
}

pub(crate) fn square_into<S: Lanes>(s: S, q: Modulus, out: [&mut [u64]; 3], a: [&[u64]; 2]) {
    let [(c0, t0), (c1, t1), (c2, t2)] = out.map(S::words_mut);
    let [(a0, u0), (a1, u1)] = a.map(S::words);
    s.run(
        #[inline(always)]
        || {
            let prime = Prime::new(s, q.value());
            for ((((c0, c1), c2), a0), a1) in c0.iter_mut().zip(c1).zip(c2).zip(a0).zip(a1) {
                let (a0, a1) = (load_int(s, a0), load_int(s, a1));
                s.store(c0, prime.canonical_small(prime.mul(a0, a0)));
                s.store(c1, prime.canonical(prime.mul(s.add(a0, a0), a1)));
                s.store(c2, prime.canonical_small(prime.mul(a1, a1)));
            }
        },
    );
    scalar::square_into(q, [t0, t1, t2], [u0, u1]);
}

pub(crate) fn mul_scalar_assign<S: Lanes>(s: S, q: Modulus, a: &mut [u64], w: ShoupConstant) {
    let (a, tail) = S::words_mut(a);
    s.run(
        #[inline(always)]
        || {
            let prime = Prime::new(s, q.value());
            let factor = constant(&prime, q, w);
            for a in a {
                s.store(a, prime.canonical_small(prime.mul_factor(load_int(s, a), &factor)));
            }
        },
    );
    scalar::mul_scalar_assign(q, tail, w);
}

pub(crate) fn sub_mul_scalar_from<S: Lanes>(s: S, q: Modulus, b: &mut [u64], a: &[u64], w: ShoupConstant) {
    let (b, b_tail) = S::words_mut(b);
    let (a, a_tail) = S::words(a);
    s.run(
        #[inline(always)]
        || {
            let prime = Prime::new(s, q.value());
            let factor = constant(&prime, q, w);
            for (b, a) in b.iter_mut().zip(a) {
                let difference = s.sub(load_int(s, a), load_int(s, b));
                s.store(b, prime.canonical_small(prime.mul_factor(difference, &factor)));
            }
        },
    );
    scalar::sub_mul_scalar_from(q, b_tail, a_tail, w);
}

pub(crate) fn reduce_f64<S: Lanes>(s: S, q: Modulus, out: &mut [u64], x: &[f64]) {
    let (out, out_tail) = S::words_mut(out);
    let (vectors, x_tail) = S::words(bits(x));
    let x_tail = &x[x.len() - x_tail.len()..];
    s.run(
        #[inline(always)]
        || {
            let prime = Prime::new(s, q.value());
            let bound = s.splat(2f64.powi(51));
            for (i, (out, v)) in out.iter_mut().zip(vectors).enumerate() {
                // Adding zero turns a negative zero into a positive one.
                let v = s.add(s.load(v), s.splat(0.0));
                if s.all_below(v, bound) {
                    s.store(out, prime.canonical(v));
                } else {
                    *out = S::words_from(|lane| q.reduce_f64(x[S::WIDTH * i + lane]));
                }
            }
        },
    );
    scalar::reduce_f64(q, out_tail, x_tail);
}

/// A constant in every lane.
#[inline(always)]
fn constant<S: Lanes>(prime: &Prime<S>, q: Modulus, w: ShoupConstant) -> Factor<S> {
    prime.factor(prime.s.splat(q.center(w.value()) as f64))
}
