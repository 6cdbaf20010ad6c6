//! Hybrid key switching: decompose, multiply by the key, divide by P.
//!
//! The digit of a polynomial c for a group of towers with product D is the integer polynomial [c·…]_D, centered,
//! written over all towers and special primes. Σ digitⱼ·keyⱼ is P times c·s' under the new secret, plus an
//! error that the division by P makes small. Everything goes tower by tower and, inside a tower, piece by piece: a digit is
//! transformed where it meets the keys, for all keys that share it, and sums are divided soon after they were made.

mod digits;
mod tower;

use std::sync::Arc;

use fhe_bytecode::Level;
use rayon::prelude::*;

pub(super) use digits::{Digits, decompose};

use self::tower::products;
use super::Context;
use super::keys::KeySwitchKey;
use crate::ring::scalar::End;
use crate::ring::{Ahead, Automorphism, Basis, Buffer, Lifted, NttForm, Poly};

/// Both halves of a ciphertext over some basis.
pub(super) type Halves = [Poly<NttForm>; 2];

/// A key that a decomposed polynomial is multiplied by.
pub(super) struct Switch<'a> {
    /// The key.
    pub(super) key: &'a KeySwitchKey,
    /// Applied to both halves of the result.
    pub(super) permute: Option<Arc<Automorphism>>,
}

/// What is added to the first half of every result, before it is permuted.
#[derive(Clone, Copy)]
pub(super) enum First<'a> {
    /// A polynomial over the key basis.
    Sum(&'a Poly<NttForm>),
    /// P times a polynomial over the towers.
    TimesP(&'a Poly<NttForm>),
}

/// Both halves of Σ digitⱼ·keyⱼ over the key basis, for each key.
pub(super) fn multiply(
    context: &Context,
    digits: &Digits<'_>,
    first: First<'_>,
    switches: &[Switch<'_>],
) -> Vec<Halves> {
    let ring = context.ring();
    let (n, basis) = (ring.n(), context.key_basis(digits.level()));
    let mut sums: Vec<Halves> = switches.iter().map(|_| [ring.unset(basis), ring.unset(basis)]).collect();
    by_tower(&mut sums, n, basis)
        .into_par_iter()
        .enumerate()
        .for_each(|(i, mut sums)| products(context, digits, first, switches, i, &mut sums));
    sums
}

/// Both halves of Σ digitⱼ·keyⱼ / P over the towers, for each key.
pub(super) fn switch(
    context: &Context,
    digits: &Digits<'_>,
    first: First<'_>,
    switches: &[Switch<'_>],
) -> Vec<Halves> {
    let ring = context.ring();
    let (n, level) = (ring.n(), digits.level());
    // What a division by P subtracts comes from the special primes.
    let special = Basis { n_q: 0, n_special: context.key_basis(level).n_special };
    let mut rests: Vec<Halves> =
        switches.iter().map(|_| [ring.unset(special), ring.unset(special)]).collect();
    by_tower(&mut rests, n, special).into_par_iter().enumerate().for_each(|(i, mut rests)| {
        products(context, digits, first, switches, level.n_towers() + i, &mut rests);
    });
    let lift = |rest: &Poly<NttForm>| {
        let x: Vec<&[u64]> = rest.data().chunks_exact(n).collect();
        context.special().lift(ring, &x)
    };
    let lifted: Vec<[_; 2]> =
        rests.par_iter().map(|[first, second]| rayon::join(|| lift(first), || lift(second)).into()).collect();

    let basis = context.basis(level);
    let mut results: Vec<Halves> = switches.iter().map(|_| [ring.unset(basis), ring.unset(basis)]).collect();
    by_tower(&mut results, n, basis).into_par_iter().enumerate().for_each(|(i, results)| {
        let mut sums = Buffer::unset(2 * switches.len() * n);
        let mut halves: Vec<[&mut [u64]; 2]> =
            sums.chunks_exact_mut(2 * n).map(|sums| sums.split_at_mut(n).into()).collect();
        products(context, digits, first, switches, i, &mut halves);
        let outs = results.into_iter().flatten().zip(sums.chunks_exact(n)).zip(lifted.as_flattened());
        for (at, ((out, a), rest)) in outs.enumerate() {
            let ahead = lifted.as_flattened().get(at + 1).map_or_else(Ahead::nothing, Lifted::ahead);
            let end = End::Divided { a, w: context.p_inv(i) };
            context.special().forward(ring, rest, i, out, end, ahead);
        }
    });
    results
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

/// Divides by P and rounds: from the key basis of `level` to its towers.
pub(super) fn mod_down(context: &Context, level: Level, poly: &Poly<NttForm>) -> Poly<NttForm> {
    let ring = context.ring();
    let (basis, n_q) = (context.key_basis(level), level.n_towers());
    let x: Vec<&[u64]> = (n_q..basis.len()).map(|i| poly.tower(i)).collect();
    let lifted = context.special().lift(ring, &x);
    let mut out = ring.unset(context.basis(level));
    ring.for_each_tower(&mut out, |_, i, out| {
        let end = End::Divided { a: poly.tower(i), w: context.p_inv(i) };
        context.special().forward(ring, &lifted, i, out, end, Ahead::nothing());
    });
    out
}
