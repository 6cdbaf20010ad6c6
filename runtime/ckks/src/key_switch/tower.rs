//! One tower of a key switch, piece by piece: all digits, then their products with every key.

use std::ops::Range;

use fhe_bytecode::Level;

use super::{First, KeySwitch, Onto, Switch};
use crate::Context;
use fhe_ring::scalar::{PackedTerm, Start};
use fhe_ring::{Ahead, Basis, Buffer, Packed, Tower};

impl KeySwitch<'_> {
    /// Both halves of Σ digitⱼ·keyⱼ in the tower at position `i` of the key basis, into `sums` for each key.
    pub(super) fn products(&self, i: usize, sums: &mut [[&mut [u64]; 2]], onto: Onto) {
        let ring = self.context.ring();
        let (n, level) = (ring.n(), self.digits.level());
        let basis = self.context.key_basis(level);
        let tower = ring.tower(basis, i);
        let (size, end) = (tower.ntt.piece(), tower.kernels.packed_end());
        let targets: Vec<Vec<usize>> =
            self.switches.iter().map(|switch| switch.targets(n / size, size)).collect();
        let mut scratch = Buffer::unset(self.digits.len() * n);
        let mut digits = self.digits.begin(self.context, i, &mut scratch);
        let mut own = Buffer::unset(4 * size);
        let (start, own) = own.split_at_mut(size);
        let (permuted, own) = own.split_at_mut(size);
        let (first_sum, second_sum) = own.split_at_mut(size);
        for at in 0..n / size {
            let range = at * size..(at + 1) * size;
            let keys: Vec<Vec<[Packed<'_>; 2]>> = self
                .switches
                .iter()
                .map(|switch| switch.keys(self.context, (level, i), range.clone()))
                .collect();
            // The first key is needed next.
            let bytes = keys.iter().take(1).flatten().flatten().map(Packed::bytes);
            let mut ahead = Ahead::new(bytes);
            digits.iter_mut().for_each(|digit| digit.finish(tower, at, end, &mut ahead));
            let start = self.first.piece(self.context, (basis, i), tower, range.clone(), start);
            for (((switch, keys), targets), sums) in
                self.switches.iter().zip(&keys).zip(&targets).zip(&mut *sums)
            {
                let terms: Vec<PackedTerm<'_>> = digits
                    .iter()
                    .zip(keys)
                    .map(|(digit, &y)| PackedTerm { x: digit.words().piece(range.clone()), y })
                    .collect();
                let target = targets[at];
                let result = sums.each_mut().map(|sum| &mut sum[target * size..(target + 1) * size]);
                if switch.permute.is_none() && onto == Onto::Nothing {
                    tower.kernels.dot2_packed(result, &terms, start);
                    continue;
                }
                tower.kernels.dot2_packed([&mut *first_sum, &mut *second_sum], &terms, start);
                for (result, sum) in result.into_iter().zip([&*first_sum, &*second_sum]) {
                    match (&switch.permute, onto) {
                        (Some(automorphism), Onto::Nothing) => automorphism.apply_piece(target, result, sum),
                        (Some(automorphism), Onto::Sums) => {
                            automorphism.apply_piece(target, permuted, sum);
                            tower.kernels.add_assign(result, permuted);
                        }
                        (None, _) => tower.kernels.add_assign(result, sum),
                    }
                }
            }
        }
    }
}

impl<'a> Switch<'a> {
    /// A piece of the key in one tower: both halves for each digit.
    fn keys(
        &self,
        context: &Context,
        (level, i): (Level, usize),
        range: Range<usize>,
    ) -> Vec<[Packed<'a>; 2]> {
        let key = self.key;
        let piece = |digit| key.tower(context, digit, level, i).map(|half| half.piece(range.clone()));
        (0..context.digits(level).len()).map(piece).collect()
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
    /// What the sums start from on a piece, in the tower at position `i` of a key basis.
    fn piece<'s>(
        &'s self,
        context: &Context,
        (basis, i): (Basis, usize),
        tower: &Tower,
        range: Range<usize>,
        scratch: &'s mut [u64],
    ) -> Start<'s> {
        match self {
            Self::Sum(sum) => Start::First(&sum.tower(i)[range]),
            Self::TimesP(poly) if i < basis.n_q() => {
                scratch.copy_from_slice(&poly.tower(i)[range]);
                tower.kernels.mul_scalar_assign(scratch, context.p(basis.q.nth(i)));
                Start::First(scratch)
            }
            Self::TimesP(_) => Start::Zero,
        }
    }
}
