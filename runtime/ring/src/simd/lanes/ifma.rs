//! Products of 52-bit integers in eight lanes: AVX512-IFMA.

use std::arch::x86_64::*;

use super::Avx512;

/// Proof that the CPU has AVX512-IFMA besides what [`Avx512`] proves.
///
/// Integers are passed as the bits of doubles, as elsewhere.
#[derive(Clone, Copy, Debug)]
pub struct Ifma(Avx512);

/// Calls instructions that the token allows.
macro_rules! ifma {
    ($call:expr) => {{
        // SAFETY: `self` proves that the CPU has AVX512F, AVX512BW, AVX512DQ and AVX512-IFMA.
        unsafe { $call }
    }};
}

impl Ifma {
    /// Asks the CPU.
    pub fn detect() -> Option<Self> {
        std::arch::is_x86_feature_detected!("avx512ifma").then(Avx512::detect).flatten().map(Self)
    }

    /// The eight lanes.
    #[inline(always)]
    pub fn lanes(self) -> Avx512 {
        self.0
    }

    /// As [`super::Lanes::run`], with these instructions too.
    #[inline(always)]
    pub fn run<R>(self, f: impl FnOnce() -> R) -> R {
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512ifma")]
        fn with_features<R>(f: impl FnOnce() -> R) -> R {
            f()
        }
        ifma!(with_features(f))
    }

    /// sum + the low 52 bits of the product of the low 52 bits of a and b.
    #[inline(always)]
    pub fn add_low(self, sum: __m512d, a: __m512d, b: __m512d) -> __m512d {
        ifma!(_mm512_castsi512_pd(_mm512_madd52lo_epu64(
            _mm512_castpd_si512(sum),
            _mm512_castpd_si512(a),
            _mm512_castpd_si512(b)
        )))
    }

    /// sum + bits 52 to 103 of the product of the low 52 bits of a and b.
    #[inline(always)]
    pub fn add_high(self, sum: __m512d, a: __m512d, b: __m512d) -> __m512d {
        ifma!(_mm512_castsi512_pd(_mm512_madd52hi_epu64(
            _mm512_castpd_si512(sum),
            _mm512_castpd_si512(a),
            _mm512_castpd_si512(b)
        )))
    }

    /// The bits of each integer from bit 52 on.
    #[inline(always)]
    pub fn above_52(self, x: __m512d) -> __m512d {
        ifma!(_mm512_castsi512_pd(_mm512_srli_epi64::<52>(_mm512_castpd_si512(x))))
    }

    /// The low 52 bits of each integer.
    #[inline(always)]
    pub fn below_52(self, x: __m512d) -> __m512d {
        ifma!(_mm512_castsi512_pd(_mm512_and_si512(_mm512_castpd_si512(x), _mm512_set1_epi64((1 << 52) - 1))))
    }
}
