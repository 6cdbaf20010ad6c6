//! The reference kernels: one prime, slices of residues in [0, q), canonical results.

use super::modulus::{Modulus, ShoupConstant};

/// One product pair of [`dot2`]: `x` meets both halves of `y`.
///
/// `x` may be shorter than `y` by a power of two k: then entry i of `x` stands for entries ki … ki+k-1.
#[derive(Clone, Copy, Debug)]
pub struct Term<'a> {
    /// The shared factor.
    pub x: &'a [u64],
    /// The factors for the first and for the second sum.
    pub y: [&'a [u64]; 2],
}

/// Whether a kernel replaces what its result held or adds to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The old contents do not matter.
    Set,
    /// The old contents, in [0, q), are a summand.
    Add,
}

/// a ← a + b.
pub fn add_assign(q: Modulus, a: &mut [u64], b: &[u64]) {
    a.iter_mut().zip(b).for_each(|(a, &b)| *a = q.add(*a, b));
}

/// a ← a - b.
pub fn sub_assign(q: Modulus, a: &mut [u64], b: &[u64]) {
    a.iter_mut().zip(b).for_each(|(a, &b)| *a = q.sub(*a, b));
}

/// a ← -a.
pub fn neg_assign(q: Modulus, a: &mut [u64]) {
    a.iter_mut().for_each(|a| *a = q.neg(*a));
}

/// out ← a·b, entry by entry; `b` may be shorter by a power of two, as in [`Term`].
pub fn mul_into(q: Modulus, out: &mut [u64], a: &[u64], b: &[u64]) {
    let run = a.len() / b.len();
    for ((out, a), &b) in out.chunks_exact_mut(run).zip(a.chunks_exact(run)).zip(b) {
        out.iter_mut().zip(a).for_each(|(out, &a)| *out = q.mul(a, b));
    }
}

/// a ← a·w.
pub fn mul_scalar_assign(q: Modulus, a: &mut [u64], w: ShoupConstant) {
    a.iter_mut().for_each(|a| *a = q.mul_shoup(*a, w));
}

/// b ← (a - b)·w.
pub fn sub_mul_scalar_from(q: Modulus, b: &mut [u64], a: &[u64], w: ShoupConstant) {
    b.iter_mut().zip(a).for_each(|(b, &a)| *b = q.mul_shoup(a + q.value() - *b, w));
}

/// sums\[h\] ← Σ x·y\[h\] over the terms, plus what it held if the mode says so.
pub fn dot2(q: Modulus, sums: [&mut [u64]; 2], terms: &[Term<'_>], mode: Mode) {
    // Sixteen products of 61-bit residues stay below 2^126.
    const BATCH: usize = 16;
    for (h, sum) in sums.into_iter().enumerate() {
        if mode == Mode::Set {
            sum.fill(0);
        }
        for batch in terms.chunks(BATCH) {
            for (i, sum) in sum.iter_mut().enumerate() {
                let mut wide = u128::from(*sum);
                for term in batch {
                    let run = term.y[h].len() / term.x.len();
                    wide += u128::from(term.x[i / run]) * u128::from(term.y[h][i]);
                }
                *sum = q.reduce_u128(wide);
            }
        }
    }
}

/// Prepares one source of a base conversion: y ← x·w, overflow ← overflow + y/d.
pub fn weigh(d: Modulus, y: &mut [u64], x: &[u64], w: ShoupConstant, overflow: &mut [f64]) {
    let reciprocal = 1.0 / d.value() as f64;
    for ((y, &x), v) in y.iter_mut().zip(x).zip(overflow) {
        *y = d.mul_shoup(x, w);
        *v += *y as f64 * reciprocal;
    }
}

/// Rounds to the nearest integers, ties to even.
pub fn round(x: &mut [f64]) {
    x.iter_mut().for_each(|x| *x = x.round_ties_even());
}

/// Base conversion to one prime: out ← Σ yᵢ·cᵢ - v·d.
///
/// `y` are residues of other primes (any words below 2^61), `overflow` small counts v held as doubles.
pub fn convert(q: Modulus, out: &mut [u64], y: &[&[u64]], constants: &[u64], overflow: &[f64], product: u64) {
    for (i, out) in out.iter_mut().enumerate() {
        let mut wide = u128::from(q.neg(product)) * u128::from(overflow[i] as u64);
        for (y, &c) in y.iter().zip(constants) {
            wide += u128::from(y[i]) * u128::from(c);
        }
        *out = q.reduce_u128(wide);
    }
}

/// Integral doubles of any size to residues.
pub fn reduce_f64(q: Modulus, out: &mut [u64], x: &[f64]) {
    out.iter_mut().zip(x).for_each(|(out, &x)| *out = q.reduce_f64(x));
}
