//! Where an inner product reads its second factors: words, doubles or packed residues.

use std::marker::PhantomData;

use super::lanes::{LINE, Lanes, prefetch};
use crate::words::Held;

/// Bytes ahead that second factors are asked for. They may be keys, which come from memory, two streams per term: too many for
/// a CPU to follow by itself.
const AHEAD: usize = 1024;

/// Second factors of one term, in pairs of vectors.
pub(super) trait Factors<S: Lanes>: Copy {
    /// What they are.
    const HELD: Held;
    /// Pair `i`; asks for what comes later.
    fn pair(self, s: S, unpacker: &S::Unpacker, i: usize) -> [S::V; 2];
}

/// A form as a type, for loops that are written out for each.
pub(super) trait Marker: Copy {
    /// The form.
    const HELD: Held;
}

/// Integers.
#[derive(Clone, Copy)]
pub(super) struct Integers;

/// Doubles.
#[derive(Clone, Copy)]
pub(super) struct Doubles;

impl Marker for Integers {
    const HELD: Held = Held::Integers;
}

impl Marker for Doubles {
    const HELD: Held = Held::Doubles;
}

/// Words as they are.
#[derive(Clone, Copy)]
pub(super) struct Plain<'a, S: Lanes, F> {
    pairs: &'a [[S::Words; 2]],
    held: PhantomData<F>,
}

impl<'a, S: Lanes, F: Marker> Plain<'a, S, F> {
    /// Whole pairs of vectors.
    pub(super) fn new(words: &'a [u64]) -> Self {
        Self { pairs: S::words(words).0.as_chunks().0, held: PhantomData }
    }
}

impl<S: Lanes, F: Marker> Factors<S> for Plain<'_, S, F> {
    const HELD: Held = F::HELD;

    #[inline(always)]
    fn pair(self, s: S, _: &S::Unpacker, i: usize) -> [S::V; 2] {
        prefetch(self.pairs, i + AHEAD / (16 * S::WIDTH));
        [s.load(&self.pairs[i][0]), s.load(&self.pairs[i][1])]
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
    const HELD: Held = Held::Integers;

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
