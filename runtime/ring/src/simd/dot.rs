//! Inner products modulo one prime below 2^50, with one reduction for many terms.
//!
//! A sum of products is held exactly in two doubles: a high part that is a multiple of 2^k, and the
//! low parts that its roundings leave over. One product costs two multiply-adds and two additions.

use super::factors::{Bytes, Doubles, Factors, Integers, Plain};
use super::lanes::Lanes;
use super::prime::{Prime, SMALL_PRIME_BOUND, from_int, load_int};
use crate::modulus::Modulus;
use crate::scalar::{self, PackedTerm, Start, Term};
use crate::words::Held;

/// The inner-product kernel of one prime.
#[derive(Clone, Copy, Debug)]
pub(super) struct FmaDot {
    q: Modulus,
    /// Products that may be added before a reduction.
    batch: usize,
    /// 1.5·2^(52+k), chosen so that a batch of products stays below a third of it; see [`accumulate`].
    anchor: f64,
}

/// One term.
struct Row<'a, Y> {
    x: &'a [u64],
    /// How often each entry of `x` repeats.
    run: usize,
    held: Held,
    y: [Y; 2],
}

impl FmaDot {
    pub(super) fn new(q: Modulus) -> Self {
        let p = q.value() as f64;
        // Doubles of a transform are below 16p for small primes and balanced for large ones.
        let (magnitude, spare) = if q.value() < SMALL_PRIME_BOUND { (16.0, 48) } else { (1.0, 52) };
        let batch = ((2f64.powi(spare) / p) as usize).clamp(4, 64);
        let bound = (batch as f64 * magnitude * p * p).log2().ceil() as i32 + 1;
        Self { q, batch, anchor: 1.5 * 2f64.powi(bound.max(52)) }
    }

    /// See [`scalar::dot2`].
    pub(super) fn dot2<S: Lanes>(&self, s: S, sums: [&mut [u64]; 2], terms: &[Term<'_>], start: Start<'_>) {
        let n = sums[0].len();
        let held = terms.first().map_or(Held::Integers, |term| term.y[0].held());
        let fits = |term: &Term<'_>| {
            term.y.iter().all(|y| y.len() == n && y.held() == held) && n.is_multiple_of(term.x.len())
        };
        if !takes(s, &sums, start) || terms.is_empty() || !terms.iter().all(fits) {
            return scalar::dot2(self.q, sums, terms, start);
        }
        match held {
            Held::Integers => {
                self.dot2_rows(s, sums, &rows(n, terms, Plain::<S, Integers>::new), 0, start);
            }
            Held::Doubles => self.dot2_rows(s, sums, &rows(n, terms, Plain::<S, Doubles>::new), 0, start),
        }
    }

    /// See [`scalar::dot2_packed`].
    pub(super) fn dot2_packed<S: Lanes>(
        &self,
        s: S,
        sums: [&mut [u64]; 2],
        terms: &[PackedTerm<'_>],
        start: Start<'_>,
    ) {
        let n = sums[0].len();
        let bits = terms.first().map_or(0, |term| term.y[0].bits());
        let fits = |term: &PackedTerm<'_>| {
            term.x.len() == n && term.y.iter().all(|y| y.len() == n && y.bits() == bits)
        };
        if !takes(s, &sums, start) || terms.is_empty() || !terms.iter().all(fits) {
            return scalar::dot2_packed(self.q, sums, terms, start);
        }
        let rows: Vec<_> = terms
            .iter()
            .map(|term| Row {
                x: term.x.bits(),
                run: 1,
                held: term.x.held(),
                y: term.y.map(|y| Bytes::new(s, y.padded(), bits)),
            })
            .collect();
        self.dot2_rows(s, sums, &rows, bits, start);
    }

    fn dot2_rows<S: Lanes, Y: Factors<S>>(
        &self,
        s: S,
        sums: [&mut [u64]; 2],
        rows: &[Row<'_, Y>],
        bits: usize,
        mut start: Start<'_>,
    ) {
        let [first, second] = sums;
        for rows in rows.chunks(self.batch) {
            s.run(
                #[inline(always)]
                || {
                    let sums = [&mut *first, &mut *second];
                    if rows.iter().any(|row| row.run > 1) {
                        batch::<S, Y, false>(s, self, sums, rows, bits, start);
                    } else {
                        batch::<S, Y, true>(s, self, sums, rows, bits, start);
                    }
                },
            );
            start = Start::Sums;
        }
    }
}

/// Terms with sums of `n` entries, their second factors read by `factors`.
fn rows<'a, Y>(n: usize, terms: &[Term<'a>], factors: impl Fn(&'a [u64]) -> Y) -> Vec<Row<'a, Y>> {
    let row = |term: &Term<'a>| Row {
        x: term.x.bits(),
        run: n / term.x.len(),
        held: term.x.held(),
        y: term.y.map(|y| factors(y.bits())),
    };
    terms.iter().map(row).collect()
}

/// Whether the sums are whole pairs of vectors.
fn takes<S: Lanes>(_: S, sums: &[&mut [u64]; 2], start: Start<'_>) -> bool {
    let n = sums[0].len();
    n.is_multiple_of(2 * S::WIDTH)
        && sums[1].len() == n
        && !matches!(start, Start::First(first) if first.len() != n)
}

/// At most one batch of rows; FULL says that no shared factor is compressed.
#[inline(always)]
fn batch<S: Lanes, Y: Factors<S>, const FULL: bool>(
    s: S,
    plan: &FmaDot,
    sums: [&mut [u64]; 2],
    rows: &[Row<'_, Y>],
    bits: usize,
    start: Start<'_>,
) {
    let prime = Prime::new(s, plan.q.value());
    let unpacker = s.unpacker(bits);
    let anchor = s.splat(plan.anchor);
    let starts = match start {
        Start::First(first) => S::words(first).0.as_chunks::<2>().0,
        Start::Zero | Start::Sums => &[],
    };
    let [first, second] = sums;
    let first = S::words_mut(first).0.as_chunks_mut::<2>().0;
    let second = S::words_mut(second).0.as_chunks_mut::<2>().0;
    for (i, (first, second)) in first.iter_mut().zip(second).enumerate() {
        let mut high = [[anchor; 2]; 2];
        let mut low = [[s.splat(0.0); 2]; 2];
        match start {
            Start::Zero => {}
            Start::Sums => {
                low = [
                    [load_int(s, &first[0]), load_int(s, &first[1])],
                    [load_int(s, &second[0]), load_int(s, &second[1])],
                ];
            }
            Start::First(_) => low[0] = [load_int(s, &starts[i][0]), load_int(s, &starts[i][1])],
        }
        for row in rows {
            let run = if FULL { 1 } else { row.run };
            let mut x = [s.load_runs(row.x, run, 2 * i), s.load_runs(row.x, run, 2 * i + 1)];
            if row.held == Held::Integers {
                x = [from_int(s, x[0]), from_int(s, x[1])];
            }
            for h in 0..2 {
                let y = row.y[h].pair(s, &unpacker, i);
                for j in 0..2 {
                    let y = match Y::HELD {
                        Held::Integers => from_int(s, y[j]),
                        Held::Doubles => y[j],
                    };
                    accumulate(s, &mut high[h][j], &mut low[h][j], x[j], y);
                }
            }
        }
        for j in 0..2 {
            s.store(&mut first[j], finish(&prime, anchor, high[0][j], low[0][j]));
            s.store(&mut second[j], finish(&prime, anchor, high[1][j], low[1][j]));
        }
    }
}

/// Adds a·b to an exact sum.
///
/// `high` holds the anchor plus a multiple of 2^k, so the multiply-add rounds to a multiple of 2^k; what it
/// rounds off is at most 2^(k-1), exact, and goes to `low`.
#[inline(always)]
pub(super) fn accumulate<S: Lanes>(s: S, high: &mut S::V, low: &mut S::V, a: S::V, b: S::V) {
    let sum = s.mul_add(a, b, *high);
    let taken = s.sub(sum, *high);
    *low = s.add(*low, s.mul_sub(a, b, taken));
    *high = sum;
}

/// Reduces an exact sum: `high` up to p·2^52 from the anchor, `low` below 2^52.4 in magnitude.
#[inline(always)]
pub(super) fn finish<S: Lanes>(prime: &Prime<S>, start: S::V, high: S::V, low: S::V) -> S::V {
    let s = prime.s;
    let high = s.sub(high, start);
    let k = s.round(s.mul(high, prime.inv));
    prime.canonical(s.add(s.neg_mul_add(k, prime.p, high), low))
}
