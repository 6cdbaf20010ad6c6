//! The sums inside the giant steps.

use std::collections::BTreeSet;

use fhe_bytecode::{Level, Scale};
use fhe_ring::parallel::*;

use super::babies::baby_steps;
use super::{Diagonal, LinearPlan, LinearTerm, PlaintextSource};
use crate::ciphertext::Ciphertext;
use crate::key_switch::{Halves, by_tower};
use crate::{CkksError, Context, GaloisKeys, Rotation};
use fhe_ring::scalar::{Start, Term};
use fhe_ring::{Ahead, Begun, Buffer, Ring, Tower, Words};

/// Diagonals that meet one inner product; the begun transforms of more would leave the second cache.
const BATCH: usize = 4;

/// Terms whose diagonals are held at once, unless one group alone has more.
const ROUND: usize = 256;

/// The terms of one group that read the input at hand.
struct Work {
    group: usize,
    terms: Vec<LinearTerm>,
}

/// The sums inside the giant steps, one per group, of every sample, and the scale of the products.
pub(super) fn inner_sums(
    context: &Context,
    level: Level,
    samples: &[&[Ciphertext]],
    plan: &LinearPlan,
    source: &dyn PlaintextSource,
    keys: &GaloisKeys,
) -> Result<(Vec<Vec<Halves>>, Scale), CkksError> {
    let basis = context.key_basis(level);
    let sum = || [context.ring().unset(basis), context.ring().unset(basis)];
    let sums = || plan.groups.iter().map(|_| sum()).collect::<Vec<Halves>>();
    let mut sums: Vec<Vec<Halves>> = samples.iter().map(|_| sums()).collect();
    let mut is_begun = vec![false; plan.groups.len()];
    let mut scale: Option<Scale> = None;
    let n_inputs = samples.first().map_or(0, |inputs| inputs.len());
    for input in 0..n_inputs {
        let work: Vec<Work> = plan
            .groups
            .iter()
            .map(|group| group.terms.iter().copied().filter(|term| term.input == input).collect())
            .enumerate()
            .filter(|(_, terms): &(usize, Vec<LinearTerm>)| !terms.is_empty())
            .map(|(group, terms)| Work { group, terms })
            .collect();
        let steps: BTreeSet<Rotation> =
            work.iter().flat_map(|work| &work.terms).map(|term| term.baby).collect();
        let steps: Vec<Rotation> = steps.into_iter().collect();
        let babies = samples
            .iter()
            .map(|inputs| baby_steps(context, &inputs[input], &steps, keys))
            .collect::<Result<Vec<_>, _>>()?;
        for round in rounds(&work) {
            let terms: Vec<LinearTerm> = round.iter().flat_map(|work| &work.terms).copied().collect();
            let diagonals = terms
                .par_iter()
                .map(|term| source.diagonal(term.diagonal))
                .collect::<Result<Vec<Diagonal>, _>>()?;
            for diagonal in &diagonals {
                let product = samples[0][input].scale.times(diagonal.scale());
                let expected = *scale.get_or_insert(product);
                if !expected.agrees(product) {
                    return Err(CkksError::ScaleMismatch { left: expected, right: product });
                }
                check_basis(context, level, diagonal)?;
            }
            let step =
                |term: &LinearTerm| steps.binary_search(&term.baby).expect("every baby step was computed");
            let products = diagonals.iter().zip(&terms);
            let products: Vec<Product<'_>> =
                products.map(|(diagonal, term)| Product { diagonal, step: step(term) }).collect();
            multiply_accumulate(context, level, &mut sums, &is_begun, round, &products, &babies);
            round.iter().for_each(|work| is_begun[work.group] = true);
        }
    }
    debug_assert!(is_begun.iter().all(|&is_begun| is_begun), "every group has a term");
    Ok((sums, scale.ok_or(CkksError::Plan("no term"))?))
}

/// Consecutive groups with few enough terms.
fn rounds(work: &[Work]) -> impl Iterator<Item = &[Work]> {
    let mut held = 0;
    work.chunk_by(move |before, after| {
        held = if held == 0 { before.terms.len() } else { held } + after.terms.len();
        let fits = held <= ROUND;
        if !fits {
            held = 0;
        }
        fits
    })
}

pub(super) fn check_basis(context: &Context, level: Level, diagonal: &Diagonal) -> Result<(), CkksError> {
    let (expected, found) = match diagonal {
        Diagonal::Encoding(_) => return Ok(()),
        Diagonal::Plaintext(plain) => (context.key_basis(level), plain.basis()),
    };
    let fits = expected.q.is_subset(found.q) && found.n_special == expected.n_special;
    if fits {
        Ok(())
    } else {
        Err(CkksError::PlaintextBasis { expected: expected.len(), found: found.len() })
    }
}

/// One summand: a diagonal and the baby step it meets, by its place among them.
#[derive(Clone, Copy)]
struct Product<'a> {
    diagonal: &'a Diagonal,
    step: usize,
}

/// A diagonal in one tower, given or transformed.
enum TowerDiagonal<'a> {
    /// Given, or transformed at once; one that repeats has one period.
    Whole(Words<'a>),
    /// A transform that is finished piece by piece.
    Begun { begun: Begun, words: &'a mut [u64] },
}

impl<'a> TowerDiagonal<'a> {
    fn new(ring: &Ring, index: usize, diagonal: &'a Diagonal, words: &'a mut [u64]) -> Self {
        let tower = &ring.towers()[index];
        match diagonal {
            Diagonal::Plaintext(plain) => Self::Whole(Words::Integers(ring.residues(&plain.poly, index))),
            Diagonal::Encoding(encoding) if encoding.coeffs.len() == words.len() => {
                let begun = tower.ntt.begin_integers(&tower.kernels, words, &encoding.coeffs);
                Self::Begun { begun, words }
            }
            Diagonal::Encoding(encoding) => {
                let words = &mut words[..encoding.coeffs.len()];
                Self::Whole(encoding.transform_for_products(tower, words).of(words))
            }
        }
    }

    /// What meets a piece of a baby step.
    fn piece(&mut self, tower: &Tower, at: usize) -> Words<'_> {
        let size = tower.ntt.piece();
        match self {
            Self::Whole(words) => {
                let size = size * words.len() / tower.ntt.size();
                words.piece(at * size..(at + 1) * size)
            }
            Self::Begun { begun, words } => {
                let words = &mut words[at * size..(at + 1) * size];
                let (end, ahead) = (tower.kernels.packed_end(), &mut Ahead::nothing());
                tower.ntt.finish_piece(&tower.kernels, *begun, at, words, end, ahead).of(words)
            }
        }
    }
}

/// sums ← sums + Σ diagonal·factor for the groups of a round, tower by tower; `factors` has the baby steps of every sample. Sums
/// that are not begun hold nothing yet and are written.
///
/// One tower of all baby steps stays in the last cache while every group reads it. A piece of a diagonal is finished where it
/// is multiplied, for all samples.
fn multiply_accumulate(
    context: &Context,
    level: Level,
    sums: &mut [Vec<Halves>],
    is_begun: &[bool],
    round: &[Work],
    products: &[Product<'_>],
    factors: &[Vec<Halves>],
) {
    let ring = context.ring();
    let n = ring.n();
    let basis = context.key_basis(level);
    let is_in_round = |group: &usize| round.binary_search_by_key(group, |work| work.group).is_ok();
    let all = sums.iter_mut().flat_map(|sums| sums.iter_mut().enumerate());
    let sums = all.filter(|(group, _)| is_in_round(group)).map(|(_, sum)| sum);
    by_tower(sums, n, basis).into_par_iter().enumerate().for_each(|(i, mut sums)| {
        let (tower, index) = (ring.tower(basis, i), ring.tower_index(basis, i));
        let size = tower.ntt.piece();
        let mut scratch = Buffer::unset(BATCH * n);
        let mut products = products;
        for (group, work) in round.iter().enumerate() {
            let (own, rest) = products.split_at(work.terms.len());
            products = rest;
            for (nth, batch) in own.chunks(BATCH).enumerate() {
                let start = if nth == 0 && !is_begun[work.group] { Start::Zero } else { Start::Sums };
                let mut diagonals: Vec<TowerDiagonal<'_>> = batch
                    .iter()
                    .zip(scratch.chunks_exact_mut(n))
                    .map(|(product, words)| TowerDiagonal::new(ring, index, product.diagonal, words))
                    .collect();
                for at in 0..n / size {
                    let range = at * size..(at + 1) * size;
                    let x: Vec<Words<'_>> =
                        diagonals.iter_mut().map(|diagonal| diagonal.piece(tower, at)).collect();
                    for (steps, sums) in factors.iter().zip(sums.chunks_exact_mut(round.len())) {
                        let y = |product: &Product<'_>| {
                            let half = |half: usize| &steps[product.step][half].tower(i)[range.clone()];
                            [0, 1].map(|h| Words::Integers(half(h)))
                        };
                        let terms: Vec<Term<'_>> =
                            batch.iter().zip(&x).map(|(product, &x)| Term { x, y: y(product) }).collect();
                        let sums = sums[group].each_mut().map(|sum| &mut sum[range.clone()]);
                        tower.kernels.dot2(sums, &terms, start);
                    }
                }
            }
        }
    });
}
