//! Hybrid key switching: decompose, multiply by the key, divide by P.
//!
//! The digit of a polynomial c for a group of towers with product D is the integer polynomial [c·…]_D, centered,
//! written over all towers and special primes. Σ digitⱼ·keyⱼ is P times c·s' under the new secret, plus an
//! error that the division by P makes small. Data is laid out tower by tower, because inner products read
//! one tower of every digit and stream the key once.

use fhe_bytecode::Level;
use rayon::prelude::*;

use super::Context;
use super::keys::KeySwitchKey;
use crate::ring::convert::Weighted;
use crate::ring::scalar::{Mode, Term};
use crate::ring::{Buffer, Coeff, NttForm, Poly};

/// The digits of one polynomial, in NTT form over the key basis of its level.
pub(super) struct Digits {
    level: Level,
    n: usize,
    n_digits: usize,
    /// Tower by tower; within a tower, digit by digit.
    data: Buffer,
}

impl Digits {
    /// The residues of one digit in the tower at position `i` of the key basis.
    fn tower(&self, i: usize, digit: usize) -> &[u64] {
        let start = (i * self.n_digits + digit) * self.n;
        &self.data[start..start + self.n]
    }
}

/// Decomposes a polynomial at `level`.
pub(super) fn decompose(context: &Context, level: Level, c: &Poly<NttForm>) -> Digits {
    let ring = context.ring();
    let n = ring.n();
    let n_q = level.n_towers();
    let n_digits = context.params().n_digits(level);
    let size = context.params().digit_size();
    let coeffs: Poly<Coeff> = ring.inverse(c.clone());
    let weighted: Vec<Weighted> = (0..n_digits)
        .into_par_iter()
        .map(|digit| {
            let towers = digit * size..((digit + 1) * size).min(n_q);
            let x: Vec<&[u64]> = towers.map(|i| coeffs.tower(i)).collect();
            context.digit(digit, n_q).weigh(ring, &x)
        })
        .collect();
    let basis = context.key_basis(level);
    let mut data = Buffer::unset(basis.len() * n_digits * n);
    data.par_chunks_exact_mut(n).enumerate().for_each(|(chunk, out)| {
        let (i, digit) = (chunk / n_digits, chunk % n_digits);
        if i < n_q && i / size == digit {
            out.copy_from_slice(c.tower(i));
        } else {
            let target = ring.tower_index(basis, i);
            context.digit(digit, n_q).convert(&weighted[digit], target, out);
            ring.towers()[target].ntt.forward(out);
        }
    });
    Digits { level, n, n_digits, data }
}

/// Both halves of Σ digitⱼ·keyⱼ over the key basis; `first` is added to the first half, if given.
pub(super) fn multiply(
    context: &Context,
    digits: &Digits,
    key: &KeySwitchKey,
    first: Option<Poly<NttForm>>,
) -> [Poly<NttForm>; 2] {
    let ring = context.ring();
    let basis = context.key_basis(digits.level);
    let mode = if first.is_some() { Mode::Add } else { Mode::Set };
    let mut sums = match first {
        Some(first) => [first, ring.zero(basis)],
        None => [ring.unset(basis), ring.unset(basis)],
    };
    let [first, second] = &mut sums;
    first
        .data_mut()
        .par_chunks_exact_mut(digits.n)
        .zip(second.data_mut().par_chunks_exact_mut(digits.n))
        .enumerate()
        .for_each(|(i, (first, second))| {
            let terms: Vec<Term<'_>> = (0..digits.n_digits)
                .map(|digit| Term { x: digits.tower(i, digit), y: key.tower(digit, digits.level, i) })
                .collect();
            ring.tower(basis, i).kernels.dot2([first, second], &terms, mode);
        });
    sums
}

/// Divides by P and rounds: from the key basis of `level` to its towers.
pub(super) fn mod_down(context: &Context, level: Level, poly: &Poly<NttForm>) -> Poly<NttForm> {
    let ring = context.ring();
    let (basis, n_q) = (context.key_basis(level), level.n_towers());
    let n = ring.n();
    let mut special = Buffer::copy_of(&poly.data()[n_q * n..]);
    special
        .par_chunks_exact_mut(n)
        .enumerate()
        .for_each(|(k, residues)| ring.tower(basis, n_q + k).ntt.inverse(residues));
    let x: Vec<&[u64]> = special.chunks_exact(n).collect();
    let weighted = context.special().weigh(ring, &x);
    let mut out = ring.unset(context.basis(level));
    ring.for_each_tower(&mut out, |tower, i, out| {
        context.special().convert(&weighted, i, out);
        tower.ntt.forward(out);
        tower.kernels.sub_mul_scalar_from(out, poly.tower(i), context.p_inv(i));
    });
    out
}

/// The two halves of c·s' under the key's target secret, at `level`.
pub(super) fn switch(
    context: &Context,
    level: Level,
    digits: &Digits,
    key: &KeySwitchKey,
) -> [Poly<NttForm>; 2] {
    multiply(context, digits, key, None).map(|sum| mod_down(context, level, &sum))
}
