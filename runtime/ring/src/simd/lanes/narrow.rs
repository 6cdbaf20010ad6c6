//! Integers of 32 bits, two in each lane.

use std::arch::x86_64::*;

use super::{Avx2, Avx512, Lanes};

/// What stream ciphers ask of a vector.
pub(crate) trait Narrow: Lanes {
    /// a + b.
    fn add_narrow(self, a: Self::V, b: Self::V) -> Self::V;
    /// The integers, rotated to the left by so many bits; `RIGHT` is what is missing to 32.
    fn rotate_narrow<const LEFT: u32, const RIGHT: u32>(self, a: Self::V) -> Self::V;
    /// The lower integers of both, those of `a` below.
    fn lower(self, a: Self::V, b: Self::V) -> Self::V;
    /// The upper integers of both, those of `a` below.
    fn upper(self, a: Self::V, b: Self::V) -> Self::V;
}

/// Calls instructions of this width on doubles that are integers.
macro_rules! integers {
    ($from:ident, $to:ident, |$($x:ident),*| $call:expr) => {{
        // SAFETY: `self` proves that the CPU has the instructions of its width.
        unsafe {
            $(let $x = $from($x);)*
            $to($call)
        }
    }};
}

impl Narrow for Avx512 {
    #[inline(always)]
    fn add_narrow(self, a: __m512d, b: __m512d) -> __m512d {
        integers!(_mm512_castpd_si512, _mm512_castsi512_pd, |a, b| _mm512_add_epi32(a, b))
    }

    #[inline(always)]
    fn rotate_narrow<const LEFT: u32, const RIGHT: u32>(self, a: __m512d) -> __m512d {
        integers!(_mm512_castpd_si512, _mm512_castsi512_pd, |a| _mm512_or_si512(
            _mm512_slli_epi32::<LEFT>(a),
            _mm512_srli_epi32::<RIGHT>(a)
        ))
    }

    #[inline(always)]
    fn lower(self, a: __m512d, b: __m512d) -> __m512d {
        integers!(_mm512_castpd_si512, _mm512_castsi512_pd, |a, b| _mm512_mask_blend_epi32(
            0xAAAA,
            a,
            _mm512_slli_epi64::<32>(b)
        ))
    }

    #[inline(always)]
    fn upper(self, a: __m512d, b: __m512d) -> __m512d {
        integers!(_mm512_castpd_si512, _mm512_castsi512_pd, |a, b| _mm512_mask_blend_epi32(
            0xAAAA,
            _mm512_srli_epi64::<32>(a),
            b
        ))
    }
}

impl Narrow for Avx2 {
    #[inline(always)]
    fn add_narrow(self, a: __m256d, b: __m256d) -> __m256d {
        integers!(_mm256_castpd_si256, _mm256_castsi256_pd, |a, b| _mm256_add_epi32(a, b))
    }

    #[inline(always)]
    fn rotate_narrow<const LEFT: u32, const RIGHT: u32>(self, a: __m256d) -> __m256d {
        integers!(_mm256_castpd_si256, _mm256_castsi256_pd, |a| _mm256_or_si256(
            _mm256_sll_epi32(a, _mm_cvtsi32_si128(LEFT as i32)),
            _mm256_srl_epi32(a, _mm_cvtsi32_si128(RIGHT as i32))
        ))
    }

    #[inline(always)]
    fn lower(self, a: __m256d, b: __m256d) -> __m256d {
        integers!(_mm256_castpd_si256, _mm256_castsi256_pd, |a, b| _mm256_blend_epi32::<0xAA>(
            a,
            _mm256_slli_epi64::<32>(b)
        ))
    }

    #[inline(always)]
    fn upper(self, a: __m256d, b: __m256d) -> __m256d {
        integers!(_mm256_castpd_si256, _mm256_castsi256_pd, |a, b| _mm256_blend_epi32::<0xAA>(
            _mm256_srli_epi64::<32>(a),
            b
        ))
    }
}
