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
use fhe_ring::parallel::*;

pub(super) use digits::{Digits, decompose};

use super::Context;
use super::keys::KeySwitchKey;
use fhe_ring::scalar::End;
use fhe_ring::{Ahead, Automorphism, Basis, Buffer, Lifted, NttForm, Poly, TowerSet};

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

/// What results are written into.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Onto {
    /// Words of no meaning: they are replaced.
    Nothing,
    /// Sums: results are added to them.
    Sums,
}

/// A decomposed polynomial and the keys that it is multiplied by.
pub(super) struct KeySwitch<'a> {
    pub(super) context: &'a Context,
    /// The polynomial.
    pub(super) digits: &'a Digits<'a>,
    /// Added to every result.
    pub(super) first: First<'a>,
    /// The keys, one result for each.
    pub(super) switches: &'a [Switch<'a>],
}

impl KeySwitch<'_> {
    /// Both halves of Σ digitⱼ·keyⱼ over the key basis, for each key.
    pub(super) fn times_p(&self) -> Vec<Halves> {
        let basis = self.context.key_basis(self.digits.level());
        self.by_tower(basis, |i, mut sums| self.products(i, &mut sums, Onto::Nothing))
    }

    /// Adds both halves of Σ digitⱼ·keyⱼ over the key basis to a sum, for one key.
    pub(super) fn add_times_p(&self, sum: &mut Halves) {
        assert_eq!(self.switches.len(), 1, "one sum takes the products with one key");
        let basis = self.context.key_basis(self.digits.level());
        by_tower([sum], self.context.ring().n(), basis)
            .into_par_iter()
            .enumerate()
            .for_each(|(i, mut sums)| self.products(i, &mut sums, Onto::Sums));
    }

    /// Both halves of Σ digitⱼ·keyⱼ / P over the towers, for each key.
    pub(super) fn divided(&self) -> Vec<Halves> {
        let ring = self.context.ring();
        let (n, level) = (ring.n(), self.digits.level());
        // What a division by P subtracts comes from the special primes.
        let basis = self.context.basis(level);
        let special = Basis { q: TowerSet::default(), n_special: ring.n_special() };
        let rests = self.by_tower(special, |i, mut rests| {
            self.products(basis.n_q() + i, &mut rests, Onto::Nothing);
        });
        let lift = |rest: &Poly<NttForm>| {
            let x: Vec<&[u64]> = rest.data().chunks_exact(n).collect();
            self.context.special().lift(ring, &x)
        };
        let rests: Vec<Lifted> = rests.as_flattened().par_iter().map(lift).collect();
        self.by_tower(basis, |i, results| {
            let index = ring.tower_index(basis, i);
            let mut sums = Buffer::unset(2 * self.switches.len() * n);
            let mut halves: Vec<[&mut [u64]; 2]> =
                sums.chunks_exact_mut(2 * n).map(|sums| sums.split_at_mut(n).into()).collect();
            self.products(i, &mut halves, Onto::Nothing);
            let outs = results.into_iter().flatten().zip(sums.chunks_exact(n)).zip(&rests);
            for (at, ((out, a), rest)) in outs.enumerate() {
                let ahead = rests.get(at + 1).map_or_else(Ahead::nothing, Lifted::ahead);
                let end = End::Divided { a, w: self.context.p_inv(index) };
                self.context.special().forward(ring, rest, index, out, end, ahead);
            }
        })
    }

    /// A pair of halves over `basis` for each key, written by `f` tower by tower.
    fn by_tower(&self, basis: Basis, f: impl Fn(usize, Vec<[&mut [u64]; 2]>) + Sync) -> Vec<Halves> {
        let ring = self.context.ring();
        let mut halves: Vec<Halves> =
            self.switches.iter().map(|_| [ring.unset(basis), ring.unset(basis)]).collect();
        by_tower(&mut halves, ring.n(), basis)
            .into_par_iter()
            .enumerate()
            .for_each(|(i, halves)| f(i, halves));
        halves
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

/// Divides by P and rounds: from the key basis of `level` to its towers.
pub(super) fn mod_down(context: &Context, level: Level, poly: &Poly<NttForm>) -> Poly<NttForm> {
    let ring = context.ring();
    let basis = context.key_basis(level);
    let x: Vec<&[u64]> = (basis.n_q()..basis.len()).map(|i| poly.tower(i)).collect();
    let lifted = context.special().lift(ring, &x);
    let mut out = ring.unset(context.basis(level));
    ring.for_each_tower(&mut out, |_, i, out| {
        let index = ring.tower_index(basis, i);
        let end = End::Divided { a: poly.tower(i), w: context.p_inv(index) };
        context.special().forward(ring, &lifted, index, out, end, Ahead::nothing());
    });
    out
}
