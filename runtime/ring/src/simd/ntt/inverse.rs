//! The inverse transform.
//!
//! Growth, in units of p: sums double with every layer. The innermost pass takes residues below 1 to sums below 8,
//! exact even at p ≈ 2^50; then what grew most is balanced, so that a pass starts below 1.1. At p ≈ 2^50 the
//! difference of two sums makes a product of up to 1/2 + 3/16 of it, so the next pass starts below 1.3, and the
//! seventh, the last one of n = 2^17, below 1.9; its sums stay below 8. Differences stay below 4, but for those of sums
//! of sums in such a pass. The last pass multiplies by the factor that undoes the scale n.

use super::forward::{load_rows, parts};
use super::twiddles::INNER;
use super::{FmaNtt, TURN};
use crate::simd::lanes::Lanes;
use crate::simd::prime::{Factor, Prime, from_int};

/// Values in [0, p), bit-reversed, to coefficients in [0, p), in order, times n·`scale`. The values are in
/// `buf` unless given apart.
#[inline(always)]
pub(super) fn inverse<S: Lanes, const LARGE: bool>(
    plan: &FmaNtt<S>,
    buf: &mut [u64],
    values: Option<&[u64]>,
    scale: u64,
) {
    let prime = Prime::new(plan.s, plan.q.value());
    let layers = plan.n.trailing_zeros() as usize - 3;
    // The pass that ends the transform has this many blocks below it.
    let top = if layers % 2 == 1 { 2 } else { 4 };
    let mut m = plan.n / plan.piece;
    let inner = plan.piece / (8 * S::WIDTH);
    for (i, block) in buf.chunks_exact_mut(plan.piece).enumerate() {
        if let Some(values) = values {
            block.copy_from_slice(&values[i * plan.piece..(i + 1) * plan.piece]);
        }
        inner_pass::<S, LARGE>(&prime, block, &plan.inverse.inner[i * inner..(i + 1) * inner]);
        let mut sub = block.len() / 32;
        while sub >= 1 {
            passes::<S, LARGE>(plan, &prime, block, (m * sub, i * sub));
            sub /= 4;
        }
    }
    while m > top {
        m /= 4;
        passes::<S, LARGE>(plan, &prime, buf, (m, 0));
    }
    if top == 2 {
        last_layer::<S, LARGE>(plan, &prime, buf, scale);
    } else {
        last_pass::<S, LARGE>(plan, &prime, buf, scale);
    }
}

/// One pass over every block of `part`, which holds blocks `first`… of the layer with `m` blocks.
#[inline(always)]
fn passes<S: Lanes, const LARGE: bool>(
    plan: &FmaNtt<S>,
    prime: &Prime<S>,
    part: &mut [u64],
    (m, first): (usize, usize),
) {
    for (i, block) in part.chunks_exact_mut(plan.n / m).enumerate() {
        pass::<S, LARGE>(prime, block, &plan.inverse.three(prime, m, first + i));
    }
}

/// (x, y) ← (x + y, w·(x - y)); FAR says that differences may exceed 4p at p ≈ 2^50.
#[inline(always)]
fn uncross<S: Lanes, const K: usize, const FAR: bool>(
    prime: &Prime<S>,
    x: &mut [S::V; K],
    (a, b): (usize, usize),
    w: &Factor<S>,
) {
    let s = prime.s;
    let difference = s.sub(x[a], x[b]);
    x[a] = s.add(x[a], x[b]);
    x[b] = if FAR { prime.mul_factor(difference, w) } else { prime.mul_factor_short(difference, w) };
}

/// Two layers over a block.
#[inline(always)]
fn pass<S: Lanes, const LARGE: bool>(prime: &Prime<S>, block: &mut [u64], w: &[Factor<S>; 3]) {
    let s = prime.s;
    let [a, b, c, d] = parts::<S, 4>(block);
    for (((a, b), c), d) in a.iter_mut().zip(b).zip(c).zip(d) {
        let mut x = [s.load(a), s.load(b), s.load(c), s.load(d)];
        uncross::<S, 4, false>(prime, &mut x, (0, 1), &w[1]);
        uncross::<S, 4, false>(prime, &mut x, (2, 3), &w[2]);
        uncross::<S, 4, LARGE>(prime, &mut x, (0, 2), &w[0]);
        uncross::<S, 4, false>(prime, &mut x, (1, 3), &w[0]);
        s.store(a, prime.balance(x[0]));
        s.store(b, if LARGE { prime.balance(x[1]) } else { x[1] });
        s.store(c, x[2]);
        s.store(d, x[3]);
    }
}

/// The last two layers and the scale: differences take it with their twiddles, sums of sums by a product.
#[inline(always)]
fn last_pass<S: Lanes, const LARGE: bool>(plan: &FmaNtt<S>, prime: &Prime<S>, buf: &mut [u64], scale: u64) {
    let s = prime.s;
    let w = plan.inverse.three(prime, 1, 0);
    let scaled = |at: usize| plan.factor(prime, plan.inverse.scaled(plan.q, at, scale));
    let (first, second, third) = (scaled(1), scaled(2), scaled(3));
    let scale = plan.factor(prime, scale);
    let [a, b, c, d] = parts::<S, 4>(buf);
    for (((a, b), c), d) in a.iter_mut().zip(b).zip(c).zip(d) {
        let mut x = [s.load(a), s.load(b), s.load(c), s.load(d)];
        uncross::<S, 4, false>(prime, &mut x, (0, 1), &second);
        uncross::<S, 4, false>(prime, &mut x, (2, 3), &third);
        uncross::<S, 4, LARGE>(prime, &mut x, (0, 2), &first);
        uncross::<S, 4, false>(prime, &mut x, (1, 3), &w[0]);
        s.store(a, product_to_store::<S, LARGE>(prime, prime.mul_factor(x[0], &scale)));
        s.store(b, if LARGE { prime.canonical(x[1]) } else { prime.canonical_floor(x[1]) });
        s.store(c, product_to_store::<S, LARGE>(prime, x[2]));
        s.store(d, product_to_store::<S, LARGE>(prime, x[3]));
    }
}

/// The residue of a product, which exceeds p only for large primes.
#[inline(always)]
fn product_to_store<S: Lanes, const LARGE: bool>(prime: &Prime<S>, x: S::V) -> S::V {
    if LARGE { prime.canonical(x) } else { prime.canonical_small(x) }
}

/// The last layer alone and the scale, when the number of layers is odd.
#[inline(always)]
fn last_layer<S: Lanes, const LARGE: bool>(plan: &FmaNtt<S>, prime: &Prime<S>, buf: &mut [u64], scale: u64) {
    let s = prime.s;
    let w = plan.factor(prime, plan.inverse.scaled(plan.q, 1, scale));
    let scale = plan.factor(prime, scale);
    let [a, b] = parts::<S, 2>(buf);
    for (a, b) in a.iter_mut().zip(b) {
        let (x, y) = (s.load(a), s.load(b));
        s.store(a, product_to_store::<S, LARGE>(prime, prime.mul_factor(s.add(x, y), &scale)));
        s.store(b, product_to_store::<S, LARGE>(prime, prime.mul_factor(s.sub(x, y), &w)));
    }
}

/// The first three layers, on groups of eight neighboring entries; two short loops, as the forward one.
#[inline(always)]
fn inner_pass<S: Lanes, const LARGE: bool>(prime: &Prime<S>, block: &mut [u64], table: &[[S::Words; INNER]]) {
    let s = prime.s;
    let rows = S::words_mut(block).0.as_chunks_mut::<8>().0;
    for (rows, table) in rows.chunks_mut(TURN).zip(table.chunks(TURN)) {
        for (rows, table) in rows.iter_mut().zip(table) {
            let mut x = s.group(load_rows(s, rows));
            for x in &mut x {
                *x = from_int(s, *x);
            }
            for k in 0..4 {
                uncross::<S, 8, false>(
                    prime,
                    &mut x,
                    (2 * k, 2 * k + 1),
                    &prime.factor(s.load(&table[3 + k])),
                );
            }
            for k in 0..8 {
                s.store(&mut rows[k], x[k]);
            }
        }
        for (rows, table) in rows.iter_mut().zip(table) {
            let mut x = load_rows(s, rows);
            for (k, j) in [(0, 1), (1, 1), (4, 2), (5, 2)] {
                uncross::<S, 8, false>(prime, &mut x, (k, k + 2), &prime.factor(s.load(&table[j])));
            }
            let w = prime.factor(s.load(&table[0]));
            for k in 0..4 {
                uncross::<S, 8, false>(prime, &mut x, (k, k + 4), &w);
            }
            for x in &mut x[..if LARGE { 5 } else { 2 }] {
                *x = prime.balance(*x);
            }
            let x = s.ungroup(x);
            for k in 0..8 {
                s.store(&mut rows[k], x[k]);
            }
        }
    }
}
