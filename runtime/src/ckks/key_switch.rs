//! Hybrid key switching: decompose, multiply by the key, divide by P.
//!
//! The digit of a polynomial c for a group of towers with product D is the integer polynomial [c·…]_D, centered,
//! written over all towers and special primes. Σ digitⱼ·keyⱼ is P times c·s' under the new secret, plus an
//! error that the division by P makes small. Digits are transformed tower by tower where they are multiplied, for all
//! keys that share them, so they never leave the cache for memory.

use std::sync::Arc;

use fhe_bytecode::Level;
use rayon::prelude::*;

use super::Context;
use super::keys::KeySwitchKey;
use crate::ring::scalar::{End, Start, Term};
use crate::ring::{Automorphism, Basis, Buffer, Lifted, NttForm, Poly};

/// Both halves of a ciphertext over some basis.
pub(super) type Halves = [Poly<NttForm>; 2];

/// The digits of one polynomial, as centered numbers over the towers of each digit.
pub(super) struct Digits<'a> {
    level: Level,
    c: &'a Poly<NttForm>,
    lifted: Vec<Lifted>,
}

/// What a decomposed polynomial is multiplied by, and what becomes of the sums.
pub(super) struct Switch<'a> {
    /// The key.
    pub(super) key: &'a KeySwitchKey,
    /// Added to the first half, over the key basis.
    pub(super) first: Option<&'a Poly<NttForm>>,
    /// Applied to both halves.
    pub(super) permute: Option<Arc<Automorphism>>,
}

/// Decomposes a polynomial at `level`.
pub(super) fn decompose<'a>(context: &Context, level: Level, c: &'a Poly<NttForm>) -> Digits<'a> {
    let n_q = level.n_towers();
    let size = context.params().digit_size();
    let lifted = (0..context.params().n_digits(level))
        .into_par_iter()
        .map(|digit| {
            let towers = digit * size..((digit + 1) * size).min(n_q);
            let x: Vec<&[u64]> = towers.map(|i| c.tower(i)).collect();
            context.digit(digit, n_q).lift(context.ring(), &x)
        })
        .collect();
    Digits { level, c, lifted }
}

impl Digits<'_> {
    /// Transforms every digit in the tower at position `i` of the key basis, into one part of `scratch` each.
    ///
    /// Returns for each digit its transform and whether it is in doubles.
    pub(super) fn transform<'s>(
        &'s self,
        context: &Context,
        i: usize,
        scratch: &'s mut [u64],
    ) -> Vec<(&'s [u64], bool)> {
        let ring = context.ring();
        let (n_q, size) = (self.level.n_towers(), context.params().digit_size());
        let target = ring.tower_index(context.key_basis(self.level), i);
        let digits = self.lifted.iter().zip(scratch.chunks_exact_mut(ring.n())).enumerate();
        digits
            .map(|(digit, (lifted, out))| {
                if i < n_q && i / size == digit {
                    return (self.c.tower(i), false);
                }
                let converter = context.digit(digit, n_q);
                let doubles = converter.forward(ring, lifted, target, out, End::Doubles);
                (&*out, doubles)
            })
            .collect()
    }
}

/// Coefficients of a tower that all keys are multiplied with before the next: so many of all digits stay in the second cache.
const PIECE: usize = 1 << 11;

/// Both halves of Σ digitⱼ·keyⱼ over the key basis, for each key.
pub(super) fn multiply(context: &Context, digits: &Digits<'_>, switches: &[Switch<'_>]) -> Vec<Halves> {
    let ring = context.ring();
    let (n, basis) = (ring.n(), context.key_basis(digits.level));
    let piece = PIECE.min(n);
    let targets: Vec<Vec<usize>> = switches.iter().map(|switch| switch.targets(n / piece, piece)).collect();
    let mut sums: Vec<Halves> = switches.iter().map(|_| [ring.unset(basis), ring.unset(basis)]).collect();
    by_tower(&mut sums, n, basis).into_par_iter().enumerate().for_each(|(i, mut sums)| {
        let mut scratch = Buffer::unset(digits.lifted.len() * n);
        let mut own = Buffer::unset(2 * piece);
        let (first, second) = own.split_at_mut(piece);
        let transforms = digits.transform(context, i, &mut scratch);
        let kernels = &ring.tower(basis, i).kernels;
        for at in 0..n / piece {
            let range = at * piece..(at + 1) * piece;
            for ((switch, sums), targets) in switches.iter().zip(&mut sums).zip(&targets) {
                let terms: Vec<Term<'_>> = transforms
                    .iter()
                    .enumerate()
                    .map(|(digit, &(x, doubles))| Term {
                        x: &x[range.clone()],
                        doubles,
                        y: switch.key.tower(digit, digits.level, i).map(|half| &half[range.clone()]),
                        y_doubles: false,
                    })
                    .collect();
                let start = match switch.first {
                    Some(first) => Start::First(&first.tower(i)[range.clone()]),
                    None => Start::Zero,
                };
                let target = targets[at] * piece..(targets[at] + 1) * piece;
                let result = sums.each_mut().map(|sum| &mut sum[target.clone()]);
                match &switch.permute {
                    None => kernels.dot2(result, &terms, start),
                    Some(automorphism) => {
                        kernels.dot2([&mut *first, &mut *second], &terms, start);
                        result
                            .into_iter()
                            .zip([&*first, &*second])
                            .for_each(|(result, own)| automorphism.apply_piece(targets[at], result, own));
                    }
                }
            }
        }
    });
    sums
}

impl Switch<'_> {
    /// For each of so many pieces of the digits, the piece of the result that it goes to.
    fn targets(&self, n_pieces: usize, piece: usize) -> Vec<usize> {
        let mut targets: Vec<usize> = (0..n_pieces).collect();
        if let Some(automorphism) = &self.permute {
            (0..n_pieces).for_each(|target| targets[automorphism.source_piece(target, piece)] = target);
        }
        targets
    }
}

/// For each tower, its part of every pair of halves.
pub(super) fn by_tower<'a>(
    halves: impl IntoIterator<Item = &'a mut Halves>,
    n: usize,
    basis: Basis,
) -> Vec<Vec<[&'a mut [u64]; 2]>> {
    let mut towers: Vec<Vec<[&mut [u64]; 2]>> = (0..basis.len()).map(|_| Vec::new()).collect();
    for [first, second] in halves {
        let parts = first.data_mut().chunks_exact_mut(n).zip(second.data_mut().chunks_exact_mut(n));
        towers.iter_mut().zip(parts).for_each(|(tower, (first, second))| tower.push([first, second]));
    }
    towers
}

/// What is done to a polynomial after its division by P, while it is in the cache.
#[derive(Default)]
pub(super) struct Then<'a> {
    /// Added first.
    pub(super) add: Option<&'a Poly<NttForm>>,
    /// Applied afterwards.
    pub(super) permute: Option<&'a Automorphism>,
}

/// Divides by P and rounds: from the key basis of `level` to its towers.
pub(super) fn mod_down(
    context: &Context,
    level: Level,
    poly: &Poly<NttForm>,
    then: &Then<'_>,
) -> Poly<NttForm> {
    let ring = context.ring();
    let (basis, n_q) = (context.key_basis(level), level.n_towers());
    let x: Vec<&[u64]> = (n_q..basis.len()).map(|i| poly.tower(i)).collect();
    let lifted = context.special().lift(ring, &x);
    let mut out = ring.unset(context.basis(level));
    ring.for_each_tower(&mut out, |tower, i, out| {
        let divide = |out: &mut [u64]| {
            let end = End::Divided { a: poly.tower(i), w: context.p_inv(i) };
            context.special().forward(ring, &lifted, i, out, end);
            if let Some(add) = then.add {
                tower.kernels.add_assign(out, add.tower(i));
            }
        };
        match then.permute {
            None => divide(out),
            Some(automorphism) => {
                let mut own = Buffer::unset(ring.n());
                divide(&mut own);
                automorphism.apply(out, &own);
            }
        }
    });
    out
}
