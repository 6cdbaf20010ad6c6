//! Where the first pass of a forward transform reads, and what its last pass writes.

use crate::simd::lanes::Lanes;
use crate::simd::prime::{Factor, Prime, TWO_52, from_int, load_int};

/// Coefficients of a transform: vector by vector, balanced or not, at most 4p in magnitude below
/// [`SMALL_PRIME_BOUND`](crate::simd::prime::SMALL_PRIME_BOUND) and 15/8·p above.
pub(super) trait Source<S: Lanes> {
    /// Vector `i`; `own` is what the output holds there.
    fn read<const LARGE: bool>(&self, prime: &Prime<S>, i: usize, own: &S::Words) -> S::V;
}

/// What becomes of the values of a transform.
pub(super) trait Sink<S: Lanes> {
    /// Integers to store as vector `i` of a piece, for values below 16p (small primes) or 2^53.
    fn finish<const LARGE: bool>(&self, prime: &Prime<S>, i: usize, x: S::V) -> S::V;
}

/// Integers that the output already holds.
pub(super) struct InPlace;

impl<S: Lanes> Source<S> for InPlace {
    #[inline(always)]
    fn read<const LARGE: bool>(&self, prime: &Prime<S>, _: usize, own: &S::Words) -> S::V {
        load_int(prime.s, own)
    }
}

/// Integral doubles.
pub(super) struct Doubles<'a, S: Lanes>(pub(super) &'a [S::Words]);

impl<S: Lanes> Source<S> for Doubles<'_, S> {
    #[inline(always)]
    fn read<const LARGE: bool>(&self, prime: &Prime<S>, i: usize, _: &S::Words) -> S::V {
        prime.s.load(&self.0[i])
    }
}

/// Integers of 32 bits.
pub(super) struct Narrow<'a>(pub(super) &'a [i32]);

impl<S: Lanes> Source<S> for Narrow<'_> {
    #[inline(always)]
    fn read<const LARGE: bool>(&self, prime: &Prime<S>, i: usize, _: &S::Words) -> S::V {
        prime.s.load_narrow(self.0, i)
    }
}

/// A base conversion: Σ yₖ·cₖ for doubles yₖ below 2^50 in magnitude. Each product is at most 5/8·p.
pub(super) struct Converted<'a, S: Lanes, const K: usize> {
    pub(super) y: [&'a [S::Words]; K],
    pub(super) constants: [Factor<S>; K],
}

impl<S: Lanes, const K: usize> Source<S> for Converted<'_, S, K> {
    #[inline(always)]
    fn read<const LARGE: bool>(&self, prime: &Prime<S>, i: usize, _: &S::Words) -> S::V {
        let s = prime.s;
        let mut sum = prime.mul_factor_short(s.load(&self.y[0][i]), &self.constants[0]);
        for k in 1..K {
            sum = s.add(sum, prime.mul_factor_short(s.load(&self.y[k][i]), &self.constants[k]));
        }
        if LARGE && K > 3 { prime.balance(sum) } else { sum }
    }
}

/// [`Converted`] from any number of sources.
pub(super) struct ConvertedMany<'a, S: Lanes> {
    pub(super) y: &'a [&'a [S::Words]],
    pub(super) constants: &'a [Factor<S>],
}

impl<S: Lanes> Source<S> for ConvertedMany<'_, S> {
    #[inline(always)]
    fn read<const LARGE: bool>(&self, prime: &Prime<S>, i: usize, _: &S::Words) -> S::V {
        let s = prime.s;
        let mut sum = s.splat(0.0);
        for (y, constant) in self.y.iter().zip(self.constants) {
            sum = prime.balance(s.add(sum, prime.mul_factor_short(s.load(&y[i]), constant)));
        }
        sum
    }
}

/// The doubles as they are, balanced for large primes; only for inner products.
pub(super) struct AsDoubles;

impl<S: Lanes> Sink<S> for AsDoubles {
    #[inline(always)]
    fn finish<const LARGE: bool>(&self, prime: &Prime<S>, _: usize, x: S::V) -> S::V {
        if LARGE { prime.balance(x) } else { x }
    }
}

/// The doubles shifted by 2^52 and so many times p that none is negative; only for inner products.
pub(super) struct Shifted;

impl<S: Lanes> Sink<S> for Shifted {
    #[inline(always)]
    fn finish<const LARGE: bool>(&self, prime: &Prime<S>, _: usize, x: S::V) -> S::V {
        let s = prime.s;
        let x = if LARGE { prime.balance(x) } else { x };
        let shift = s.mul_add(prime.p, s.splat(if LARGE { 1.0 } else { 16.0 }), s.splat(TWO_52));
        s.add(x, shift)
    }
}

/// The residues in [0, p).
pub(super) struct Residues;

impl<S: Lanes> Sink<S> for Residues {
    #[inline(always)]
    fn finish<const LARGE: bool>(&self, prime: &Prime<S>, _: usize, x: S::V) -> S::V {
        if LARGE { prime.canonical(x) } else { prime.canonical_floor(x) }
    }
}

/// (a - x)·w.
pub(super) struct Divided<'a, S: Lanes> {
    pub(super) a: &'a [S::Words],
    pub(super) w: Factor<S>,
}

impl<S: Lanes> Sink<S> for Divided<'_, S> {
    #[inline(always)]
    fn finish<const LARGE: bool>(&self, prime: &Prime<S>, i: usize, x: S::V) -> S::V {
        let s = prime.s;
        let a = from_int(s, s.load(&self.a[i]));
        let difference = s.sub(a, if LARGE { prime.balance(x) } else { x });
        prime.canonical_small(prime.mul_factor_short(difference, &self.w))
    }
}
