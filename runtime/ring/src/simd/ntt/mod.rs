//! The negacyclic transform of one prime below 2^50, in double precision.
//!
//! Layers are merged two at a time: a pass reads four entries, does four butterflies and writes them back, few
//! enough that the next entries start before these are done. The three layers next to the values work on
//! groups of eight neighbors; groups are transposed so that each vector holds one entry of each. Pieces that
//! fit the first cache are finished one by one, when the caller wants them. What a caller would do before or after a
//! forward transform (a base conversion, a division) is done where its passes begin and end.

mod ends;
mod forward;
mod inverse;
mod twiddles;

use ends::{
    AsDoubles, Converted, ConvertedMany, Divided, Doubles, InPlace, Narrow, Residues, Shifted, Sink, Source,
};
use twiddles::Twiddles;

use super::FMA_PRIME_BOUND;
use super::lanes::{Lanes, bits};
use super::prime::{Factor, Prime, SMALL_PRIME_BOUND};
use crate::coefficients::Values;
use crate::modulus::Modulus;
use crate::scalar::{Conversion, End};
use crate::words::Held;
use crate::{Ahead, Coefficients};

/// Entries of a piece, at most: half of a 32 KiB cache.
const PIECE: usize = 1 << 11;
/// Rows of eight vectors that the two loops of an innermost pass take turns on.
const TURN: usize = 16;

/// A transform plan.
#[derive(Clone, Debug)]
pub struct FmaNtt<S: Lanes> {
    s: S,
    q: Modulus,
    n: usize,
    /// Entries that the last layers of a transform finish apart from the others.
    piece: usize,
    forward: Twiddles<S>,
    inverse: Twiddles<S>,
    n_inv: u64,
}

/// What the first pass leaves, divided by passes of two layers until it fits.
fn piece(n: usize) -> usize {
    let layers = n.trailing_zeros() as usize - 3;
    let mut piece = if layers % 2 == 1 { n / 2 } else { n / 4 };
    while piece > PIECE {
        piece /= 4;
    }
    piece
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
            piece: piece(n),
            forward: Twiddles::new(q, n, root),
            inverse: Twiddles::new(q, n, q.inv(root)),
            n_inv: q.inv(n as u64 % q.value()),
        }
    }

    /// The number of coefficients.
    pub fn size(&self) -> usize {
        self.n
    }

    /// Entries of a piece.
    pub fn piece(&self) -> usize {
        self.piece
    }

    /// Coefficients in [0, p), in order, to values in [0, p), bit-reversed.
    pub fn forward(&self, buf: &mut [u64]) {
        self.begin(buf, &InPlace, &mut Ahead::nothing());
        self.finish_all(buf, End::Residues);
    }

    /// The first layers of the transform of integral coefficients in [-p, p]; [`FmaNtt::finish_piece`] does the others.
    pub(crate) fn begin_integers(&self, out: &mut [u64], coeffs: &Coefficients) {
        assert_eq!(out.len(), coeffs.len());
        let ahead = &mut Ahead::nothing();
        match coeffs.values() {
            Values::Narrow(values) => self.begin(out, &Narrow(values), ahead),
            Values::Wide(values) => self.begin(out, &Doubles(S::words(bits(values)).0), ahead),
        }
    }

    /// The first layers of the transform of a base conversion from doubles below 2^50 in magnitude;
    /// [`FmaNtt::finish_piece`] does the others.
    pub fn begin_converted(&self, out: &mut [u64], from: Conversion<'_>, ahead: &mut Ahead<'_>) {
        let Conversion { y, constants, held } = from;
        assert!(held == Held::Doubles && y.len() == constants.len() && y.iter().all(|y| y.len() == self.n));
        match y.len() {
            1 => self.begin_few::<1>(out, y, constants, ahead),
            2 => self.begin_few::<2>(out, y, constants, ahead),
            3 => self.begin_few::<3>(out, y, constants, ahead),
            4 => self.begin_few::<4>(out, y, constants, ahead),
            _ => {
                let y: Vec<&[S::Words]> = y.iter().map(|y| S::words(y).0).collect();
                let prime = Prime::new(self.s, self.q.value());
                let constants: Vec<Factor<S>> = constants.iter().map(|&c| self.factor(&prime, c)).collect();
                self.begin(out, &ConvertedMany { y: &y, constants: &constants }, ahead);
            }
        }
    }

    /// The usual numbers of sources.
    fn begin_few<const K: usize>(
        &self,
        out: &mut [u64],
        y: &[&[u64]],
        constants: &[u64],
        ahead: &mut Ahead<'_>,
    ) {
        let prime = Prime::new(self.s, self.q.value());
        let source = Converted::<S, K> {
            y: std::array::from_fn(|k| S::words(y[k]).0),
            constants: std::array::from_fn(|k| self.factor(&prime, constants[k])),
        };
        self.begin(out, &source, ahead);
    }

    /// The last layers of piece `i`, whose part of `a` is in `end` if it has one; asks for what is `ahead` meanwhile.
    pub fn finish_piece(&self, i: usize, piece: &mut [u64], end: End<'_>, ahead: &mut Ahead<'_>) {
        assert!(piece.len() == self.piece && i < self.n / self.piece);
        match end {
            End::Residues => self.finish(i, piece, &Residues, ahead),
            End::Doubles => self.finish(i, piece, &AsDoubles, ahead),
            End::Shifted => self.finish(i, piece, &Shifted, ahead),
            End::Divided { a, w } => {
                assert_eq!(a.len(), piece.len());
                let w = self.factor(&Prime::new(self.s, self.q.value()), w.value());
                self.finish(i, piece, &Divided { a: S::words(a).0, w }, ahead);
            }
        }
    }

    fn finish_all(&self, out: &mut [u64], end: End<'_>) {
        for (i, piece) in out.chunks_exact_mut(self.piece).enumerate() {
            self.finish_piece(i, piece, end, &mut Ahead::nothing());
        }
    }

    fn begin(&self, out: &mut [u64], source: &impl Source<S>, ahead: &mut Ahead<'_>) {
        assert_eq!(out.len(), self.n);
        if self.q.value() < SMALL_PRIME_BOUND {
            forward::begin::<S, false>(self, out, source, ahead);
        } else {
            forward::begin::<S, true>(self, out, source, ahead);
        }
    }

    fn finish(&self, i: usize, piece: &mut [u64], sink: &impl Sink<S>, ahead: &mut Ahead<'_>) {
        if self.q.value() < SMALL_PRIME_BOUND {
            forward::finish::<S, false>(self, i, piece, sink, ahead);
        } else {
            forward::finish::<S, true>(self, i, piece, sink, ahead);
        }
    }

    /// Values in [0, p), bit-reversed, to coefficients in [0, p), in order, divided by n and times `factor`. The values are
    /// in `buf` unless given apart.
    pub fn inverse(&self, buf: &mut [u64], values: Option<&[u64]>, factor: u64) {
        assert!(buf.len() == self.n && values.is_none_or(|values| values.len() == self.n));
        let scale = self.q.mul(self.n_inv, factor);
        self.s.run(
            #[inline(always)]
            || {
                if self.q.value() < SMALL_PRIME_BOUND {
                    inverse::inverse::<S, false>(self, buf, values, scale);
                } else {
                    inverse::inverse::<S, true>(self, buf, values, scale);
                }
            },
        );
    }

    /// A constant in every lane.
    #[inline(always)]
    fn factor(&self, prime: &Prime<S>, w: u64) -> Factor<S> {
        prime.factor(self.s.splat(self.q.center(w) as f64))
    }
}
