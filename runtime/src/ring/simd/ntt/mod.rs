//! The negacyclic transform of one prime below 2^50, in double precision.
//!
//! Layers are merged two at a time: a pass reads four entries, does four butterflies and writes them back, few
//! enough that the next entries start before these are done. The three layers next to the values work on
//! groups of eight neighbors; groups are transposed so that each vector holds one entry of each. Blocks that
//! fit the first cache are finished before the next is touched. What a caller would do before or after a
//! forward transform (a base conversion, a division) is done where its passes begin and end.

mod ends;
mod forward;
mod inverse;
mod twiddles;

use ends::{AsDoubles, Converted, ConvertedMany, Divided, Doubles, InPlace, Residues, Sink, Source};
use twiddles::Twiddles;

use super::FMA_PRIME_BOUND;
use super::lanes::{Lanes, bits};
use super::prime::{Factor, Prime, SMALL_PRIME_BOUND};
use crate::ring::modulus::Modulus;
use crate::ring::scalar::{Conversion, End};

/// Entries of a block that is finished before the next one: half of a 32 KiB cache.
const BLOCK: usize = 1 << 11;
/// Rows of eight vectors that the two loops of an innermost pass take turns on.
const TURN: usize = 16;

/// A transform plan.
#[derive(Clone, Debug)]
pub struct FmaNtt<S: Lanes> {
    s: S,
    q: Modulus,
    n: usize,
    forward: Twiddles<S>,
    inverse: Twiddles<S>,
    n_inv: u64,
}

impl<S: Lanes> FmaNtt<S> {
    /// Smallest supported size: what the first layers leave must be blocks of eight vectors.
    pub const MIN_SIZE: usize = 4 * S::WIDTH * S::WIDTH;

    /// A plan from ψ, a primitive root of unity of order 2n.
    ///
    /// # Panics
    /// When the prime or the size is out of range.
    pub fn new(s: S, q: Modulus, n: usize, root: u64) -> Self {
        assert!(q.value() < FMA_PRIME_BOUND, "prime too large for double precision");
        assert!(n.is_power_of_two() && n >= Self::MIN_SIZE, "unsupported transform size");
        Self {
            s,
            q,
            n,
            forward: Twiddles::new(q, n, root),
            inverse: Twiddles::new(q, n, q.inv(root)),
            n_inv: q.inv(n as u64 % q.value()),
        }
    }

    /// The number of coefficients.
    pub fn size(&self) -> usize {
        self.n
    }

    /// Coefficients in [0, p), in order, to values in [0, p), bit-reversed.
    pub fn forward(&self, buf: &mut [u64]) {
        self.run_forward(buf, &InPlace, &Residues);
    }

    /// Integral coefficients in [-p, p], in order, to values, bit-reversed: in [0, p), or doubles.
    pub fn forward_f64(&self, out: &mut [u64], coeffs: &[f64], doubles: bool) {
        assert_eq!(out.len(), coeffs.len());
        let source = Doubles(S::words(bits(coeffs)).0);
        if doubles {
            self.run_forward(out, &source, &AsDoubles);
        } else {
            self.run_forward(out, &source, &Residues);
        }
    }

    /// The transform of a base conversion from numbers below 2^50 in magnitude.
    pub fn forward_converted(&self, out: &mut [u64], from: Conversion<'_>, end: End<'_>) {
        let Conversion { y, constants, max } = from;
        assert!(max < FMA_PRIME_BOUND && y.len() == constants.len() && y.iter().all(|y| y.len() == self.n));
        match y.len() {
            1 => self.forward_few::<1>(out, y, constants, end),
            2 => self.forward_few::<2>(out, y, constants, end),
            3 => self.forward_few::<3>(out, y, constants, end),
            4 => self.forward_few::<4>(out, y, constants, end),
            _ => {
                let y: Vec<&[S::Words]> = y.iter().map(|y| S::words(y).0).collect();
                let prime = Prime::new(self.s, self.q.value());
                let constants: Vec<Factor<S>> = constants.iter().map(|&c| self.factor(&prime, c)).collect();
                self.forward_to(out, &ConvertedMany { y: &y, constants: &constants }, end);
            }
        }
    }

    /// The usual numbers of sources.
    fn forward_few<const K: usize>(&self, out: &mut [u64], y: &[&[u64]], constants: &[u64], end: End<'_>) {
        let prime = Prime::new(self.s, self.q.value());
        let source = Converted::<S, K> {
            y: std::array::from_fn(|k| S::words(y[k]).0),
            constants: std::array::from_fn(|k| self.factor(&prime, constants[k])),
        };
        self.forward_to(out, &source, end);
    }

    fn forward_to(&self, out: &mut [u64], source: &impl Source<S>, end: End<'_>) {
        match end {
            End::Residues => self.run_forward(out, source, &Residues),
            End::Doubles => self.run_forward(out, source, &AsDoubles),
            End::Divided { a, w } => {
                assert_eq!(a.len(), self.n);
                let w = self.factor(&Prime::new(self.s, self.q.value()), w.value());
                self.run_forward(out, source, &Divided { a: S::words(a).0, w });
            }
        }
    }

    /// Values in [0, p), bit-reversed, to coefficients in [0, p), in order, divided by n and times `factor`.
    pub fn inverse(&self, buf: &mut [u64], factor: u64) {
        assert_eq!(buf.len(), self.n);
        let scale = self.q.mul(self.n_inv, factor);
        self.s.run(
            #[inline(always)]
            || {
                if self.q.value() < SMALL_PRIME_BOUND {
                    inverse::inverse::<S, false>(self, buf, scale);
                } else {
                    inverse::inverse::<S, true>(self, buf, scale);
                }
            },
        );
    }

    fn run_forward(&self, out: &mut [u64], source: &impl Source<S>, sink: &impl Sink<S>) {
        assert_eq!(out.len(), self.n);
        if self.q.value() < SMALL_PRIME_BOUND {
            forward::forward::<S, false>(self, out, source, sink);
        } else {
            forward::forward::<S, true>(self, out, source, sink);
        }
    }

    /// A constant in every lane.
    #[inline(always)]
    fn factor(&self, prime: &Prime<S>, w: u64) -> Factor<S> {
        prime.factor(self.s.splat(self.q.center(w) as f64))
    }
}
