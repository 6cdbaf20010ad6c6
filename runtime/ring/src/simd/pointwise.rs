//! Element-wise kernels for one prime below 2^50, with the vectors that the CPU has.

use super::dot::FmaDot;
use super::elementwise::{
    mul_assign, mul_into, mul_scalar_assign, reduce_f64, square_into, sub_mul_scalar_from,
};
use super::lanes::{Ifma, Lanes};
use super::packed::{IntegerDot, is_reduced, unpack};
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

    /// Whether packed residues are below the prime.
    pub fn is_reduced(&self, packed: Packed<'_>) -> bool {
        with_width!(self.width, s => is_reduced(s, self.q, packed))
    }

    /// See [`scalar::reduce_f64`].
    pub fn reduce_f64(&self, out: &mut [u64], x: &[f64]) {
        assert_eq!(out.len(), x.len());
        with_width!(self.width, s => reduce_f64(s, self.q, out, x));
    }
}
