//! What the kernels ask of a vector of doubles, whatever its width.
//!
//! A value of a type with this trait is a capability: it is made by asking the CPU, and holding it is the right to
//! use the instructions behind it. Kernels are written once, generic over it, so all widths give the same bits
//! by construction. Methods are inlined into [`Lanes::run`], whose body has the CPU features.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod ifma;
#[cfg(target_arch = "x86_64")]
mod narrow;
#[cfg(target_arch = "wasm32")]
mod relaxed;

#[cfg(target_arch = "x86_64")]
pub use avx2::Avx2;
#[cfg(target_arch = "x86_64")]
pub use avx512::Avx512;
#[cfg(target_arch = "x86_64")]
pub use ifma::Ifma;
#[cfg(target_arch = "x86_64")]
pub(crate) use narrow::Narrow;
#[cfg(target_arch = "wasm32")]
pub use relaxed::Relaxed;

/// A vector width.
pub trait Lanes: Copy + std::fmt::Debug + Send + Sync + 'static {
    /// Doubles, one per lane.
    type V: Copy;
    /// How packed residues are brought into lanes.
    type Unpacker: Copy;
    /// As many words in memory: integers, or the bits of doubles.
    type Words: Copy + std::fmt::Debug + Send + Sync;
    /// Number of lanes.
    const WIDTH: usize;

    /// Runs `f` with the CPU features of this width.
    fn run<R>(self, f: impl FnOnce() -> R) -> R;

    /// Whole vectors, and the words left over.
    fn words(x: &[u64]) -> (&[Self::Words], &[u64]);
    /// Whole vectors, and the words left over.
    fn words_mut(x: &mut [u64]) -> (&mut [Self::Words], &mut [u64]);
    /// Words from a function of the lane.
    fn words_from(f: impl Fn(usize) -> u64) -> Self::Words;

    /// Reads the bits of doubles.
    fn load(self, x: &Self::Words) -> Self::V;
    /// Writes the bits of doubles.
    fn store(self, out: &mut Self::Words, x: Self::V);
    /// The same double in every lane.
    fn splat(self, x: f64) -> Self::V;

    /// a + b.
    fn add(self, a: Self::V, b: Self::V) -> Self::V;
    /// a - b.
    fn sub(self, a: Self::V, b: Self::V) -> Self::V;
    /// a·b.
    fn mul(self, a: Self::V, b: Self::V) -> Self::V;
    /// a·b + c, rounded once.
    fn mul_add(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    /// a·b - c, rounded once.
    fn mul_sub(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    /// c - a·b, rounded once.
    fn neg_mul_add(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    /// To the nearest integer, ties to even.
    fn round(self, a: Self::V) -> Self::V;
    /// To the next integer below.
    fn floor(self, a: Self::V) -> Self::V;

    /// Bits of either.
    fn or(self, a: Self::V, b: Self::V) -> Self::V;
    /// Bits of one but not of both.
    fn xor(self, a: Self::V, b: Self::V) -> Self::V;
    /// The sum of the bits read as 64-bit integers.
    fn add_words(self, a: Self::V, b: Self::V) -> Self::V;
    /// Where the sign bit of `sign` is set `negative`, elsewhere `other`.
    fn select(self, sign: Self::V, negative: Self::V, other: Self::V) -> Self::V;
    /// Whether |a| is below `bound` in every lane.
    fn all_below(self, a: Self::V, bound: Self::V) -> bool;

    /// Vector `i` of integers, as doubles.
    fn load_narrow(self, x: &[i32], i: usize) -> Self::V;
    /// Vector `i` of words of which each repeats `run` times, a power of two.
    fn load_runs(self, x: &[u64], run: usize, i: usize) -> Self::V;

    /// How to unpack residues of at most 50 bits.
    ///
    /// # Panics
    /// When there are more.
    fn unpacker(self, bits: usize) -> Self::Unpacker;
    /// The integers of two vectors of packed residues that start at byte `at`, with 128 bytes from there on.
    ///
    /// # Panics
    /// When there are fewer bytes.
    fn unpack_pair(self, bytes: &[u8], at: usize, unpacker: &Self::Unpacker) -> [Self::V; 2];

    /// From eight vectors in memory order to vector k holding entry k of every group of eight, a group per lane.
    fn group(self, rows: [Self::V; 8]) -> [Self::V; 8];
    /// The inverse of [`Lanes::group`].
    fn ungroup(self, x: [Self::V; 8]) -> [Self::V; 8];
}

/// The bits of doubles.
pub(super) fn bits(x: &[f64]) -> &[u64] {
    // SAFETY: both types have the size and alignment of eight bytes, and any bits are a word.
    unsafe { std::slice::from_raw_parts(x.as_ptr().cast(), x.len()) }
}

/// The bits of doubles.
pub(super) fn bits_mut(x: &mut [f64]) -> &mut [u64] {
    // SAFETY: both types have the size and alignment of eight bytes, and any bits are a word or a double.
    unsafe { std::slice::from_raw_parts_mut(x.as_mut_ptr().cast(), x.len()) }
}

/// Bytes of a cache line.
pub(super) const LINE: usize = 64;

/// Asks for the cache lines of entry `i`, which may lie past the end, to have them in the first cache.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) fn prefetch<T>(x: &[T], i: usize) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    let entry = x.as_ptr().wrapping_add(i).cast::<i8>();
    for line in 0..size_of::<T>().div_ceil(LINE) {
        // SAFETY: every x86-64 CPU has the instruction, and it reads nothing: any address will do.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(entry.wrapping_add(line * LINE)) }
    }
}

/// Bytes to have in the second cache soon, asked for line by line.
pub(super) struct Soon {
    next: *const u8,
    /// Bytes from one line to the next; zero to ask for the same again, which costs nothing.
    step: usize,
}

impl Soon {
    /// What is at an address, or nothing.
    pub(super) fn new(address: Option<usize>) -> Self {
        static NOTHING: u8 = 0;
        match address {
            Some(address) => Self { next: std::ptr::without_provenance(address), step: LINE },
            None => Self { next: &NOTHING, step: 0 },
        }
    }

    /// Asks for the next lines, also past the end.
    #[inline(always)]
    pub(super) fn ask<const LINES: usize>(&mut self) {
        #[cfg(target_arch = "x86_64")]
        for _ in 0..LINES {
            use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
            // SAFETY: every x86-64 CPU has the instruction, and it reads nothing: any address will do.
            unsafe { _mm_prefetch::<_MM_HINT_T1>(self.next.cast()) }
            self.next = self.next.wrapping_add(self.step);
        }
    }
}
