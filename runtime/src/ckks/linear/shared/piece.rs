//! One piece of one tower: all rotated inputs, all diagonals, then all sums.

use std::sync::{Arc, Mutex, PoisonError};

use fhe_bytecode::Level;

use crate::ckks::keys::KeySwitchKey;
use crate::ckks::{Ciphertext, Context, Rotation};
use crate::ring::shared::{Places, STRIP, SharedKernel, SharedList, Strip};
use crate::ring::{Automorphism, Tower};

/// A rotated input; rows of one input follow each other.
pub(super) struct Row<'a> {
    pub(super) number: usize,
    pub(super) input: &'a Ciphertext,
    /// Position among the steps; none for the input as it is.
    pub(super) step: Option<usize>,
}

/// A rotation that some inputs need.
pub(super) struct Step<'a> {
    pub(super) rotation: Rotation,
    pub(super) key: &'a KeySwitchKey,
    pub(super) automorphism: Arc<Automorphism>,
}

/// One tower of the work.
pub(super) struct PieceWork<'a> {
    pub(super) context: &'a Context,
    pub(super) level: Level,
    pub(super) i: usize,
    pub(super) tower: &'a Tower,
    pub(super) kernel: &'a SharedKernel,
    pub(super) rows: &'a [Row<'a>],
    pub(super) steps: &'a [Step<'a>],
    pub(super) plains: &'a [Vec<u64>],
    /// Digits of every input, and whether they are in doubles.
    pub(super) digits: &'a [Vec<(&'a [u64], bool)>],
    /// Coefficients of a piece.
    pub(super) size: usize,
    /// Digit times key for every digit.
    pub(super) list: SharedList,
}

/// A piece of everything, strip by strip.
pub(super) struct Scratch {
    /// For every strip first halves of all rows, then second halves.
    rows: Vec<Strip>,
    plains: Vec<Strip>,
    /// For every strip, step and half the digits of the key.
    keys: Vec<Strip>,
    /// For every strip the digits of an input; of the source pieces that its rotations need, as far as they are known.
    digits: Vec<(Option<usize>, Vec<Strip>)>,
    halves: [Vec<u64>; 2],
    sums: [Vec<u64>; 2],
}

/// Scratch that no thread works with; a fresh one costs as many page faults as it has pages.
#[derive(Default)]
pub(super) struct Spare(Mutex<Vec<Scratch>>);

impl Spare {
    pub(super) fn take(&self) -> Option<Scratch> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    pub(super) fn put(&self, scratch: Scratch) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(scratch);
    }
}

impl Scratch {
    pub(super) fn new(work: &PieceWork<'_>) -> Self {
        let strips = work.n_strips();
        let zeros = || [vec![0; work.size], vec![0; work.size]];
        Self {
            rows: vec![Strip::ZERO; 2 * strips * work.rows.len()],
            plains: vec![Strip::ZERO; strips * work.plains.len()],
            keys: vec![Strip::ZERO; 2 * strips * work.steps.len() * work.n_digits()],
            digits: Vec::new(),
            halves: zeros(),
            sums: zeros(),
        }
    }
}

impl PieceWork<'_> {
    fn n_digits(&self) -> usize {
        self.list.entries.len()
    }

    fn n_strips(&self) -> usize {
        self.size / STRIP
    }

    /// Computes piece `at` of all rows, over the key basis and times P, and writes out the diagonals.
    pub(super) fn fill(&self, at: usize, scratch: &mut Scratch) {
        let sources: Vec<usize> =
            self.steps.iter().map(|step| step.automorphism.source_piece(at, self.size)).collect();
        self.write_keys(&sources, &mut scratch.keys);
        for (number, row) in self.rows.iter().enumerate() {
            if number == 0 || self.rows[number - 1].number != row.number {
                scratch.digits.iter_mut().for_each(|(source, _)| *source = None);
            }
            match row.step {
                None => {
                    for half in 0..2 {
                        self.times_p(row.input, half, at, &mut scratch.sums[half]);
                    }
                }
                Some(step) => {
                    self.switch(row, step, sources[step], scratch);
                    for (sums, half) in scratch.sums.iter_mut().zip(&scratch.halves) {
                        self.steps[step].automorphism.apply_piece(at, sums, half);
                    }
                }
            }
            for (half, residues) in scratch.sums.iter().enumerate() {
                let places = Places { first: half * self.rows.len() + number, step: 2 * self.rows.len() };
                self.kernel.place(&mut scratch.rows, places, residues, false);
            }
        }
        self.write_plains(at, &mut scratch.plains);
    }

    /// Writes out the pieces of the keys that rotations into this piece read.
    fn write_keys(&self, sources: &[usize], keys: &mut [Strip]) {
        let step_size = 2 * self.n_digits();
        for (number, (step, source)) in self.steps.iter().zip(sources).enumerate() {
            let range = source * self.size..(source + 1) * self.size;
            for digit in 0..self.n_digits() {
                for (half, key) in step.key.tower(digit, self.level, self.i).into_iter().enumerate() {
                    let first = number * step_size + half * self.n_digits() + digit;
                    let places = Places { first, step: self.steps.len() * step_size };
                    self.kernel.place(keys, places, &key[range.clone()], false);
                }
            }
        }
    }

    /// halves ← (P·c₀, 0) + Σ digit·key on a piece of an input, before the permutation.
    fn switch(&self, row: &Row<'_>, step: usize, source: usize, scratch: &mut Scratch) {
        let n_digits = self.n_digits();
        let known = scratch.digits.iter().position(|(piece, _)| *piece == Some(source));
        let at = known.unwrap_or_else(|| {
            let free = scratch.digits.iter().position(|(piece, _)| piece.is_none());
            let at = free.unwrap_or_else(|| {
                scratch.digits.push((None, vec![Strip::ZERO; self.n_strips() * n_digits]));
                scratch.digits.len() - 1
            });
            let range = source * self.size..(source + 1) * self.size;
            for (digit, &(residues, doubles)) in self.digits[row.number].iter().enumerate() {
                let places = Places { first: digit, step: n_digits };
                self.kernel.place(&mut scratch.digits[at].1, places, &residues[range.clone()], doubles);
            }
            scratch.digits[at].0 = Some(source);
            at
        });
        for strip in 0..self.n_strips() {
            let digits = &scratch.digits[at].1[strip * n_digits..(strip + 1) * n_digits];
            for (half, sums) in scratch.halves.iter_mut().enumerate() {
                let first = ((strip * self.steps.len() + step) * 2 + half) * n_digits;
                let keys = &scratch.keys[first..first + n_digits];
                let out = &mut sums.as_chunks_mut::<STRIP>().0[strip];
                self.kernel.sum_products(out, &self.list, digits, keys);
            }
        }
        self.times_p(row.input, 0, source, &mut scratch.sums[0]);
        self.tower.kernels.add_assign(&mut scratch.halves[0], &scratch.sums[0]);
    }

    fn write_plains(&self, at: usize, strips: &mut [Strip]) {
        let n_plains = self.plains.len();
        for (number, plain) in self.plains.iter().enumerate() {
            // Both are powers of two.
            let run = (self.context.ring().n() / plain.len()).trailing_zeros();
            for strip in 0..self.n_strips() {
                let from = at * self.size + strip * STRIP;
                let target = &mut strips[strip * n_plains + number].0;
                match run {
                    0 => target.copy_from_slice(&plain[from..from + STRIP]),
                    1..4 => {
                        let part = &plain[from >> run..][..STRIP >> run];
                        for (run, &value) in target.chunks_exact_mut(1 << run).zip(part) {
                            run.fill(value);
                        }
                    }
                    _ => target.fill(plain[from >> run]),
                }
            }
        }
    }

    /// out ← P·c on a piece of a half of an input; nothing is there modulo a special prime.
    fn times_p(&self, input: &Ciphertext, half: usize, piece: usize, out: &mut [u64]) {
        if self.i >= self.level.n_towers() {
            return out.fill(0);
        }
        out.copy_from_slice(&input.polys[half].tower(self.i)[piece * self.size..(piece + 1) * self.size]);
        self.tower.kernels.mul_scalar_assign(out, self.context.p(self.i));
    }

    /// All sums on a piece.
    pub(super) fn sum(&self, lists: &[SharedList], scratch: &Scratch, targets: &mut [&mut [u64]]) {
        let (n_rows, n_plains) = (self.rows.len(), self.plains.len());
        for strip in 0..self.n_strips() {
            let plains = &scratch.plains[strip * n_plains..(strip + 1) * n_plains];
            for half in 0..2 {
                let rows = &scratch.rows[(2 * strip + half) * n_rows..(2 * strip + half + 1) * n_rows];
                for (list, halves) in lists.iter().zip(targets.chunks_exact_mut(2)) {
                    let out = &mut halves[half].as_chunks_mut::<STRIP>().0[strip];
                    self.kernel.sum_products(out, list, rows, plains);
                }
            }
        }
    }
}
