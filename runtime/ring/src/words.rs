//! Words that kernels read and write, and what they hold.

use std::ops::Range;

/// What words hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Held {
    /// Integers: residues, unless a kernel takes others.
    #[default]
    Integers,
    /// The bits of integral doubles.
    Doubles,
}

/// Words that say what they hold.
#[derive(Clone, Copy, Debug)]
pub enum Words<'a> {
    /// Integers.
    Integers(&'a [u64]),
    /// The bits of integral doubles.
    Doubles(&'a [u64]),
}

impl Held {
    /// Words that hold this.
    pub fn of(self, words: &[u64]) -> Words<'_> {
        match self {
            Self::Integers => Words::Integers(words),
            Self::Doubles => Words::Doubles(words),
        }
    }
}

impl<'a> Words<'a> {
    /// What they hold.
    pub fn held(self) -> Held {
        match self {
            Self::Integers(_) => Held::Integers,
            Self::Doubles(_) => Held::Doubles,
        }
    }

    /// How many there are.
    pub fn len(self) -> usize {
        self.bits().len()
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.bits().is_empty()
    }

    /// Some of them.
    pub fn piece(self, range: Range<usize>) -> Self {
        self.held().of(&self.bits()[range])
    }

    /// The words, for a kernel that has asked what they hold.
    pub(crate) fn bits(self) -> &'a [u64] {
        match self {
            Self::Integers(words) | Self::Doubles(words) => words,
        }
    }
}
