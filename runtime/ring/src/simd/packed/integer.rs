//! With 52-bit integer products (AVX512-IFMA): two instructions a product, and many terms before a reduction.
//!
//! The low and high 52 bits of products are added up apart. The low 52 bits of a word are its integer, so the first factors may
//! be residues or doubles that were shifted by 2^52; see [`Shifted`](crate::scalar::End::Shifted).

use crate::modulus::Modulus;
use crate::scalar::{PackedTerm, Start, Term};
use crate::simd::FMA_PRIME_BOUND;
use crate::simd::factors::{Bytes, Factors, Integers, Plain};
use crate::simd::lanes::{Avx512, Ifma, Lanes};
use crate::simd::prime::{Factor, Prime, SMALL_PRIME_BOUND, from_int};
use crate::words::{Held, Words};

/// Terms that leave the low halves below 2^63.
const MOST: usize = 1 << 10;

type V = <Avx512 as Lanes>::V;

/// The kernel of one prime.
#[derive(Clone, Copy, Debug)]
pub(in crate::simd) struct IntegerDot {
    token: Ifma,
    q: Modulus,
    /// Products that may be added before a reduction.
    batch: usize,
    /// 2^52 modulo q, balanced.
    radix: f64,
}

/// Two vectors.
type Pair = [[u64; 8]; 2];

fn pairs(words: &[u64]) -> &[Pair] {
    words.as_chunks().0.as_chunks().0
}

/// One term: first factors, and both halves of the second ones.
struct Row<'a, Y> {
    x: &'a [u64],
    /// How often each entry of `x` repeats.
    run: usize,
    y: [Y; 2],
}

impl IntegerDot {
    pub(in crate::simd) fn new(token: Ifma, q: Modulus) -> Self {
        assert!(q.value() < FMA_PRIME_BOUND, "prime too large for 52-bit products");
        // Shifted doubles are below 32q for small primes and below 2q for large ones, and high halves add up to 2^52 at most.
        let magnitude = if q.value() < SMALL_PRIME_BOUND { 32 } else { 2 };
        let product = magnitude * u128::from(q.value()).pow(2);
        let batch = ((1 << 104) / product).min(MOST as u128) as usize;
        Self { token, q, batch, radix: q.center((1 << 52) % q.value()) as f64 }
    }

    /// Whether [`IntegerDot::dot2`] takes these.
    pub(in crate::simd) fn takes(len: usize, terms: &[Term<'_>]) -> bool {
        let is_integer = |words: &Words<'_>| words.held() == Held::Integers;
        let fits = |term: &Term<'_>| {
            is_integer(&term.x) && term.y.iter().all(is_integer) && len.is_multiple_of(term.x.len())
        };
        len.is_multiple_of(16) && terms.iter().all(fits)
    }

    /// See [`crate::scalar::dot2`]; lengths are one multiple of 16.
    ///
    /// # Panics
    /// When lengths differ.
    pub(in crate::simd) fn dot2(&self, sums: [&mut [u64]; 2], terms: &[Term<'_>], start: Start<'_>) {
        let len = sums[0].len();
        assert!(terms.iter().all(|term| term.y.iter().all(|y| y.len() == len)));
        let rows = terms
            .iter()
            .map(|term| {
                let y = term.y.map(|y| Plain::<_, Integers>::new(y.bits()));
                Row { x: term.x.bits(), run: len / term.x.len(), y }
            })
            .collect();
        self.dot2_rows(sums, rows, 0, start);
    }

    /// See [`crate::scalar::dot2_packed`]; lengths are one multiple of 16.
    ///
    /// # Panics
    /// When lengths differ or first factors are plain doubles.
    pub(in crate::simd) fn dot2_packed(
        &self,
        sums: [&mut [u64]; 2],
        terms: &[PackedTerm<'_>],
        start: Start<'_>,
    ) {
        let len = sums[0].len();
        let bits = terms.first().map_or(0, |term| term.y[0].bits());
        let fits = |term: &PackedTerm<'_>| {
            term.x.held() == Held::Integers && term.y.iter().all(|y| y.len() == len && y.bits() == bits)
        };
        assert!(terms.iter().all(fits));
        let rows = terms
            .iter()
            .map(|term| Row {
                x: term.x.bits(),
                run: 1,
                y: term.y.map(|y| Bytes::new(self.token.lanes(), y.padded(), bits)),
            })
            .collect();
        self.dot2_rows(sums, rows, bits, start);
    }

    fn dot2_rows<Y: Factors<Avx512>>(
        &self,
        sums: [&mut [u64]; 2],
        rows: Vec<Row<'_, Y>>,
        bits: usize,
        mut start: Start<'_>,
    ) {
        let len = sums[0].len();
        assert!(len.is_multiple_of(16) && sums[1].len() == len);
        assert!(rows.iter().all(|row| row.x.len() * row.run == len && row.run.is_power_of_two()));
        if rows.is_empty() {
            return crate::scalar::dot2(self.q, sums, &[], start);
        }
        let starts = if let Start::First(first) = start { pairs(first) } else { &[] };
        let [first, second] = sums.map(|sum| sum.as_chunks_mut().0.as_chunks_mut().0);
        for rows in rows.chunks(self.batch) {
            self.token.run(
                #[inline(always)]
                || {
                    let sums = [&mut *first, &mut *second];
                    match rows.iter().all(|row| row.run == 1) {
                        true => self.batch::<Y, true>(sums, rows, bits, (start, starts)),
                        false => self.batch::<Y, false>(sums, rows, bits, (start, starts)),
                    }
                },
            );
            start = Start::Sums;
        }
    }

    /// At most one batch of rows; FULL says that no first factor repeats.
    #[inline(always)]
    fn batch<Y: Factors<Avx512>, const FULL: bool>(
        &self,
        sums: [&mut [Pair]; 2],
        rows: &[Row<'_, Y>],
        bits: usize,
        (start, starts): (Start<'_>, &[Pair]),
    ) {
        let (token, s) = (self.token, self.token.lanes());
        let prime = Prime::new(s, self.q.value());
        let radix = prime.factor(s.splat(self.radix));
        let unpacker = s.unpacker(bits);
        let zero = s.splat(0.0);
        let [first, second] = sums;
        for (i, (first, second)) in first.iter_mut().zip(second).enumerate() {
            let mut low = [[zero; 2]; 2];
            match start {
                Start::Zero => {}
                Start::Sums => {
                    low = [[s.load(&first[0]), s.load(&first[1])], [s.load(&second[0]), s.load(&second[1])]];
                }
                Start::First(_) => low[0] = [s.load(&starts[i][0]), s.load(&starts[i][1])],
            }
            let mut high = [[zero; 2]; 2];
            for row in rows {
                let run = if FULL { 1 } else { row.run };
                let x = [s.load_runs(row.x, run, 2 * i), s.load_runs(row.x, run, 2 * i + 1)];
                for h in 0..2 {
                    let y = row.y[h].pair(s, &unpacker, i);
                    for j in 0..2 {
                        low[h][j] = token.add_low(low[h][j], x[j], y[j]);
                        high[h][j] = token.add_high(high[h][j], x[j], y[j]);
                    }
                }
            }
            for j in 0..2 {
                s.store(&mut first[j], self.reduced(&prime, &radix, low[0][j], high[0][j]));
                s.store(&mut second[j], self.reduced(&prime, &radix, low[1][j], high[1][j]));
            }
        }
    }

    /// high·2^52 + low as integers in [0, q).
    #[inline(always)]
    fn reduced(&self, prime: &Prime<Avx512>, radix: &Factor<Avx512>, low: V, high: V) -> V {
        let (s, token) = (self.token.lanes(), self.token);
        let high = from_int(s, s.add_words(high, token.above_52(low)));
        let low = from_int(s, token.below_52(low));
        // At most 5/4·q + 2^52 in magnitude.
        prime.canonical(s.add(prime.mul_factor_short(high, radix), low))
    }
}
