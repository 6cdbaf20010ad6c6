//! Where an inner product reads its second factors: words, doubles or packed residues.

use super::lanes::{LINE, Lanes, prefetch};

/// Bytes ahead that second factors are asked for. They may be keys, which come from memory, two streams per term: too many for
/// a CPU to follow by itself.
const AHEAD: usize = 1024;

/// Second factors of one term, in pairs of vectors.
pub(super) trait Factors<S: Lanes>: Copy {
    /// Whether they are doubles; else integers.
    const DOUBLES: bool;
    /// Pair `i`; asks for what comes later.
    fn pair(self, s: S, unpacker: &S::Unpacker, i: usize) -> [S::V; 2];
}

/// Residues as words, or doubles.
#[derive(Clone, Copy)]
pub(super) struct Words<'a, S: Lanes, const DOUBLES: bool>(&'a [[S::Words; 2]]);

impl<'a, S: Lanes, const DOUBLES: bool> Words<'a, S, DOUBLES> {
    /// Whole pairs of vectors.
    pub(super) fn new(words: &'a [u64]) -> Self {
        Self(S::words(words).0.as_chunks().0)
    }
}

impl<S: Lanes, const DOUBLES: bool> Factors<S> for Words<'_, S, DOUBLES> {
    const DOUBLES: bool = DOUBLES;

    #[inline(always)]
    fn pair(self, s: S, _: &S::Unpacker, i: usize) -> [S::V; 2] {
        prefetch(self.0, i + AHEAD / (16 * S::WIDTH));
        [s.load(&self.0[i][0]), s.load(&self.0[i][1])]
    }
}

/// Packed residues, with 128 bytes behind the last one.
#[derive(Clone, Copy)]
pub(super) struct Bytes<'a> {
    bytes: &'a [u8],
    /// Bytes of a pair of vectors.
    step: usize,
}

impl<'a> Bytes<'a> {
    /// Residues of so many bits.
    pub(super) fn new<S: Lanes>(_: S, bytes: &'a [u8], bits: usize) -> Self {
        Self { bytes, step: 2 * S::WIDTH / 8 * bits }
    }
}

impl<S: Lanes> Factors<S> for Bytes<'_> {
    const DOUBLES: bool = false;

    #[inline(always)]
    fn pair(self, s: S, unpacker: &S::Unpacker, i: usize) -> [S::V; 2] {
        let at = i * self.step;
        prefetch(self.bytes, at + AHEAD);
        if S::WIDTH == 8 {
            prefetch(self.bytes, at + AHEAD + LINE);
        }
        s.unpack_pair(self.bytes, at, unpacker)
    }
}
