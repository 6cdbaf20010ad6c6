//! The digits of a polynomial.

use fhe_bytecode::Level;
use fhe_ring::parallel::*;

use crate::Context;
use fhe_ring::scalar::End;
use fhe_ring::{Ahead, Begun, Held, Lifted, NttForm, Poly, Tower, Words};

/// The digits of one polynomial, as centered numbers over the towers of each digit.
pub(crate) struct Digits<'a> {
    level: Level,
    c: &'a Poly<NttForm>,
    lifted: Vec<Lifted>,
}

/// Decomposes a polynomial at `level`.
pub(crate) fn decompose<'a>(context: &Context, level: Level, c: &'a Poly<NttForm>) -> Digits<'a> {
    let lifted = context
        .digits(level)
        .par_iter()
        .map(|digit| {
            let x: Vec<&[u64]> = digit.positions.iter().map(|&i| c.tower(i)).collect();
            digit.converter.lift(context.ring(), &x)
        })
        .collect();
    Digits { level, c, lifted }
}

impl Digits<'_> {
    /// The level of the polynomial.
    pub(super) fn level(&self) -> Level {
        self.level
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.lifted.len()
    }

    /// Begins to transform every digit in the tower at position `i` of the key basis, into one part of `scratch` each.
    pub(super) fn begin<'s>(
        &'s self,
        context: &Context,
        i: usize,
        scratch: &'s mut [u64],
    ) -> Vec<TowerDigit<'s>> {
        let ring = context.ring();
        let target = ring.tower_index(context.key_basis(self.level), i);
        let tables = context.digits(self.level);
        let digits = self.lifted.iter().zip(scratch.chunks_exact_mut(ring.n())).enumerate();
        digits
            .map(|(digit, (lifted, words))| {
                if tables[digit].positions.contains(&i) {
                    return TowerDigit::Residues(self.c.tower(i));
                }
                let mut ahead = self.lifted.get(digit + 1).map_or_else(Ahead::nothing, Lifted::ahead);
                let begun = tables[digit].converter.begin(ring, lifted, target, words, &mut ahead);
                TowerDigit::Begun { begun, words, held: Held::Integers }
            })
            .collect()
    }

    /// Transforms every digit in the tower at position `i` of the key basis, into one part of `scratch` each, for products with
    /// keys.
    ///
    /// Returns for each digit its transform.
    pub(crate) fn transform<'s>(
        &'s self,
        context: &Context,
        i: usize,
        scratch: &'s mut [u64],
    ) -> Vec<Words<'s>> {
        let tower = context.ring().tower(context.key_basis(self.level), i);
        let end = tower.kernels.packed_end();
        let mut digits = self.begin(context, i, scratch);
        let n_pieces = context.ring().n() / tower.ntt.piece();
        for digit in &mut digits {
            (0..n_pieces).for_each(|piece| digit.finish(tower, piece, end, &mut Ahead::nothing()));
        }
        digits.into_iter().map(TowerDigit::into_words).collect()
    }
}

/// A digit in one tower.
pub(super) enum TowerDigit<'a> {
    /// The polynomial itself, if the tower is one of the digit's own.
    Residues(&'a [u64]),
    /// A transform, finished piece by piece.
    Begun {
        /// How far it had come before that.
        begun: Begun,
        /// Its words.
        words: &'a mut [u64],
        /// What finished pieces hold.
        held: Held,
    },
}

impl<'a> TowerDigit<'a> {
    /// Finishes a piece as `end` wants it; asks for what is ahead meanwhile.
    pub(super) fn finish(&mut self, tower: &Tower, piece: usize, end: End<'_>, ahead: &mut Ahead<'_>) {
        if let Self::Begun { begun, words, held } = self {
            let size = tower.ntt.piece();
            let words = &mut words[piece * size..(piece + 1) * size];
            *held = tower.ntt.finish_piece(&tower.kernels, *begun, piece, words, end, ahead);
        }
    }

    /// Its words, where it is finished.
    pub(super) fn words(&self) -> Words<'_> {
        match self {
            Self::Residues(words) => Words::Integers(words),
            Self::Begun { words, held, .. } => held.of(words),
        }
    }

    fn into_words(self) -> Words<'a> {
        match self {
            Self::Residues(words) => Words::Integers(words),
            Self::Begun { words, held, .. } => held.of(words),
        }
    }
}
