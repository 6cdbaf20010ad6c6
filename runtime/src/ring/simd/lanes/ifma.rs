//! Products of 52-bit integers in eight lanes: AVX512-IFMA.

use std::arch::x86_64::*;

use super::Avx512;

/// Proof that the CPU has AVX512-IFMA and AVX512-VBMI besides what [`Avx512`] proves.
///
/// Integers are passed as the bits of doubles, as elsewhere.
#[derive(Clone, Copy, Debug)]
pub struct Ifma(Avx512);

/// Calls instructions that the token allows.
macro_rules! ifma {
    ($call:expr) => {{
        // SAFETY: `self` proves that the CPU has AVX512F, AVX512DQ, AVX512-IFMA and AVX512-VBMI; references cover what is read.
        unsafe { $call }
    }};
}

impl Ifma {
    /// Asks the CPU.
    pub fn detect() -> Option<Self> {
        let found = std::arch::is_x86_feature_detected!("avx512ifma")
            && std::arch::is_x86_feature_detected!("avx512vbmi");
        found.then(Avx512::detect).flatten().map(Self)
    }

    /// The eight lanes.
    #[inline(always)]
    pub fn lanes(self) -> Avx512 {
        self.0
    }

    /// As [`super::Lanes::run`], with these instructions too.
    #[inline(always)]
    pub fn run<R>(self, f: impl FnOnce() -> R) -> R {
        #[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi")]
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

    /// Eight packed residues; at least 64 bytes are there.
    ///
    /// # Panics
    /// When there are fewer.
    #[inline(always)]
    pub fn unpack(self, bytes: &[u8], unpack: &Unpack) -> __m512d {
        let bytes: &[u8; 64] = bytes.first_chunk().expect("packed residues are padded");
        ifma!({
            let index = _mm512_loadu_si512(unpack.index.as_ptr().cast());
            let shifts = _mm512_loadu_si512(unpack.shifts.as_ptr().cast());
            let words = _mm512_permutexvar_epi8(index, _mm512_loadu_si512(bytes.as_ptr().cast()));
            let mask = _mm512_set1_epi64(unpack.mask as i64);
            _mm512_castsi512_pd(_mm512_and_si512(_mm512_srlv_epi64(words, shifts), mask))
        })
    }
}

/// How eight packed residues are brought into place.
#[derive(Clone, Debug)]
pub struct Unpack {
    bits: usize,
    /// For each byte of the eight words, where it comes from.
    index: [u8; 64],
    /// Bits before each residue.
    shifts: [u64; 8],
    mask: u64,
}

impl Unpack {
    /// For residues of at most 50 bits.
    ///
    /// # Panics
    /// When there are more.
    pub fn new(bits: usize) -> Self {
        assert!(bits <= 50, "residues of more than 50 bits are not packed");
        Self {
            bits,
            index: std::array::from_fn(|byte| ((bits * (byte / 8) / 8 + byte % 8) % 64) as u8),
            shifts: std::array::from_fn(|k| (bits * k % 8) as u64),
            mask: (1 << bits) - 1,
        }
    }

    /// Bits of a residue, and bytes of eight.
    #[inline(always)]
    pub fn bits(&self) -> usize {
        self.bits
    }
}
