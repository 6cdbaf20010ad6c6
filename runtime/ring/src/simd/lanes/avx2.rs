//! Four lanes: AVX2 and FMA.

use std::arch::x86_64::*;

use super::Lanes;

/// Proof that the CPU has AVX2 and FMA.
#[derive(Clone, Copy, Debug)]
pub struct Avx2(());

impl Avx2 {
    /// Asks the CPU.
    pub fn detect() -> Option<Self> {
        let found = std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma");
        found.then_some(Self(()))
    }
}

/// How eight packed residues are brought into place, four at a time.
#[derive(Clone, Copy, Debug)]
pub struct Unpacker {
    /// Bytes from the first residue to the 16 with the next two, for each two.
    starts: [usize; 4],
    /// For each byte of four words, where among the two times 16 it comes from.
    bytes: [__m256i; 2],
    /// Bits before each residue.
    shifts: [__m256i; 2],
    mask: __m256i,
}

/// Calls instructions of this width.
macro_rules! avx2 {
    ($call:expr) => {{
        // SAFETY: `self` proves that the CPU has AVX2 and FMA; references cover the bytes that are read or written.
        unsafe { $call }
    }};
}

impl Lanes for Avx2 {
    type V = __m256d;
    type Unpacker = Unpacker;
    type Words = [u64; 4];
    const WIDTH: usize = 4;

    #[inline(always)]
    fn run<R>(self, f: impl FnOnce() -> R) -> R {
        #[target_feature(enable = "avx2,fma")]
        fn with_features<R>(f: impl FnOnce() -> R) -> R {
            f()
        }
        avx2!(with_features(f))
    }

    #[inline(always)]
    fn words(x: &[u64]) -> (&[[u64; 4]], &[u64]) {
        x.as_chunks()
    }

    #[inline(always)]
    fn words_mut(x: &mut [u64]) -> (&mut [[u64; 4]], &mut [u64]) {
        x.as_chunks_mut()
    }

    #[inline(always)]
    fn words_from(f: impl Fn(usize) -> u64) -> [u64; 4] {
        std::array::from_fn(f)
    }

    #[inline(always)]
    fn load(self, x: &[u64; 4]) -> __m256d {
        avx2!(_mm256_loadu_pd(x.as_ptr().cast()))
    }

    #[inline(always)]
    fn store(self, out: &mut [u64; 4], x: __m256d) {
        avx2!(_mm256_storeu_pd(out.as_mut_ptr().cast(), x))
    }

    #[inline(always)]
    fn splat(self, x: f64) -> __m256d {
        avx2!(_mm256_set1_pd(x))
    }

    #[inline(always)]
    fn add(self, a: __m256d, b: __m256d) -> __m256d {
        avx2!(_mm256_add_pd(a, b))
    }

    #[inline(always)]
    fn sub(self, a: __m256d, b: __m256d) -> __m256d {
        avx2!(_mm256_sub_pd(a, b))
    }

    #[inline(always)]
    fn mul(self, a: __m256d, b: __m256d) -> __m256d {
        avx2!(_mm256_mul_pd(a, b))
    }

    #[inline(always)]
    fn mul_add(self, a: __m256d, b: __m256d, c: __m256d) -> __m256d {
        avx2!(_mm256_fmadd_pd(a, b, c))
    }

    #[inline(always)]
    fn mul_sub(self, a: __m256d, b: __m256d, c: __m256d) -> __m256d {
        avx2!(_mm256_fmsub_pd(a, b, c))
    }

    #[inline(always)]
    fn neg_mul_add(self, a: __m256d, b: __m256d, c: __m256d) -> __m256d {
        avx2!(_mm256_fnmadd_pd(a, b, c))
    }

    #[inline(always)]
    fn round(self, a: __m256d) -> __m256d {
        avx2!(_mm256_round_pd::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(a))
    }

    #[inline(always)]
    fn floor(self, a: __m256d) -> __m256d {
        avx2!(_mm256_round_pd::<{ _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC }>(a))
    }

    #[inline(always)]
    fn or(self, a: __m256d, b: __m256d) -> __m256d {
        avx2!(_mm256_or_pd(a, b))
    }

    #[inline(always)]
    fn xor(self, a: __m256d, b: __m256d) -> __m256d {
        avx2!(_mm256_xor_pd(a, b))
    }

    #[inline(always)]
    fn add_words(self, a: __m256d, b: __m256d) -> __m256d {
        avx2!(_mm256_castsi256_pd(_mm256_add_epi64(_mm256_castpd_si256(a), _mm256_castpd_si256(b))))
    }

    #[inline(always)]
    fn select(self, sign: __m256d, negative: __m256d, other: __m256d) -> __m256d {
        avx2!(_mm256_blendv_pd(other, negative, sign))
    }

    #[inline(always)]
    fn all_below(self, a: __m256d, bound: __m256d) -> bool {
        let magnitude = avx2!(_mm256_andnot_pd(_mm256_set1_pd(-0.0), a));
        avx2!(_mm256_movemask_pd(_mm256_cmp_pd::<_CMP_LT_OQ>(magnitude, bound))) == 0b1111
    }

    #[inline(always)]
    fn load_narrow(self, x: &[i32], i: usize) -> __m256d {
        let four: &[i32; 4] = &x.as_chunks().0[i];
        avx2!(_mm256_cvtepi32_pd(_mm_loadu_si128(four.as_ptr().cast())))
    }

    #[inline(always)]
    fn load_runs(self, x: &[u64], run: usize, i: usize) -> __m256d {
        match run {
            1 => self.load(&x.as_chunks().0[i]),
            2 => {
                let pair: &[u64; 2] = &x.as_chunks().0[i];
                avx2!(_mm256_permute4x64_pd::<0b01_01_00_00>(_mm256_castpd128_pd256(_mm_loadu_pd(
                    pair.as_ptr().cast()
                ))))
            }
            _ => self.splat(f64::from_bits(x[(4 * i) >> run.trailing_zeros()])),
        }
    }

    #[inline(always)]
    fn unpacker(self, bits: usize) -> Unpacker {
        assert!(bits <= 50, "residues of more than 50 bits are not packed");
        let starts = [0, 2, 4, 6].map(|k| bits * k / 8);
        let bytes = |first: usize| -> [u64; 4] {
            std::array::from_fn(|k| {
                let at = bits * (first + k) / 8 - starts[(first + k) / 2];
                u64::from_le_bytes(std::array::from_fn(|byte| (at + byte) as u8))
            })
        };
        let shifts = |first: usize| -> [u64; 4] { std::array::from_fn(|k| (bits * (first + k) % 8) as u64) };
        let load = |words: [u64; 4]| avx2!(_mm256_loadu_si256(words.as_ptr().cast()));
        Unpacker {
            starts,
            bytes: [load(bytes(0)), load(bytes(4))],
            shifts: [load(shifts(0)), load(shifts(4))],
            mask: load([(1 << bits) - 1; 4]),
        }
    }

    #[inline(always)]
    fn unpack_pair(self, bytes: &[u8], at: usize, unpacker: &Unpacker) -> [__m256d; 2] {
        assert!(bytes.len() >= 128 && at <= bytes.len() - 128, "packed residues are padded");
        let Unpacker { starts, bytes: order, shifts, mask } = unpacker;
        // SAFETY: no start is above 38, and 128 bytes are there; `self` proves that the CPU has AVX2.
        let pairs = unsafe {
            let load = |k: usize| _mm_loadu_si128(bytes.as_ptr().add(at + starts[k]).cast());
            [
                _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(load(0)), load(1)),
                _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(load(2)), load(3)),
            ]
        };
        avx2!([
            _mm256_castsi256_pd(_mm256_and_si256(
                _mm256_srlv_epi64(_mm256_shuffle_epi8(pairs[0], order[0]), shifts[0]),
                *mask
            )),
            _mm256_castsi256_pd(_mm256_and_si256(
                _mm256_srlv_epi64(_mm256_shuffle_epi8(pairs[1], order[1]), shifts[1]),
                *mask
            )),
        ])
    }

    #[inline(always)]
    fn group(self, r: [__m256d; 8]) -> [__m256d; 8] {
        let [a, b, c, d] = self.transpose([r[0], r[2], r[4], r[6]]);
        let [e, f, g, h] = self.transpose([r[1], r[3], r[5], r[7]]);
        [a, b, c, d, e, f, g, h]
    }

    #[inline(always)]
    fn ungroup(self, x: [__m256d; 8]) -> [__m256d; 8] {
        let [a, c, e, g] = self.transpose([x[0], x[1], x[2], x[3]]);
        let [b, d, f, h] = self.transpose([x[4], x[5], x[6], x[7]]);
        [a, b, c, d, e, f, g, h]
    }
}

impl Avx2 {
    /// Turns four rows of four into four columns.
    #[inline(always)]
    fn transpose(self, r: [__m256d; 4]) -> [__m256d; 4] {
        let (a, b) = avx2!((_mm256_unpacklo_pd(r[0], r[1]), _mm256_unpackhi_pd(r[0], r[1])));
        let (c, d) = avx2!((_mm256_unpacklo_pd(r[2], r[3]), _mm256_unpackhi_pd(r[2], r[3])));
        avx2!([
            _mm256_permute2f128_pd::<0x20>(a, c),
            _mm256_permute2f128_pd::<0x20>(b, d),
            _mm256_permute2f128_pd::<0x31>(a, c),
            _mm256_permute2f128_pd::<0x31>(b, d),
        ])
    }
}
