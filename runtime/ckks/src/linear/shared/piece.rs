//! One piece of one tower: all rotated inputs, all diagonals, then all sums.

use std::sync::{Mutex, PoisonError};

use super::job::Job;
use crate::{Ciphertext, Context};
use fhe_ring::scalar::{Start, Term};
use fhe_ring::shared::{Partial, Places, STRIP, SharedKernel, SharedList, Strip, place};
use fhe_ring::{Automorphism, Held, Packed, Tower, Words};

/// Sums that are worked on together.
const BLOCK: usize = 8;

/// A rotation that some inputs need, in one tower.
pub(super) struct Step<'a> {
    /// Both halves of the key, digit by digit.
    pub(super) keys: Vec<[Packed<'a>; 2]>,
    pub(super) automorphism: &'a Automorphism,
}

/// An input in one tower.
pub(super) struct Input<'a> {
    pub(super) ciphertext: &'a Ciphertext,
    /// P times its first half; nothing modulo a special prime.
    pub(super) first: Option<&'a [u64]>,
    /// Its digits; none if it is not rotated.
    pub(super) digits: Vec<Words<'a>>,
}

/// One tower of the work.
pub(super) struct PieceWork<'a> {
    pub(super) context: &'a Context,
    /// Position of the tower in the key basis.
    pub(super) i: usize,
    /// Its index in the ring.
    pub(super) index: usize,
    pub(super) tower: &'a Tower,
    pub(super) kernel: &'a SharedKernel,
    pub(super) job: &'a Job,
    pub(super) inputs: &'a [Input<'a>],
    pub(super) steps: &'a [Step<'a>],
    pub(super) plains: &'a [&'a [u64]],
    pub(super) n_sums: usize,
    /// Coefficients of a piece.
    pub(super) size: usize,
}

/// A piece of everything, strip by strip.
pub(super) struct Scratch {
    /// For every strip first halves of all rows, then second halves.
    rows: Vec<Strip>,
    plains: Vec<Strip>,
    /// For every step and digit both halves of the key, on the piece that the step reads.
    keys: Vec<u64>,
    /// What they hold.
    held: Held,
    /// A row before its permutation.
    before: [Vec<u64>; 2],
    /// For every block of sums, strip and half the sums of the block.
    sums: Vec<Partial>,
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
            rows: vec![Strip::ZERO; 2 * strips * work.job.rows.len()],
            plains: vec![Strip::ZERO; strips * work.plains.len()],
            keys: vec![0; 2 * work.size * work.steps.iter().map(|step| step.keys.len()).sum::<usize>()],
            held: Held::Integers,
            before: zeros(),
            sums: vec![work.kernel.nothing(); 2 * strips * work.n_sums],
        }
    }
}

impl PieceWork<'_> {
    fn n_strips(&self) -> usize {
        self.size / STRIP
    }

    /// Computes piece `at` of all rows, over the key basis and times P, and writes out the diagonals.
    pub(super) fn fill(&self, at: usize, scratch: &mut Scratch) {
        let n_rows = self.job.rows.len();
        let sources: Vec<usize> =
            self.steps.iter().map(|step| step.automorphism.source_piece(at, self.size)).collect();
        scratch.held = self.write_keys(&sources, &mut scratch.keys);
        for row in &self.job.rows {
            let input = &self.inputs[row.input];
            let places = |half: usize| Places { first: half * n_rows + row.place, step: 2 * n_rows };
            match row.step {
                None => {
                    self.times_p(input, at, &mut scratch.before);
                    for (half, residues) in scratch.before.iter_mut().enumerate() {
                        self.kernel.to_words(residues);
                        place(&mut scratch.rows, places(half), residues);
                    }
                }
                Some(step) => {
                    let keys = scratch.held.of(&scratch.keys);
                    self.switch(input, (step, sources[step]), keys, &mut scratch.before);
                    for (half, residues) in scratch.before.iter_mut().enumerate() {
                        self.kernel.to_words(residues);
                        let automorphism = self.steps[step].automorphism;
                        automorphism.apply_strips(at, &mut scratch.rows, places(half), residues);
                    }
                }
            }
        }
        self.write_plains(at, &mut scratch.plains);
    }

    /// out ← P·c on a piece of an input; nothing is there modulo a special prime.
    fn times_p(&self, input: &Input<'_>, piece: usize, out: &mut [Vec<u64>; 2]) {
        let Some(first) = input.first else {
            return out.iter_mut().for_each(|half| half.fill(0));
        };
        let range = piece * self.size..(piece + 1) * self.size;
        out[0].copy_from_slice(&first[range.clone()]);
        out[1].copy_from_slice(&input.ciphertext.polys[1].tower(self.i)[range]);
        self.tower.kernels.mul_scalar_assign(&mut out[1], self.context.p(self.index));
    }

    /// Writes out the pieces of the keys that rotations into a piece read, in the form that this gives.
    fn write_keys(&self, sources: &[usize], keys: &mut [u64]) -> Held {
        let mut held = Held::Integers;
        let mut keys = keys.chunks_exact_mut(self.size);
        for (step, source) in self.steps.iter().zip(sources) {
            let range = source * self.size..(source + 1) * self.size;
            for (half, out) in step.keys.iter().flatten().zip(&mut keys) {
                held = self.tower.kernels.unpack(out, half.piece(range.clone()));
            }
        }
        held
    }

    /// out ← (P·c₀, 0) + Σ digit·key on a piece of an input, before the permutation.
    fn switch(
        &self,
        input: &Input<'_>,
        (step, piece): (usize, usize),
        keys: Words<'_>,
        out: &mut [Vec<u64>; 2],
    ) {
        let range = piece * self.size..(piece + 1) * self.size;
        let n_digits = input.digits.len();
        let key = |digit: usize, half: usize| {
            let from = (2 * (step * n_digits + digit) + half) * self.size;
            keys.piece(from..from + self.size)
        };
        let terms: Vec<Term<'_>> = input
            .digits
            .iter()
            .enumerate()
            .map(|(digit, x)| Term { x: x.piece(range.clone()), y: [0, 1].map(|half| key(digit, half)) })
            .collect();
        let start = input.first.map_or(Start::Zero, |first| Start::First(&first[range]));
        let [first, second] = out;
        self.tower.kernels.dot2([first, second], &terms, start);
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
                    1 => repeat::<2>(target, &plain[from >> 1..]),
                    2 => repeat::<4>(target, &plain[from >> 2..]),
                    3 => repeat::<8>(target, &plain[from >> 3..]),
                    _ => target.fill(plain[from >> run]),
                }
            }
        }
    }

    /// All sums on a piece. A strip of the rows of a part stays in the first cache while a block of sums reads it, and the
    /// lists of the block stay there for all strips.
    pub(super) fn sum(&self, scratch: &mut Scratch, targets: &mut [&mut [u64]]) {
        let (n_rows, n_plains) = (self.job.rows.len(), self.plains.len());
        let n_halves = 2 * self.n_strips();
        let (rows, plains) = (&scratch.rows, &scratch.plains);
        scratch.sums.fill(self.kernel.nothing());
        let mut used = 0;
        for part in &self.job.parts {
            let blocks = part.lists.chunks(BLOCK).zip(scratch.sums.chunks_mut(BLOCK * n_halves));
            for (lists, sums) in blocks {
                for (at, sums) in sums.chunks_exact_mut(lists.len()).enumerate() {
                    let rows = &rows[at * n_rows..(at + 1) * n_rows][part.rows.clone()];
                    let plains = &plains[at / 2 * n_plains..(at / 2 + 1) * n_plains][part.diagonals.clone()];
                    for (sum, list) in sums.iter_mut().zip(lists) {
                        self.kernel.sum_products(sum, used, list, rows, plains);
                    }
                }
            }
            used += part.lists.iter().map(SharedList::len).max().unwrap_or(0);
        }
        let blocks = scratch.sums.chunks(BLOCK * n_halves).zip(targets.chunks_mut(2 * BLOCK));
        for (sums, targets) in blocks {
            for (at, sums) in sums.chunks_exact(targets.len() / 2).enumerate() {
                for (sum, halves) in sums.iter().zip(targets.chunks_exact_mut(2)) {
                    self.kernel.reduce(&mut halves[at % 2].as_chunks_mut::<STRIP>().0[at / 2], sum);
                }
            }
        }
    }
}

/// Writes every word R times, as far as there is room.
fn repeat<const R: usize>(out: &mut [u64; STRIP], words: &[u64]) {
    out.as_chunks_mut::<R>().0.iter_mut().zip(words).for_each(|(run, &word)| *run = [word; R]);
}
