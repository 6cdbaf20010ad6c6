//! Residues in vectors of doubles: conversions, exact products and reductions.
//!
//! Bounds are written in units of the prime p < 2^50. "Balanced" values lie in about [-p/2, p/2].

use super::lanes::Lanes;

/// Adding and subtracting 1.5·2^52 rounds any |x| < 2^51 to the nearest integer.
const ROUNDER: f64 = 6_755_399_441_055_744.0;
/// 2^52: its bits, or-ed with an integer below 2^52, are the double of 2^52 plus that integer.
pub(super) const TWO_52: f64 = 4_503_599_627_370_496.0;
/// Primes below this bound leave so many spare bits that sums may grow over a whole transform and that a
/// rounded quotient tells the floor.
pub(super) const SMALL_PRIME_BOUND: u64 = 1 << 46;

/// A prime, its reciprocal and the constants of rounding in every lane.
#[derive(Clone, Copy)]
pub(super) struct Prime<S: Lanes> {
    pub(super) s: S,
    pub(super) p: S::V,
    pub(super) inv: S::V,
}

/// A constant factor and its quotient by p, in every lane or one per lane.
#[derive(Clone, Copy)]
pub(super) struct Factor<S: Lanes> {
    w: S::V,
    quotient: S::V,
}

/// Integers in [0, 2^52) to doubles.
#[inline(always)]
pub(super) fn from_int<S: Lanes>(s: S, x: S::V) -> S::V {
    let magic = s.splat(TWO_52);
    s.sub(s.or(x, magic), magic)
}

/// Loads integers in [0, 2^52) as doubles.
#[inline(always)]
pub(super) fn load_int<S: Lanes>(s: S, x: &S::Words) -> S::V {
    from_int(s, s.load(x))
}

impl<S: Lanes> Prime<S> {
    #[inline(always)]
    pub(super) fn new(s: S, p: u64) -> Self {
        Self { s, p: s.splat(p as f64), inv: s.splat(1.0 / p as f64) }
    }

    /// Factors of which `w` holds balanced ones.
    #[inline(always)]
    pub(super) fn factor(&self, w: S::V) -> Factor<S> {
        Factor { w, quotient: self.s.mul(w, self.inv) }
    }

    /// a·w for |a| < 2^53. Output at most (1/2 + 3/2·|a|·2^-53)·p.
    #[inline(always)]
    pub(super) fn mul_factor(&self, a: S::V, factor: &Factor<S>) -> S::V {
        let s = self.s;
        let high = s.mul(a, factor.w);
        let k = s.round(s.mul(a, factor.quotient));
        let low = s.mul_sub(a, factor.w, high);
        s.add(s.neg_mul_add(k, self.p, high), low)
    }

    /// As [`Prime::mul_factor`] for |a| ≤ 2^52, with an instruction less. Output at most (1/2 + |a|·2^-53)·p.
    #[inline(always)]
    pub(super) fn mul_factor_short(&self, a: S::V, factor: &Factor<S>) -> S::V {
        let s = self.s;
        let magic = s.splat(ROUNDER);
        let high = s.mul(a, factor.w);
        let k = s.sub(s.mul_add(a, factor.quotient, magic), magic);
        let low = s.mul_sub(a, factor.w, high);
        s.add(s.neg_mul_add(k, self.p, high), low)
    }

    /// a·b for |a·b| < p·2^52. Output at most (1/2 + 3·|a·b|/p·2^-53)·p.
    #[inline(always)]
    pub(super) fn mul(&self, a: S::V, b: S::V) -> S::V {
        let s = self.s;
        let high = s.mul(a, b);
        let k = s.round(s.mul(high, self.inv));
        let low = s.mul_sub(a, b, high);
        s.add(s.neg_mul_add(k, self.p, high), low)
    }

    /// As [`Prime::mul`] for |a·b| < p·2^51, with an instruction less. Output at most (1/2 + |a·b|/p·2^-52)·p.
    #[inline(always)]
    pub(super) fn mul_short(&self, a: S::V, b: S::V) -> S::V {
        let s = self.s;
        let magic = s.splat(ROUNDER);
        let high = s.mul(a, b);
        let k = s.sub(s.mul_add(high, self.inv, magic), magic);
        let low = s.mul_sub(a, b, high);
        s.add(s.neg_mul_add(k, self.p, high), low)
    }

    /// The balanced representative of any integral |a| < 2^53.
    #[inline(always)]
    pub(super) fn balance(&self, a: S::V) -> S::V {
        let s = self.s;
        let magic = s.splat(ROUNDER);
        let k = s.sub(s.mul_add(a, self.inv, magic), magic);
        s.neg_mul_add(k, self.p, a)
    }

    /// From any integral |a| < 2^53 to the integer in [0, p), ready to store.
    #[inline(always)]
    pub(super) fn canonical(&self, a: S::V) -> S::V {
        self.canonical_small(self.balance(a))
    }

    /// From [-p, p) to the integer in [0, p), ready to store.
    #[inline(always)]
    pub(super) fn canonical_small(&self, a: S::V) -> S::V {
        let s = self.s;
        let magic = s.splat(TWO_52);
        // Only the sign bit is looked at, and no negative zero arises from differences of integers.
        let shifted = s.select(a, s.add(a, s.add(self.p, magic)), s.add(a, magic));
        s.xor(shifted, magic)
    }

    /// As [`Prime::canonical`], for p below [`SMALL_PRIME_BOUND`] and |a| < 16p.
    ///
    /// The quotient errs by less than 2^-48 and its fractions are multiples of 1/p > 2^-46, so 2^-47 more than
    /// it has the floor of the exact one.
    #[inline(always)]
    pub(super) fn canonical_floor(&self, a: S::V) -> S::V {
        let s = self.s;
        let magic = s.splat(TWO_52);
        let k = s.floor(s.mul_add(a, self.inv, s.splat(1.0 / (1u64 << 47) as f64)));
        s.xor(s.neg_mul_add(k, self.p, s.add(a, magic)), magic)
    }
}
