//! Two lanes: the vectors of WebAssembly, with multiplications and additions that are rounded once where the CPU has such.

use std::arch::wasm32::*;
use std::hint::black_box;

use super::Lanes;

/// Proof that a product and a sum are rounded once here, which WebAssembly leaves to the CPU.
#[derive(Clone, Copy, Debug)]
pub struct Relaxed(());

impl Relaxed {
    /// Tries it: the square of 1 + 2^-27 ends with 2^-54, which rounding the product forgets.
    pub fn detect() -> Option<Self> {
        let x = black_box(f64x2_splat(1.0 + 1.0 / f64::from(1 << 27)));
        let rounded = black_box(f64x2_splat(-1.0 - 1.0 / f64::from(1 << 26)));
        let rest = f64x2_relaxed_madd(x, x, rounded);
        let is_exact = f64x2_extract_lane::<0>(rest) != 0.0 && f64x2_extract_lane::<1>(rest) != 0.0;
        is_exact.then_some(Self(()))
    }
}

impl Lanes for Relaxed {
    type V = v128;
    type Unpacker = usize;
    type Words = [u64; 2];
    const WIDTH: usize = 2;

    #[inline(always)]
    fn run<R>(self, f: impl FnOnce() -> R) -> R {
        // The whole module has the feature, or it has none of this.
        f()
    }

    #[inline(always)]
    fn words(x: &[u64]) -> (&[[u64; 2]], &[u64]) {
        x.as_chunks()
    }

    #[inline(always)]
    fn words_mut(x: &mut [u64]) -> (&mut [[u64; 2]], &mut [u64]) {
        x.as_chunks_mut()
    }

    #[inline(always)]
    fn words_from(f: impl Fn(usize) -> u64) -> [u64; 2] {
        std::array::from_fn(f)
    }

    #[inline(always)]
    fn load(self, x: &[u64; 2]) -> v128 {
        // SAFETY: the reference covers the 16 bytes that are read, at any alignment.
        unsafe { v128_load(x.as_ptr().cast()) }
    }

    #[inline(always)]
    fn store(self, out: &mut [u64; 2], x: v128) {
        // SAFETY: the reference covers the 16 bytes that are written, at any alignment.
        unsafe { v128_store(out.as_mut_ptr().cast(), x) }
    }

    #[inline(always)]
    fn splat(self, x: f64) -> v128 {
        f64x2_splat(x)
    }

    #[inline(always)]
    fn add(self, a: v128, b: v128) -> v128 {
        f64x2_add(a, b)
    }

    #[inline(always)]
    fn sub(self, a: v128, b: v128) -> v128 {
        f64x2_sub(a, b)
    }

    #[inline(always)]
    fn mul(self, a: v128, b: v128) -> v128 {
        f64x2_mul(a, b)
    }

    #[inline(always)]
    fn mul_add(self, a: v128, b: v128, c: v128) -> v128 {
        f64x2_relaxed_madd(a, b, c)
    }

    #[inline(always)]
    fn mul_sub(self, a: v128, b: v128, c: v128) -> v128 {
        f64x2_relaxed_madd(a, b, f64x2_neg(c))
    }

    #[inline(always)]
    fn neg_mul_add(self, a: v128, b: v128, c: v128) -> v128 {
        f64x2_relaxed_nmadd(a, b, c)
    }

    #[inline(always)]
    fn round(self, a: v128) -> v128 {
        f64x2_nearest(a)
    }

    #[inline(always)]
    fn floor(self, a: v128) -> v128 {
        f64x2_floor(a)
    }

    #[inline(always)]
    fn or(self, a: v128, b: v128) -> v128 {
        v128_or(a, b)
    }

    #[inline(always)]
    fn xor(self, a: v128, b: v128) -> v128 {
        v128_xor(a, b)
    }

    #[inline(always)]
    fn add_words(self, a: v128, b: v128) -> v128 {
        i64x2_add(a, b)
    }

    #[inline(always)]
    fn select(self, sign: v128, negative: v128, other: v128) -> v128 {
        v128_bitselect(negative, other, i64x2_shr(sign, 63))
    }

    #[inline(always)]
    fn all_below(self, a: v128, bound: v128) -> bool {
        i64x2_all_true(f64x2_lt(f64x2_abs(a), bound))
    }

    #[inline(always)]
    fn load_narrow(self, x: &[i32], i: usize) -> v128 {
        f64x2(f64::from(x[2 * i]), f64::from(x[2 * i + 1]))
    }

    #[inline(always)]
    fn load_runs(self, x: &[u64], run: usize, i: usize) -> v128 {
        match run {
            1 => self.load(&x.as_chunks().0[i]),
            _ => self.splat(f64::from_bits(x[(2 * i) >> run.trailing_zeros()])),
        }
    }

    #[inline(always)]
    fn unpacker(self, bits: usize) -> usize {
        assert!(bits <= 50, "residues of more than 50 bits are not packed");
        bits
    }

    #[inline(always)]
    fn unpack_pair(self, bytes: &[u8], at: usize, bits: &usize) -> [v128; 2] {
        let word = |k: usize| {
            let start = at + bits * k / 8;
            let word = bytes[start..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
            word >> (bits * k % 8) & ((1 << bits) - 1)
        };
        [u64x2(word(0), word(1)), u64x2(word(2), word(3))]
    }

    #[inline(always)]
    fn group(self, r: [v128; 8]) -> [v128; 8] {
        std::array::from_fn(
            #[inline(always)]
            |k| match k % 2 {
                0 => i64x2_shuffle::<0, 2>(r[k / 2], r[k / 2 + 4]),
                _ => i64x2_shuffle::<1, 3>(r[k / 2], r[k / 2 + 4]),
            },
        )
    }

    #[inline(always)]
    fn ungroup(self, x: [v128; 8]) -> [v128; 8] {
        std::array::from_fn(
            #[inline(always)]
            |row| match row / 4 {
                0 => i64x2_shuffle::<0, 2>(x[2 * row], x[2 * row + 1]),
                _ => i64x2_shuffle::<1, 3>(x[2 * row - 8], x[2 * row - 7]),
            },
        )
    }
}
