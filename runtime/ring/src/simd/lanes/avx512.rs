//! Eight lanes: AVX512F, AVX512BW and AVX512DQ.

use std::arch::x86_64::*;

use super::Lanes;

/// Proof that the CPU has AVX512F, AVX512BW and AVX512DQ.
#[derive(Clone, Copy, Debug)]
pub struct Avx512(());

impl Avx512 {
    /// Asks the CPU.
    pub fn detect() -> Option<Self> {
        let found = std::arch::is_x86_feature_detected!("avx512f")
            && std::arch::is_x86_feature_detected!("avx512bw")
            && std::arch::is_x86_feature_detected!("avx512dq");
        found.then_some(Self(()))
    }
}

/// How eight packed residues are brought into place.
#[derive(Clone, Copy, Debug)]
pub struct Unpacker {
    bits: usize,
    /// For each 16 bits of the eight words, where they come from.
    index: __m512i,
    /// Bits before each residue.
    shifts: __m512i,
    mask: __m512i,
}

/// Calls instructions of this width.
macro_rules! avx512 {
    ($call:expr) => {{
        // SAFETY: `self` proves that the CPU has AVX512F, AVX512BW and AVX512DQ; references cover the bytes
        // that are read or written.
        unsafe { $call }
    }};
}

impl Lanes for Avx512 {
    type V = __m512d;
    type Unpacker = Unpacker;
    type Words = [u64; 8];
    const WIDTH: usize = 8;

    #[inline(always)]
    fn run<R>(self, f: impl FnOnce() -> R) -> R {
        #[target_feature(enable = "avx512f,avx512bw,avx512dq")]
        fn with_features<R>(f: impl FnOnce() -> R) -> R {
            f()
        }
        avx512!(with_features(f))
    }

    #[inline(always)]
    fn words(x: &[u64]) -> (&[[u64; 8]], &[u64]) {
        x.as_chunks()
    }

    #[inline(always)]
    fn words_mut(x: &mut [u64]) -> (&mut [[u64; 8]], &mut [u64]) {
        x.as_chunks_mut()
    }

    #[inline(always)]
    fn words_from(f: impl Fn(usize) -> u64) -> [u64; 8] {
        std::array::from_fn(f)
    }

    #[inline(always)]
    fn load(self, x: &[u64; 8]) -> __m512d {
        avx512!(_mm512_loadu_pd(x.as_ptr().cast()))
    }

    #[inline(always)]
    fn store(self, out: &mut [u64; 8], x: __m512d) {
        avx512!(_mm512_storeu_pd(out.as_mut_ptr().cast(), x))
    }

    #[inline(always)]
    fn splat(self, x: f64) -> __m512d {
        avx512!(_mm512_set1_pd(x))
    }

    #[inline(always)]
    fn add(self, a: __m512d, b: __m512d) -> __m512d {
        avx512!(_mm512_add_pd(a, b))
    }

    #[inline(always)]
    fn sub(self, a: __m512d, b: __m512d) -> __m512d {
        avx512!(_mm512_sub_pd(a, b))
    }

    #[inline(always)]
    fn mul(self, a: __m512d, b: __m512d) -> __m512d {
        avx512!(_mm512_mul_pd(a, b))
    }

    #[inline(always)]
    fn mul_add(self, a: __m512d, b: __m512d, c: __m512d) -> __m512d {
        avx512!(_mm512_fmadd_pd(a, b, c))
    }

    #[inline(always)]
    fn mul_sub(self, a: __m512d, b: __m512d, c: __m512d) -> __m512d {
        avx512!(_mm512_fmsub_pd(a, b, c))
    }

    #[inline(always)]
    fn neg_mul_add(self, a: __m512d, b: __m512d, c: __m512d) -> __m512d {
        avx512!(_mm512_fnmadd_pd(a, b, c))
    }

    #[inline(always)]
    fn round(self, a: __m512d) -> __m512d {
        avx512!(_mm512_roundscale_pd::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(a))
    }

    #[inline(always)]
    fn floor(self, a: __m512d) -> __m512d {
        avx512!(_mm512_roundscale_pd::<{ _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC }>(a))
    }

    #[inline(always)]
    fn or(self, a: __m512d, b: __m512d) -> __m512d {
        avx512!(_mm512_or_pd(a, b))
    }

    #[inline(always)]
    fn xor(self, a: __m512d, b: __m512d) -> __m512d {
        avx512!(_mm512_xor_pd(a, b))
    }

    #[inline(always)]
    fn add_words(self, a: __m512d, b: __m512d) -> __m512d {
        avx512!(_mm512_castsi512_pd(_mm512_add_epi64(_mm512_castpd_si512(a), _mm512_castpd_si512(b))))
    }

    #[inline(always)]
    fn select(self, sign: __m512d, negative: __m512d, other: __m512d) -> __m512d {
        avx512!(_mm512_mask_blend_pd(_mm512_movepi64_mask(_mm512_castpd_si512(sign)), other, negative))
    }

    #[inline(always)]
    fn all_below(self, a: __m512d, bound: __m512d) -> bool {
        avx512!(_mm512_cmp_pd_mask::<_CMP_LT_OQ>(_mm512_abs_pd(a), bound)) == 0xFF
    }

    #[inline(always)]
    fn load_narrow(self, x: &[i32], i: usize) -> __m512d {
        let eight: &[i32; 8] = &x.as_chunks().0[i];
        avx512!(_mm512_cvtepi32_pd(_mm256_loadu_si256(eight.as_ptr().cast())))
    }

    #[inline(always)]
    fn load_runs(self, x: &[u64], run: usize, i: usize) -> __m512d {
        match run {
            1 => self.load(&x.as_chunks().0[i]),
            2 => {
                let four: &[u64; 4] = &x.as_chunks().0[i];
                avx512!({
                    let four = _mm512_castpd256_pd512(_mm256_loadu_pd(four.as_ptr().cast()));
                    _mm512_permutexvar_pd(_mm512_setr_epi64(0, 0, 1, 1, 2, 2, 3, 3), four)
                })
            }
            4 => {
                let two: &[u64; 2] = &x.as_chunks().0[i];
                avx512!({
                    let two = _mm512_castpd128_pd512(_mm_loadu_pd(two.as_ptr().cast()));
                    _mm512_permutexvar_pd(_mm512_setr_epi64(0, 0, 0, 0, 1, 1, 1, 1), two)
                })
            }
            _ => self.splat(f64::from_bits(x[(8 * i) >> run.trailing_zeros()])),
        }
    }

    #[inline(always)]
    fn unpacker(self, bits: usize) -> Unpacker {
        assert!(bits <= 50, "residues of more than 50 bits are not packed");
        // A residue starts in the first of four 16-bit words, of which 64 bits are enough for any number of bits up to 50.
        let index: [u16; 32] = std::array::from_fn(|word| ((bits * (word / 4) / 16 + word % 4) % 32) as u16);
        let shifts: [u64; 8] = std::array::from_fn(|k| (bits * k % 16) as u64);
        avx512!(Unpacker {
            bits,
            index: _mm512_loadu_si512(index.as_ptr().cast()),
            shifts: _mm512_loadu_si512(shifts.as_ptr().cast()),
            mask: _mm512_set1_epi64((1 << bits) - 1),
        })
    }

    #[inline(always)]
    fn unpack_pair(self, bytes: &[u8], at: usize, unpacker: &Unpacker) -> [__m512d; 2] {
        assert!(bytes.len() >= 128 && at <= bytes.len() - 128, "packed residues are padded");
        let Unpacker { bits, index, shifts, mask } = unpacker;
        // SAFETY: 64 bytes from `at` on and 64 from at + bits on are there, since residues have at most 50 bits.
        let pair = unsafe {
            let first = bytes.as_ptr().add(at);
            [_mm512_loadu_si512(first.cast()), _mm512_loadu_si512(first.add(*bits).cast())]
        };
        avx512!([
            _mm512_castsi512_pd(_mm512_and_si512(
                _mm512_srlv_epi64(_mm512_permutexvar_epi16(*index, pair[0]), *shifts),
                *mask
            )),
            _mm512_castsi512_pd(_mm512_and_si512(
                _mm512_srlv_epi64(_mm512_permutexvar_epi16(*index, pair[1]), *shifts),
                *mask
            )),
        ])
    }

    #[inline(always)]
    fn group(self, rows: [__m512d; 8]) -> [__m512d; 8] {
        self.transpose(rows)
    }

    #[inline(always)]
    fn ungroup(self, x: [__m512d; 8]) -> [__m512d; 8] {
        self.transpose(x)
    }
}

impl Avx512 {
    /// Turns eight rows of eight into eight columns.
    #[inline(always)]
    fn transpose(self, r: [__m512d; 8]) -> [__m512d; 8] {
        // Pairs of rows: entry j of `low` and `high` hold columns of even and odd number, two rows at a time.
        let low = [self.low(r[0], r[1]), self.low(r[2], r[3]), self.low(r[4], r[5]), self.low(r[6], r[7])];
        let high =
            [self.high(r[0], r[1]), self.high(r[2], r[3]), self.high(r[4], r[5]), self.high(r[6], r[7])];
        let ([a, c, e, g], [b, d, f, h]) = (self.quarters(low), self.quarters(high));
        [a, b, c, d, e, f, g, h]
    }

    /// Even entries of both, in turns.
    #[inline(always)]
    fn low(self, a: __m512d, b: __m512d) -> __m512d {
        avx512!(_mm512_unpacklo_pd(a, b))
    }

    /// Odd entries of both, in turns.
    #[inline(always)]
    fn high(self, a: __m512d, b: __m512d) -> __m512d {
        avx512!(_mm512_unpackhi_pd(a, b))
    }

    /// Turns four rows of four quarters into four columns.
    #[inline(always)]
    fn quarters(self, r: [__m512d; 4]) -> [__m512d; 4] {
        avx512!({
            let (a, b) = (_mm512_shuffle_f64x2::<0x88>(r[0], r[1]), _mm512_shuffle_f64x2::<0xDD>(r[0], r[1]));
            let (c, d) = (_mm512_shuffle_f64x2::<0x88>(r[2], r[3]), _mm512_shuffle_f64x2::<0xDD>(r[2], r[3]));
            [
                _mm512_shuffle_f64x2::<0x88>(a, c),
                _mm512_shuffle_f64x2::<0x88>(b, d),
                _mm512_shuffle_f64x2::<0xDD>(a, c),
                _mm512_shuffle_f64x2::<0xDD>(b, d),
            ]
        })
    }
}
