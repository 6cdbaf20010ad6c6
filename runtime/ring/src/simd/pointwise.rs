//! Element-wise kernels for one prime below 2^50.

use super::dot::FmaDot;
use super::lanes::{Ifma, Lanes, bits, bits_mut};
use super::packed::{IntegerDot, unpack};
use super::prime::{Factor, Prime, from_int, load_int};
use super::width::with_width;
use super::{FMA_PRIME_BOUND, Width};
use crate::modulus::{Modulus, ShoupConstant};
use crate::packed::Packed;
use crate::scalar::{self, End, PackedTerm, Start, Term};
use crate::words::Held;

/// Element-wise operations in double precision; every result has the bits of [`scalar`].
#[derive(Clone, Debug)]
pub struct FmaPointwise {
    width: Width,
    q: Modulus,
    dot: FmaDot,
    /// Products with packed factors in integers, where the CPU has them.
    integer: Option<IntegerDot>,
}

impl FmaPointwise {
    /// Kernels for a prime below [`FMA_PRIME_BOUND`].
    ///
    /// # Panics
    /// When the prime is too large.
    pub fn new(width: Width, integer: Option<Ifma>, q: Modulus) -> Self {
        assert!(q.value() < FMA_PRIME_BOUND, "prime too large for double precision");
        let integer = integer.map(|token| IntegerDot::new(token, q));
        Self { width, q, dot: FmaDot::new(q), integer }
    }

    /// See [`scalar::add_into`]; the compiler vectorizes it.
    pub fn add_into(&self, out: &mut [u64], a: &[u64], b: &[u64]) {
        with_width!(self.width, s => s.run(#[inline(always)] || scalar::add_into(self.q, out, a, b)));
    }

    /// See [`scalar::add_assign`]; the compiler vectorizes it.
    pub fn add_assign(&self, a: &mut [u64], b: &[u64]) {
        with_width!(self.width, s => s.run(#[inline(always)] || scalar::add_assign(self.q, a, b)));
    }

    /// See [`scalar::sub_assign`]; the compiler vectorizes it.
    pub fn sub_assign(&self, a: &mut [u64], b: &[u64]) {
        with_width!(self.width, s => s.run(#[inline(always)] || scalar::sub_assign(self.q, a, b)));
    }

    /// See [`scalar::mul_into`].
    pub fn mul_into(&self, out: &mut [u64], a: &[u64], b: &[u64]) {
        assert!(out.len() == a.len() && a.len().is_multiple_of(b.len()));
        with_width!(self.width, s => mul_into(s, self.q, out, a, b));
    }

    /// See [`scalar::mul_assign`].
    pub fn mul_assign(&self, a: &mut [u64], b: &[u64]) {
        assert!(a.len().is_multiple_of(b.len()));
        with_width!(self.width, s => mul_assign(s, self.q, a, b));
    }

    /// See [`scalar::square_into`].
    pub fn square_into(&self, out: [&mut [u64]; 3], a: [&[u64]; 2]) {
        assert!(out.iter().all(|out| out.len() == a[0].len()) && a[0].len() == a[1].len());
        with_width!(self.width, s => square_into(s, self.q, out, a));
    }

    /// See [`scalar::mul_scalar_assign`].
    pub fn mul_scalar_assign(&self, a: &mut [u64], w: ShoupConstant) {
        with_width!(self.width, s => mul_scalar_assign(s, self.q, a, w));
    }

    /// See [`scalar::sub_mul_scalar_from`].
    pub fn sub_mul_scalar_from(&self, b: &mut [u64], a: &[u64], w: ShoupConstant) {
        assert_eq!(a.len(), b.len());
        with_width!(self.width, s => sub_mul_scalar_from(s, self.q, b, a, w));
    }

    /// See [`scalar::dot2`].
    pub fn dot2(&self, sums: [&mut [u64]; 2], terms: &[Term<'_>], start: Start<'_>) {
        match self.integer.filter(|_| IntegerDot::takes(sums[0].len(), terms)) {
            Some(integer) => integer.dot2(sums, terms, start),
            None => with_width!(self.width, s => self.dot.dot2(s, sums, terms, start)),
        }
    }

    /// What [`FmaPointwise::dot2_packed`] takes besides residues.
    pub fn packed_end(&self) -> End<'static> {
        if self.integer.is_some() { End::Shifted } else { End::Doubles }
    }

    /// See [`scalar::dot2_packed`].
    pub fn dot2_packed(&self, sums: [&mut [u64]; 2], terms: &[PackedTerm<'_>], start: Start<'_>) {
        let len = sums[0].len();
        if let Some(integer) = self.integer.filter(|_| len.is_multiple_of(16)) {
            return integer.dot2_packed(sums, terms, start);
        }
        with_width!(self.width, s => self.dot.dot2_packed(s, sums, terms, start));
    }

    /// Packed residues as factors next to what [`FmaPointwise::packed_end`] leaves, in the form that this gives.
    pub fn unpack(&self, out: &mut [u64], packed: Packed<'_>) -> Held {
        let held = if self.integer.is_some() { Held::Integers } else { Held::Doubles };
        with_width!(self.width, s => unpack(s, out, packed, held));
        held
    }

    /// See [`scalar::round`].
    pub fn round(&self, x: &mut [f64]) {
        with_width!(self.width, s => round(s, x));
    }

    /// See [`scalar::reduce_f64`].
    pub fn reduce_f64(&self, out: &mut [u64], x: &[f64]) {
        assert_eq!(out.len(), x.len());
        with_width!(self.width, s => reduce_f64(s, self.q, out, x));
    }
}

fn mul_into<S: Lanes>(s: S, q: Modulus, out: &mut [u64], a: &[u64], b: &[u64]) {
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

fn mul_assign<S: Lanes>(s: S, q: Modulus, a: &mut [u64], b: &[u64]) {
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

fn square_into<S: Lanes>(s: S, q: Modulus, out: [&mut [u64]; 3], a: [&[u64]; 2]) {
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

fn mul_scalar_assign<S: Lanes>(s: S, q: Modulus, a: &mut [u64], w: ShoupConstant) {
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

fn sub_mul_scalar_from<S: Lanes>(s: S, q: Modulus, b: &mut [u64], a: &[u64], w: ShoupConstant) {
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

fn round<S: Lanes>(s: S, x: &mut [f64]) {
    let (vectors, tail) = S::words_mut(bits_mut(x));
    s.run(
        #[inline(always)]
        || {
            vectors.iter_mut().for_each(
                #[inline(always)]
                |x| s.store(x, s.round(s.load(x))),
            )
        },
    );
    let tail = tail.len();
    let start = x.len() - tail;
    scalar::round(&mut x[start..]);
}

fn reduce_f64<S: Lanes>(s: S, q: Modulus, out: &mut [u64], x: &[f64]) {
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
