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
use fhe_ring::{Buffer, Ring, Words};

/// Transformed diagonals that meet one inner product; more would leave the second cache.
const BATCH: usize = 4;

/// Terms whose diagonals are held at once, unless one group alone has more.
const ROUND: usize = 256;

/// The terms of one group that read the input at hand.
struct Work {
    group: usize,
    terms: Vec<LinearTerm>,
}

/// The sums inside the giant steps, one per group, and the scale of the products.
pub(super) fn inner_sums(
    context: &Context,
    level: Level,
    inputs: &[Ciphertext],
    plan: &LinearPlan,
    source: &dyn PlaintextSource,
    keys: &GaloisKeys,
) -> Result<(Vec<Halves>, Scale), CkksError> {
    let basis = context.key_basis(level);
    let mut sums: Vec<Halves> =
        plan.groups.iter().map(|_| [context.ring().zero(basis), context.ring().zero(basis)]).collect();
    let mut scale: Option<Scale> = None;
    for (input, ciphertext) in inputs.iter().enumerate() {
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
        let babies = baby_steps(context, ciphertext, &steps, keys)?;
        for round in rounds(&work) {
            let terms: Vec<LinearTerm> = round.iter().flat_map(|work| &work.terms).copied().collect();
            let diagonals = terms
                .par_iter()
                .map(|term| source.diagonal(term.diagonal))
                .collect::<Result<Vec<Diagonal>, _>>()?;
            for diagonal in &diagonals {
                let product = ciphertext.scale.times(diagonal.scale());
                let expected = *scale.get_or_insert(product);
                if !expected.agrees(product) {
                    return Err(CkksError::ScaleMismatch { left: expected, right: product });
                }
                check_basis(context, level, diagonal)?;
            }
            let factors = terms
                .iter()
                .map(|term| &babies[steps.binary_search(&term.baby).expect("every baby step was computed")]);
            let products: Vec<Product<'_>> = diagonals
                .iter()
                .zip(factors)
                .map(|(diagonal, factor)| Product { diagonal, factor })
                .collect();
            multiply_accumulate(context, level, &mut sums, round, &products);
        }
    }
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

/// One summand: a diagonal and the baby step it meets.
#[derive(Clone, Copy)]
struct Product<'a> {
    diagonal: &'a Diagonal,
    factor: &'a Halves,
}

impl Product<'_> {
    /// The diagonal in the tower with index `index`, transformed into `scratch` if need be.
    fn diagonal<'s>(&'s self, ring: &Ring, index: usize, scratch: &'s mut [u64]) -> Words<'s> {
        match self.diagonal {
            Diagonal::Encoding(encoding) => {
                let out = &mut scratch[..encoding.coeffs.len()];
                let held = encoding.transform_for_products(&ring.towers()[index], out);
                held.of(out)
            }
            Diagonal::Plaintext(plain) => Words::Integers(ring.residues(&plain.poly, index)),
        }
    }
}

/// sums ← sums + Σ diagonal·factor for the groups of a round, tower by tower.
///
/// One tower of all baby steps stays in the last cache while every group reads it.
fn multiply_accumulate(
    context: &Context,
    level: Level,
    sums: &mut [Halves],
    round: &[Work],
    products: &[Product<'_>],
) {
    let ring = context.ring();
    let n = ring.n();
    let basis = context.key_basis(level);
    let lengths: Vec<usize> = round.iter().map(|work| work.terms.len()).collect();
    let is_in_round = |group: &usize| round.binary_search_by_key(group, |work| work.group).is_ok();
    let sums = sums.iter_mut().enumerate().filter(|(group, _)| is_in_round(group)).map(|(_, sum)| sum);
    by_tower(sums, n, basis).into_par_iter().enumerate().for_each(|(i, sums)| {
        let (tower, index) = (ring.tower(basis, i), ring.tower_index(basis, i));
        let mut scratch = Buffer::unset(BATCH * n);
        let mut products = products;
        for ([first, second], &len) in sums.into_iter().zip(&lengths) {
            let (group, rest) = products.split_at(len);
            products = rest;
            for batch in group.chunks(BATCH) {
                let terms: Vec<Term<'_>> = batch
                    .iter()
                    .zip(scratch.chunks_exact_mut(n))
                    .map(|(product, scratch)| {
                        let y = [0, 1].map(|half| Words::Integers(product.factor[half].tower(i)));
                        Term { x: product.diagonal(ring, index, scratch), y }
                    })
                    .collect();
                tower.kernels.dot2([&mut *first, &mut *second], &terms, Start::Sums);
            }
        }
    });
}
