//! Inner products modulo one prime below 2^50, with one reduction for many terms.
//!
//! A sum of products is held exactly in two doubles: a high part that is a multiple of 2^k, and the
//! low parts that its roundings leave over. One product costs two multiply-adds and two additions.

use std::arch::x86_64::*;

use super::lanes::{Prime, V, load_int, splat, store};
use super::pointwise::spread;
use super::{FMA_PRIME_BOUND, FmaToken};
use crate::ring::modulus::Modulus;
use crate::ring::scalar::{self, Mode, Term};

/// The inner-product kernel of one prime.
#[derive(Clone, Debug)]
pub(super) struct FmaDot {
    _token: FmaToken,
    q: Modulus,
    /// Products that may be added before a reduction.
    batch: usize,
    /// 2^(52+k), chosen so that a batch of products stays below it; see [`accumulate`].
    anchor: f64,
}

/// Two vectors: one cache line of residues.
type Pair = [[u64; 4]; 2];

/// One term as pairs of vectors.
struct Row<'a> {
    x: &'a [Pair],
    y: [&'a [Pair]; 2],
    /// The shared factor as given and how often each entry repeats.
    compressed: (&'a [u64], usize),
}

impl FmaDot {
    pub(super) fn new(token: FmaToken, q: Modulus) -> Self {
        assert!(q.value() < FMA_PRIME_BOUND, "prime too large for double precision");
        let p = q.value() as f64;
        let batch = ((2f64.powi(52) / p) as usize).clamp(4, 64);
        let anchor = 2f64.powi(((batch as f64 * p * p).log2().ceil() as i32).max(52));
        Self { _token: token, q, batch, anchor }
    }

    /// See [`scalar::dot2`].
    pub(super) fn dot2(&self, sums: [&mut [u64]; 2], terms: &[Term<'_>], mut mode: Mode) {
        let n = sums[0].len();
        let fits =
            |term: &Term<'_>| term.y[0].len() == n && term.y[1].len() == n && n.is_multiple_of(term.x.len());
        if terms.is_empty() || !n.is_multiple_of(8) || sums[1].len() != n || !terms.iter().all(fits) {
            return scalar::dot2(self.q, sums, terms, mode);
        }
        let rows: Vec<Row<'_>> = terms
            .iter()
            .map(|term| Row {
                x: pairs(term.x),
                y: term.y.map(pairs),
                compressed: (term.x, n / term.x.len()),
            })
            .collect();
        let [first, second] = sums;
        for rows in rows.chunks(self.batch) {
            let full = rows.iter().all(|row| row.compressed.1 == 1);
            // SAFETY: the token in `self` proves that the CPU has AVX2 and FMA.
            unsafe {
                if full {
                    dot2::<true>(self, [first, second], rows, mode);
                } else {
                    dot2::<false>(self, [first, second], rows, mode);
                }
            }
            mode = Mode::Add;
        }
    }
}

fn pairs(x: &[u64]) -> &[Pair] {
    x.as_chunks::<4>().0.as_chunks::<2>().0
}

/// At most one batch of rows; FULL says that no shared factor is compressed.
#[target_feature(enable = "avx2,fma")]
fn dot2<const FULL: bool>(plan: &FmaDot, sums: [&mut [u64]; 2], rows: &[Row<'_>], mode: Mode) {
    let prime = Prime::new(plan.q.value());
    let start = splat(plan.anchor);
    let [first, second] = sums.map(|sum| sum.as_chunks_mut::<4>().0.as_chunks_mut::<2>().0);
    for (i, (first, second)) in first.iter_mut().zip(second).enumerate() {
        let mut high = [[start; 2]; 2];
        let mut low = [[_mm256_setzero_pd(); 2]; 2];
        if mode == Mode::Add {
            low = [[load_int(&first[0]), load_int(&first[1])], [load_int(&second[0]), load_int(&second[1])]];
        }
        for row in rows {
            let x: [V; 2] = if FULL {
                [load_int(&row.x[i][0]), load_int(&row.x[i][1])]
            } else {
                let (x, run) = row.compressed;
                [spread(x, run, 2 * i), spread(x, run, 2 * i + 1)]
            };
            for h in 0..2 {
                let y = &row.y[h][i];
                accumulate(&mut high[h][0], &mut low[h][0], x[0], load_int(&y[0]));
                accumulate(&mut high[h][1], &mut low[h][1], x[1], load_int(&y[1]));
            }
        }
        for j in 0..2 {
            store(&mut first[j], finish(prime, start, high[0][j], low[0][j]));
            store(&mut second[j], finish(prime, start, high[1][j], low[1][j]));
        }
    }
}

/// Adds a·b to an exact sum.
///
/// `high` holds 2^(52+k) plus a multiple of 2^k below 2^(52+k), so the multiply-add rounds to a multiple of
/// 2^k; what it rounds off is at most 2^(k-1), exact, and goes to `low`.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn accumulate(high: &mut V, low: &mut V, a: V, b: V) {
    let sum = _mm256_fmadd_pd(a, b, *high);
    let taken = _mm256_sub_pd(sum, *high);
    *low = _mm256_add_pd(*low, _mm256_fmsub_pd(a, b, taken));
    *high = sum;
}

/// Reduces an exact sum: `high` up to p·2^52 above the anchor, `low` at most 2^52 in magnitude.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn finish(prime: Prime, start: V, high: V, low: V) -> V {
    let high = _mm256_sub_pd(high, start);
    let k =
        _mm256_round_pd::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(_mm256_mul_pd(high, prime.inv));
    let rest = _mm256_fnmadd_pd(k, prime.p, high);
    prime.canonical(_mm256_add_pd(rest, low))
}
