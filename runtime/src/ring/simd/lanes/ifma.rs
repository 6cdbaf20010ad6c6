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
        // SAFETY: `self` proves that the CPU has AVX512F, AVX512BW, AVX512DQ, AVX512-IFMA and AVX512-VBMI; references cover what is read.
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
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512ifma,avx512vbmi")]
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

    /// How to unpack residues of at most 50 bits.
    ///
    /// # Panics
    /// When there are more.
    #[inline(always)]
    pub fn unpack(self, bits: usize) -> Unpack {
        assert!(bits <= 50, "residues of more than 50 bits are not packed");
        let index: [u8; 64] = std::array::from_fn(|byte| ((bits * (byte / 8) / 8 + byte % 8) % 64) as u8);
        let shifts: [u64; 8] = std::array::from_fn(|k| (bits * k % 8) as u64);
        ifma!(Unpack {
            bits,
            index: _mm512_loadu_si512(index.as_ptr().cast()),
            shifts: _mm512_loadu_si512(shifts.as_ptr().cast()),
            mask: _mm512_set1_epi64((1 << bits) - 1),
        })
    }

    /// Twice eight packed residues from byte `at` on, after which there are 64 more.
    ///
    /// # Panics
    /// When there are fewer.
    #[inline(always)]
    pub fn unpack_pair(self, bytes: &[u8], at: usize, unpack: &Unpack) -> [__m512d; 2] {
        assert!(bytes.len() >= 128 && at <= bytes.len() - 128, "packed residues are padded");
        // SAFETY: 64 bytes from `at` on and 64 from at + bits on are there, since residues have at most 50 bits.
        let pair = unsafe {
            let first = bytes.as_ptr().add(at);
            [_mm512_loadu_si512(first.cast()), _mm512_loadu_si512(first.add(unpack.bits).cast())]
        };
        [self.words(pair[0], unpack), self.words(pair[1], unpack)]
    }

    #[inline(always)]
    fn words(self, bytes: __m512i, unpack: &Unpack) -> __m512d {
        ifma!({
            let words = _mm512_srlv_epi64(_mm512_permutexvar_epi8(unpack.index, bytes), unpack.shifts);
            _mm512_castsi512_pd(_mm512_and_si512(words, unpack.mask))
        })
    }
}

/// How eight packed residues are brought into place.
#[derive(Clone, Copy, Debug)]
pub struct Unpack {
    bits: usize,
    /// For each byte of the eight words, where it comes from.
    index: __m512i,
    /// Bits before each residue.
    shifts: __m512i,
    mask: __m512i,
}

impl Unpack {
    /// Bits of a residue, and bytes of eight.
    #[inline(always)]
    pub fn bits(&self) -> usize {
        self.bits
    }
}
