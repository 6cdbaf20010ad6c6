//! Four residues in a vector of doubles: loads, stores, exact products and reductions.
//!
//! Bounds are written in units of the prime p < 2^50. "Balanced" values lie in about [-p/2, p/2].

use std::arch::x86_64::*;

/// Four lanes.
pub(super) type V = __m256d;

/// Adding and subtracting 1.5·2^52 rounds any |x| < 2^51 to the nearest integer.
const ROUNDER: f64 = 6_755_399_441_055_744.0;
/// 2^52: its bits, or-ed with an integer below 2^52, are the double of 2^52 plus that integer.
const TWO_52: f64 = 4_503_599_627_370_496.0;

/// A prime and its reciprocal in every lane.
#[derive(Clone, Copy)]
pub(super) struct Prime {
    pub(super) p: V,
    pub(super) inv: V,
}

#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn splat(x: f64) -> V {
    _mm256_set1_pd(x)
}

/// The doubles whose bits are in `x`.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn load(x: &[u64; 4]) -> V {
    // SAFETY: the reference covers the 32 bytes read, and the load needs no alignment.
    unsafe { _mm256_loadu_pd(x.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn load_f64(x: &[f64; 4]) -> V {
    // SAFETY: the reference covers the 32 bytes read, and the load needs no alignment.
    unsafe { _mm256_loadu_pd(x.as_ptr()) }
}

#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn store(out: &mut [u64; 4], x: V) {
    // SAFETY: the reference covers the 32 bytes written, and the store needs no alignment.
    unsafe { _mm256_storeu_pd(out.as_mut_ptr().cast(), x) }
}

#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn store_f64(out: &mut [f64; 4], x: V) {
    // SAFETY: the reference covers the 32 bytes written, and the store needs no alignment.
    unsafe { _mm256_storeu_pd(out.as_mut_ptr(), x) }
}

/// Integers in [0, 2^52) to doubles.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn from_int(x: V) -> V {
    let magic = splat(TWO_52);
    _mm256_sub_pd(_mm256_or_pd(x, magic), magic)
}

/// Integral doubles in [0, 2^52) to integers.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn to_int(x: V) -> V {
    let magic = splat(TWO_52);
    _mm256_xor_pd(_mm256_add_pd(x, magic), magic)
}

/// Loads four integers in [0, 2^52) as doubles.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn load_int(x: &[u64; 4]) -> V {
    from_int(load(x))
}

impl Prime {
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    pub(super) fn new(p: u64) -> Self {
        Self { p: splat(p as f64), inv: splat(1.0 / p as f64) }
    }

    /// a·w for a constant w with quotient wp ≈ w/p; |a·wp| < 2^51. Output at most (1/2 + |a|·2^-53)·p.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    pub(super) fn mul_const(self, a: V, w: V, wp: V) -> V {
        let (rest, low) = self.mul_const_parts(a, w, wp);
        _mm256_add_pd(rest, low)
    }

    /// The two summands of [`Prime::mul_const`]; the second is ready much earlier.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    pub(super) fn mul_const_parts(self, a: V, w: V, wp: V) -> (V, V) {
        let rounder = splat(ROUNDER);
        let h = _mm256_mul_pd(a, w);
        let k = _mm256_sub_pd(_mm256_fmadd_pd(a, wp, rounder), rounder);
        (_mm256_fnmadd_pd(k, self.p, h), _mm256_fmsub_pd(a, w, h))
    }

    /// a·b for |a·b| < p·2^51. Output at most 3/4 + 2^-10 of p.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    pub(super) fn mul(self, a: V, b: V) -> V {
        let rounder = splat(ROUNDER);
        let h = _mm256_mul_pd(a, b);
        let k = _mm256_sub_pd(_mm256_fmadd_pd(h, self.inv, rounder), rounder);
        let l = _mm256_fmsub_pd(a, b, h);
        _mm256_add_pd(_mm256_fnmadd_pd(k, self.p, h), l)
    }

    /// The balanced representative of any integral |a| < 2^53.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    pub(super) fn balance(self, a: V) -> V {
        let rounder = splat(ROUNDER);
        let k = _mm256_sub_pd(_mm256_fmadd_pd(a, self.inv, rounder), rounder);
        _mm256_fnmadd_pd(k, self.p, a)
    }

    /// From [-p, p) to [0, p).
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    pub(super) fn add_if_negative(self, a: V) -> V {
        // Blending looks at the sign bit alone, and no negative zero arises from differences of integers.
        _mm256_blendv_pd(a, _mm256_add_pd(a, self.p), a)
    }

    /// From any integral |a| < 2^53 to the integer in [0, p), ready to store.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    pub(super) fn canonical(self, a: V) -> V {
        to_int(self.add_if_negative(self.balance(a)))
    }

    /// From [-p, p) to the integer in [0, p), ready to store.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    pub(super) fn canonical_small(self, a: V) -> V {
        to_int(self.add_if_negative(a))
    }
}

/// Turns four rows of four into four columns.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn transpose(r: [V; 4]) -> [V; 4] {
    let (a, b) = (_mm256_unpacklo_pd(r[0], r[1]), _mm256_unpackhi_pd(r[0], r[1]));
    let (c, d) = (_mm256_unpacklo_pd(r[2], r[3]), _mm256_unpackhi_pd(r[2], r[3]));
    [
        _mm256_permute2f128_pd::<0x20>(a, c),
        _mm256_permute2f128_pd::<0x20>(b, d),
        _mm256_permute2f128_pd::<0x31>(a, c),
        _mm256_permute2f128_pd::<0x31>(b, d),
    ]
}
