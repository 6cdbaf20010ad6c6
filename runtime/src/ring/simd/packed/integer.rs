//! With 52-bit integer products (AVX512-IFMA): two instructions a product, and many terms before a reduction.
//!
//! The low and high 52 bits of products are added up apart. The low 52 bits of a word are its integer, so the first factors may
//! be residues or doubles that were shifted by 2^52; see [`Shifted`](crate::ring::scalar::End::Shifted).

use crate::ring::modulus::Modulus;
use crate::ring::scalar::{PackedTerm, Start};
use crate::ring::simd::FMA_PRIME_BOUND;
use crate::ring::simd::lanes::{Avx512, Ifma, Lanes, Unpack, prefetch};
use crate::ring::simd::prime::{Factor, Prime, SMALL_PRIME_BOUND, from_int};

/// Bytes ahead that second factors are asked for.
const AHEAD: usize = 1024;
/// Terms that leave the low halves below 2^63.
const MOST: usize = 1 << 10;

type V = <Avx512 as Lanes>::V;

/// The kernel of one prime.
#[derive(Clone, Copy, Debug)]
pub(in crate::ring::simd) struct IntegerDot {
    token: Ifma,
    q: Modulus,
    /// Products that may be added before a reduction.
    batch: usize,
    /// 2^52 modulo q, balanced.
    radix: f64,
}

/// One term: vectors of first factors, and both halves of the second ones.
struct Row<'a> {
    x: &'a [[u64; 8]],
    y: [&'a [u8]; 2],
}

impl IntegerDot {
    pub(in crate::ring::simd) fn new(token: Ifma, q: Modulus) -> Self {
        assert!(q.value() < FMA_PRIME_BOUND, "prime too large for 52-bit products");
        // Shifted doubles are below 32q for small primes and below 2q for large ones, and high halves add up to 2^52 at most.
        let magnitude = if q.value() < SMALL_PRIME_BOUND { 32 } else { 2 };
        let product = magnitude * u128::from(q.value()).pow(2);
        let batch = ((1 << 104) / product).min(MOST as u128) as usize;
        Self { token, q, batch, radix: q.center((1 << 52) % q.value()) as f64 }
    }

    /// See [`crate::ring::scalar::dot2_packed`]; lengths are multiples of eight.
    ///
    /// # Panics
    /// When lengths differ or first factors are plain doubles.
    pub(in crate::ring::simd) fn dot2(
        &self,
        sums: [&mut [u64]; 2],
        terms: &[PackedTerm<'_>],
        mut start: Start<'_>,
    ) {
        let len = sums[0].len();
        assert!(len.is_multiple_of(8) && sums[1].len() == len && terms.iter().all(|term| !term.doubles));
        assert!(terms.iter().all(|term| term.x.len() == len && term.y.iter().all(|y| y.len() == len)));
        let Some(bits) = terms.first().map(|term| term.y[0].bits()) else {
            return crate::ring::scalar::dot2(self.q, sums, &[], start);
        };
        assert!(terms.iter().flat_map(|term| term.y).all(|y| y.bits() == bits));
        let rows: Vec<Row<'_>> =
            terms.iter().map(|term| Row { x: term.x.as_chunks().0, y: term.y.map(|y| y.padded()) }).collect();
        let [first, second] = sums.map(|sum| sum.as_chunks_mut().0);
        let unpack = Unpack::new(bits);
        for rows in rows.chunks(self.batch) {
            self.token.run(
                #[inline(always)]
                || self.batch([&mut *first, &mut *second], rows, &unpack, start),
            );
            start = Start::Sums;
        }
    }

    #[inline(always)]
    fn batch(&self, sums: [&mut [[u64; 8]]; 2], rows: &[Row<'_>], unpack: &Unpack, start: Start<'_>) {
        let (token, s) = (self.token, self.token.lanes());
        let prime = Prime::new(s, self.q.value());
        let radix = prime.factor(s.splat(self.radix));
        let zero = s.splat(0.0);
        let [first, second] = sums;
        for (i, (first, second)) in first.iter_mut().zip(second).enumerate() {
            let mut low = match start {
                Start::Zero => [zero; 2],
                Start::Sums => [s.load(first), s.load(second)],
                Start::First(first) => [s.load(&first.as_chunks().0[i]), zero],
            };
            let mut high = [zero; 2];
            for row in rows {
                let x = s.load(&row.x[i]);
                for h in 0..2 {
                    let at = i * unpack.bits();
                    prefetch(row.y[h], at + AHEAD);
                    let y = token.unpack(&row.y[h][at..], unpack);
                    low[h] = token.add_low(low[h], x, y);
                    high[h] = token.add_high(high[h], x, y);
                }
            }
            s.store(first, self.reduced(&prime, &radix, low[0], high[0]));
            s.store(second, self.reduced(&prime, &radix, low[1], high[1]));
        }
    }

    /// high·2^52 + low as integers in [0, q).
    #[inline(always)]
    fn reduced(&self, prime: &Prime<Avx512>, radix: &Factor<Avx512>, low: V, high: V) -> V {
        let (s, token) = (self.token.lanes(), self.token);
        let high = from_int(s, s.add_words(high, token.above_52(low)));
        let low = from_int(s, token.below_52(low));
        // At most 5/4·q + 2^52 in magnitude.
        prime.canonical(s.add(prime.mul_factor(high, radix), low))
    }
}
