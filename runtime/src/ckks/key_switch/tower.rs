//! One tower of a key switch, piece by piece: all digits, then their products with every key.

use std::ops::Range;

use fhe_bytecode::Level;

use super::{Digits, First, Switch};
use crate::ckks::Context;
use crate::ring::scalar::{End, Start, Term};
use crate::ring::{Ahead, Begun, Buffer, Lifted, Tower};

/// Who takes the sums.
pub(super) trait Receiver {
    /// Where both halves of a piece of the result go, for the key with number `switch`.
    fn place(&mut self, switch: usize, piece: Range<usize>) -> [&mut [u64]; 2];
    /// Takes what was placed there; asks for what is ahead if it computes.
    fn take(&mut self, switch: usize, piece: Range<usize>, ahead: &mut Ahead<'_>);
}

/// Both halves of Σ digitⱼ·keyⱼ in the tower at position `i` of the key basis, for each key.
pub(super) fn products(
    context: &Context,
    digits: &Digits<'_>,
    first: First<'_>,
    switches: &[Switch<'_>],
    i: usize,
    receiver: &mut impl Receiver,
) {
    let ring = context.ring();
    let (n, level) = (ring.n(), digits.level());
    let tower = ring.tower(context.key_basis(level), i);
    let size = tower.ntt.piece();
    let targets: Vec<Vec<usize>> = switches.iter().map(|switch| switch.targets(n / size, size)).collect();
    let mut scratch = Buffer::unset(digits.len() * n);
    let mut digits = digits.begin(context, i, &mut scratch);
    let mut own = Buffer::unset(3 * size);
    let (start, own) = own.split_at_mut(size);
    let (first_sum, second_sum) = own.split_at_mut(size);
    for at in 0..n / size {
        let range = at * size..(at + 1) * size;
        let keys: Vec<Vec<[&[u64]; 2]>> =
            switches.iter().map(|switch| switch.keys(digits.len(), (level, i), range.clone())).collect();
        let ahead_of = |switch: usize| -> Ahead<'_> {
            Ahead::new(keys.get(switch).map_or_else(Vec::new, |keys| keys.as_flattened().to_vec()))
        };
        let mut ahead = ahead_of(0);
        digits.iter_mut().for_each(|digit| digit.finish(tower, at, &mut ahead));
        let start = first.piece(context, (i, level.n_towers()), tower, range.clone(), start);
        for (number, (switch, keys)) in switches.iter().zip(&keys).enumerate() {
            let terms: Vec<Term<'_>> = digits
                .iter()
                .zip(keys)
                .map(|(digit, &y)| {
                    let (x, doubles) = digit.words();
                    Term { x: &x[range.clone()], doubles, y, y_doubles: false }
                })
                .collect();
            let target = targets[number][at];
            let piece = target * size..(target + 1) * size;
            let result = receiver.place(number, piece.clone());
            match &switch.permute {
                None => tower.kernels.dot2(result, &terms, start),
                Some(automorphism) => {
                    tower.kernels.dot2([&mut *first_sum, &mut *second_sum], &terms, start);
                    result
                        .into_iter()
                        .zip([&*first_sum, &*second_sum])
                        .for_each(|(result, sum)| automorphism.apply_piece(target, result, sum));
                }
            }
            receiver.take(number, piece, &mut ahead_of(number + 1));
        }
    }
}

impl<'a> Switch<'a> {
    /// A piece of the key in one tower: both halves for each digit.
    fn keys(&self, n_digits: usize, (level, i): (Level, usize), range: Range<usize>) -> Vec<[&'a [u64]; 2]> {
        let key = self.key;
        let piece = |digit| key.tower(digit, level, i).map(|half| &half[range.clone()]);
        (0..n_digits).map(piece).collect()
    }

    /// For each of so many pieces of the digits, the piece of the result that it goes to.
    fn targets(&self, n_pieces: usize, size: usize) -> Vec<usize> {
        let mut targets: Vec<usize> = (0..n_pieces).collect();
        if let Some(automorphism) = &self.permute {
            (0..n_pieces).for_each(|target| targets[automorphism.source_piece(target, size)] = target);
        }
        targets
    }
}

impl First<'_> {
    /// What the sums start from on a piece, in the tower at position `i` of a key basis with `n_q` towers.
    fn piece<'s>(
        &'s self,
        context: &Context,
        (i, n_q): (usize, usize),
        tower: &Tower,
        range: Range<usize>,
        scratch: &'s mut [u64],
    ) -> Start<'s> {
        match self {
            Self::Sum(sum) => Start::First(&sum.tower(i)[range]),
            Self::TimesP(poly) if i < n_q => {
                scratch.copy_from_slice(&poly.tower(i)[range]);
                tower.kernels.mul_scalar_assign(scratch, context.p(i));
                Start::First(scratch)
            }
            Self::TimesP(_) => Start::Zero,
        }
    }
}

/// Keeps the sums, for each key both halves of the tower.
pub(super) struct Keep<'a>(pub(super) Vec<[&'a mut [u64]; 2]>);

impl Receiver for Keep<'_> {
    fn place(&mut self, switch: usize, piece: Range<usize>) -> [&mut [u64]; 2] {
        self.0[switch].each_mut().map(|half| &mut half[piece.clone()])
    }

    fn take(&mut self, _: usize, _: Range<usize>, _: &mut Ahead<'_>) {}
}

/// Divides the sums by P.
pub(super) struct Divide<'a> {
    context: &'a Context,
    i: usize,
    /// A piece of both halves.
    sums: Buffer,
    /// For each key both halves of the tower: begun transforms of what a division subtracts, then the quotients.
    results: Vec<[(Begun, &'a mut [u64]); 2]>,
}

impl<'a> Divide<'a> {
    /// Quotients in tower `i`, given for each key the rest of both halves modulo P.
    pub(super) fn new(
        context: &'a Context,
        i: usize,
        rests: &[[Lifted; 2]],
        results: Vec<[&'a mut [u64]; 2]>,
    ) -> Self {
        let ring = context.ring();
        let begin = |rest: &Lifted, result: &'a mut [u64]| {
            (context.special().begin(ring, rest, i, result), result)
        };
        let results = rests
            .iter()
            .zip(results)
            .map(|([a, b], [first, second])| [begin(a, first), begin(b, second)])
            .collect();
        let sums = Buffer::unset(2 * ring.towers()[i].ntt.piece());
        Self { context, i, sums, results }
    }
}

impl Receiver for Divide<'_> {
    fn place(&mut self, _: usize, piece: Range<usize>) -> [&mut [u64]; 2] {
        self.sums.split_at_mut(piece.len()).into()
    }

    fn take(&mut self, switch: usize, piece: Range<usize>, ahead: &mut Ahead<'_>) {
        let tower = &self.context.ring().towers()[self.i];
        let w = self.context.p_inv(self.i);
        let number = piece.start / piece.len();
        for ((begun, result), a) in self.results[switch].iter_mut().zip(self.sums.chunks_exact(piece.len())) {
            let out = &mut result[piece.clone()];
            tower.ntt.finish_piece(&tower.kernels, *begun, number, out, End::Divided { a, w }, ahead);
        }
    }
}
