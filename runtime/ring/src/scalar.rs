//! The reference kernels: one prime, slices of residues in [0, q), canonical results.

use super::modulus::{Modulus, ShoupConstant};
use super::packed::Packed;
use super::words::{Held, Words};

/// One product pair of [`dot2`]: `x` meets both halves of `y`.
///
/// `x` may be shorter than `y` by a power of two k: then entry i of `x` stands for entries ki … ki+k-1.
#[derive(Clone, Copy, Debug)]
pub struct Term<'a> {
    /// The shared factor: residues, or what [`Kernels::packed_end`](super::Kernels::packed_end) leaves; doubles may be any
    /// representatives of their residues.
    pub x: Words<'a>,
    /// The factors for the first and for the second sum, in one form; doubles are in [0, q), as
    /// [`Kernels::unpack`](super::Kernels::unpack) may make them.
    pub y: [Words<'a>; 2],
}

/// One product pair of [`dot2_packed`].
#[derive(Clone, Copy, Debug)]
pub struct PackedTerm<'a> {
    /// The shared factor, as the kernels of the prime asked for it.
    pub x: Words<'a>,
    /// The factors for the first and for the second sum.
    pub y: [Packed<'a>; 2],
}

/// A base conversion to one prime: Σ yₖ·cₖ, see [`convert`].
#[derive(Clone, Copy, Debug)]
pub struct Conversion<'a> {
    /// Numbers, as [`center`] leaves them.
    pub y: &'a [&'a [u64]],
    /// What they are: doubles below 2^50 in magnitude, or signed integers.
    pub held: Held,
    /// The constants, residues of the target.
    pub constants: &'a [u64],
}

/// What becomes of the values of a transform.
#[derive(Clone, Copy, Debug)]
pub enum End<'a> {
    /// Residues in [0, q).
    Residues,
    /// Anything that an inner product reads; see [`Term`].
    Doubles,
    /// Words whose low 52 bits are residues, not below q: doubles that are shifted by 2^52 and so much that none is negative.
    Shifted,
    /// (a - value)·w, in [0, q).
    Divided {
        /// Residues in [0, q), in the order of the values.
        a: &'a [u64],
        /// The factor.
        w: ShoupConstant,
    },
}

impl<'a> End<'a> {
    /// The same for a range of the values.
    pub fn piece(self, range: std::ops::Range<usize>) -> Self {
        match self {
            Self::Divided { a, w } => Self::Divided { a: &a[range], w },
            end => end,
        }
    }
}

/// What the sums of an inner product start from.
#[derive(Clone, Copy, Debug)]
pub enum Start<'a> {
    /// Nothing.
    Zero,
    /// What the sums hold.
    Sums,
    /// The first from these residues, the second from nothing.
    First(&'a [u64]),
}

/// out ← a + b.
#[inline(always)]
pub fn add_into(q: Modulus, out: &mut [u64], a: &[u64], b: &[u64]) {
    out.iter_mut().zip(a).zip(b).for_each(|((out, &a), &b)| *out = q.add(a, b));
}

/// a ← a + b.
#[inline(always)]
pub fn add_assign(q: Modulus, a: &mut [u64], b: &[u64]) {
    a.iter_mut().zip(b).for_each(|(a, &b)| *a = q.add(*a, b));
}

/// a ← a - b.
#[inline(always)]
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

/// a ← a·b, as [`mul_into`].
pub fn mul_assign(q: Modulus, a: &mut [u64], b: &[u64]) {
    let run = a.len() / b.len();
    for (a, &b) in a.chunks_exact_mut(run).zip(b) {
        a.iter_mut().for_each(|a| *a = q.mul(*a, b));
    }
}

/// The three products of (a₀ + a₁·s)²: a₀², 2·a₀·a₁ and a₁².
pub fn square_into(q: Modulus, out: [&mut [u64]; 3], a: [&[u64]; 2]) {
    let [c0, c1, c2] = out;
    for ((((c0, c1), c2), &a0), &a1) in c0.iter_mut().zip(c1).zip(c2).zip(a[0]).zip(a[1]) {
        (*c0, *c1, *c2) = (q.mul(a0, a0), q.mul(q.add(a0, a0), a1), q.mul(a1, a1));
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

/// sums\[h\] ← Σ x·y\[h\] over the terms, plus what they start from.
pub fn dot2(q: Modulus, sums: [&mut [u64]; 2], terms: &[Term<'_>], start: Start<'_>) {
    // Sixteen products of 61-bit residues stay below 2^126.
    const BATCH: usize = 16;
    for (h, sum) in sums.into_iter().enumerate() {
        match start {
            Start::Sums => {}
            Start::First(first) if h == 0 => sum.copy_from_slice(first),
            Start::Zero | Start::First(_) => sum.fill(0),
        }
        for batch in terms.chunks(BATCH) {
            for (i, sum) in sum.iter_mut().enumerate() {
                let mut wide = u128::from(*sum);
                for term in batch {
                    let run = term.y[h].len() / term.x.len();
                    let x = match term.x {
                        Words::Integers(x) => x[i / run],
                        Words::Doubles(x) => q.reduce_f64(f64::from_bits(x[i / run])),
                    };
                    let y = match term.y[h] {
                        Words::Integers(y) => y[i],
                        Words::Doubles(y) => f64::from_bits(y[i]) as u64,
                    };
                    wide += u128::from(x) * u128::from(y);
                }
                *sum = q.reduce_u128(wide);
            }
        }
    }
}

/// As [`dot2`], with packed factors.
pub fn dot2_packed(q: Modulus, sums: [&mut [u64]; 2], terms: &[PackedTerm<'_>], start: Start<'_>) {
    let y: Vec<[Vec<u64>; 2]> =
        terms.iter().map(|term| term.y.map(|half| half.residues().collect())).collect();
    let terms: Vec<Term<'_>> = terms
        .iter()
        .zip(&y)
        .map(|(term, [a, b])| Term { x: term.x, y: [Words::Integers(a), Words::Integers(b)] })
        .collect();
    dot2(q, sums, &terms, start);
}

/// Centers the sources of a base conversion with residues yₖ in [0, dₖ): with v = round(Σ yₖ/dₖ), the first v of
/// them get yₖ - dₖ. Signed results, as the words of two's complement.
pub fn center(y: &mut [&mut [u64]], moduli: &[Modulus]) {
    let len = y.first().map_or(0, |y| y.len());
    let reciprocals: Vec<f64> = moduli.iter().map(|d| 1.0 / d.value() as f64).collect();
    for i in 0..len {
        let sum = y.iter().zip(&reciprocals).fold(0.0, |sum, (y, r)| sum + y[i] as f64 * r);
        let count = sum.round_ties_even() as usize;
        for (y, d) in y.iter_mut().zip(moduli).take(count) {
            y[i] = y[i].wrapping_sub(d.value());
        }
    }
}

/// Base conversion to one prime: out ← Σ yₖ·cₖ for yₖ below 2^61 in magnitude.
pub fn convert(q: Modulus, out: &mut [u64], from: Conversion<'_>) {
    let Conversion { y, constants, held } = from;
    let signed = |y: u64| match held {
        Held::Integers => y as i64,
        Held::Doubles => f64::from_bits(y) as i64,
    };
    // Sixteen products stay below 2^126.
    const BATCH: usize = 16;
    out.fill(0);
    for (y, constants) in y.chunks(BATCH).zip(constants.chunks(BATCH)) {
        for (i, out) in out.iter_mut().enumerate() {
            let products = y.iter().zip(constants).map(|(y, &c)| i128::from(signed(y[i])) * i128::from(c));
            let wide = products.sum::<i128>() + i128::from(*out);
            let rest = q.reduce_u128(wide.unsigned_abs());
            *out = if wide < 0 { q.neg(rest) } else { rest };
        }
    }
}

/// Integral doubles of any size to residues.
pub fn reduce_f64(q: Modulus, out: &mut [u64], x: &[f64]) {
    out.iter_mut().zip(x).for_each(|(out, &x)| *out = q.reduce_f64(x));
}
