//! The negacyclic transform of one prime: coefficients in order to values in bit-reversed order.
//!
//! Entry i of the transform of f is f(ψ^(2·rev(i)+1)), where ψ is the root of order 2N that [`super::root`] fixes
//! and rev reverses log2 N bits. The inverse divides by N. Files hold such values, so none of it may change.

use std::sync::OnceLock;

use super::ahead::Ahead;
use super::coefficients::{Coefficients, Values};
use super::engine::Engine;
use super::kernels::{Instructions, Kernels};
use super::modulus::Modulus;
use super::root::root_of_unity;
use super::scalar::{self, Conversion, End};
use super::words::Held;

/// Entries of a piece where the engine has none of its own, at most.
const PIECE: usize = 1 << 11;

/// How far a transform has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begun {
    /// The layers are done that pieces share.
    Layers,
    /// All layers are done: the words are values in [0, q).
    Values,
}

/// A transform plan for one prime and one size.
#[derive(Clone, Debug)]
pub struct Ntt {
    engine: Engine,
    modulus: Modulus,
    n: usize,
    root: u64,
    instructions: Instructions,
    /// `smaller[k]` transforms n/2^(k+1) coefficients with the root ψ^(2^(k+1)); made on first use.
    smaller: Vec<OnceLock<Box<Ntt>>>,
}

impl Ntt {
    /// A plan for n ≥ 2 coefficients, or none when the modulus is no prime with a root of order 2n.
    pub fn new(modulus: Modulus, n: usize, instructions: Instructions) -> Option<Self> {
        Some(Self::with_root(modulus, n, root_of_unity(modulus, 2 * n)?, instructions))
    }

    fn with_root(modulus: Modulus, n: usize, root: u64, instructions: Instructions) -> Self {
        let engine = Engine::choose(modulus, n, root, instructions);
        let smaller = (1..n.trailing_zeros()).map(|_| OnceLock::new()).collect();
        Self { engine, modulus, n, root, instructions, smaller }
    }

    /// The number of coefficients.
    pub fn size(&self) -> usize {
        self.n
    }

    /// Short name of the engine, for benches.
    pub fn engine_name(&self) -> &'static str {
        self.engine.name()
    }

    /// Coefficients in [0, q) to values in [0, q).
    pub fn forward(&self, buf: &mut [u64]) {
        self.engine.forward(buf);
    }

    /// Transforms a polynomial in X^k given by its n/k integral coefficients, k = n / out.len() a power of two, to residues.
    ///
    /// Its full transform has every entry of the result k times in a row.
    ///
    /// # Panics
    /// When the lengths differ or do not divide the size.
    pub fn forward_integers(&self, kernels: &Kernels, out: &mut [u64], coeffs: &Coefficients) {
        self.subring(out.len()).forward_to(kernels, out, coeffs, End::Residues);
    }

    /// As [`Ntt::forward_integers`], but only for inner products next to residues, in the form that this gives.
    ///
    /// # Panics
    /// As [`Ntt::forward_integers`].
    pub fn forward_for_products(&self, kernels: &Kernels, out: &mut [u64], coeffs: &Coefficients) -> Held {
        self.subring(out.len()).forward_to(kernels, out, coeffs, kernels.packed_end())
    }

    fn forward_to(&self, kernels: &Kernels, out: &mut [u64], coeffs: &Coefficients, end: End<'_>) -> Held {
        let begun = self.begin_integers(kernels, out, coeffs);
        let mut held = Held::Integers;
        for (i, piece) in out.chunks_exact_mut(self.piece()).enumerate() {
            held = self.finish_piece(kernels, begun, i, piece, end, &mut Ahead::nothing());
        }
        held
    }

    /// Entries of a transform that [`Ntt::finish_piece`] takes at once.
    pub fn piece(&self) -> usize {
        self.engine.piece().unwrap_or(PIECE.min(self.n))
    }

    /// Begins the transform of n integral coefficients; every piece must then be finished, in any order.
    ///
    /// # Panics
    /// When a length differs from the size.
    pub fn begin_integers(&self, kernels: &Kernels, out: &mut [u64], coeffs: &Coefficients) -> Begun {
        // The engine may take them as they are.
        if coeffs.max() <= self.modulus.value() as f64 && self.engine.begin_integers(out, coeffs) {
            return Begun::Layers;
        }
        match coeffs.values() {
            Values::Narrow(values) => {
                assert_eq!(out.len(), values.len());
                let residue = |c: i32| self.modulus.reduce_i64(i64::from(c));
                out.iter_mut().zip(values).for_each(|(out, &c)| *out = residue(c));
            }
            Values::Wide(values) => kernels.reduce_f64(out, values),
        }
        self.forward(out);
        Begun::Values
    }

    /// Begins the transform of a base conversion; every piece must then be finished, in any order. What is `ahead` may be asked
    /// for meanwhile.
    ///
    /// # Panics
    /// When a length differs from the size.
    pub fn begin_converted(&self, out: &mut [u64], from: Conversion<'_>, ahead: &mut Ahead<'_>) -> Begun {
        if from.held == Held::Doubles && self.engine.begin_converted(out, from, ahead) {
            return Begun::Layers;
        }
        scalar::convert(self.modulus, out, from);
        self.forward(out);
        Begun::Values
    }

    /// Finishes piece `i` of a transform as `end` wants it, whose words are those of the piece, and gives the form of the
    /// result. What is `ahead` may be asked for meanwhile.
    ///
    /// # Panics
    /// When a length differs from that of a piece.
    pub fn finish_piece(
        &self,
        kernels: &Kernels,
        begun: Begun,
        i: usize,
        piece: &mut [u64],
        end: End<'_>,
        ahead: &mut Ahead<'_>,
    ) -> Held {
        match begun {
            Begun::Layers => {
                self.engine.finish_piece(i, piece, end, ahead);
                if matches!(end, End::Doubles) { Held::Doubles } else { Held::Integers }
            }
            Begun::Values => {
                if let End::Divided { a, w } = end {
                    kernels.sub_mul_scalar_from(piece, a, w);
                }
                Held::Integers
            }
        }
    }

    /// Transforms a polynomial in X^k given by its n/k residues, as [`Ntt::forward_integers`].
    ///
    /// # Panics
    /// When the length does not divide the size.
    pub fn forward_subring(&self, buf: &mut [u64]) {
        self.subring(buf.len()).forward(buf);
    }

    /// The plan for `size` coefficients of polynomials in X^(n/size).
    fn subring(&self, size: usize) -> &Ntt {
        assert!(size >= 2 && self.n.is_multiple_of(size), "no such subring");
        let run = self.n / size;
        if run == 1 {
            return self;
        }
        self.smaller[run.trailing_zeros() as usize - 1].get_or_init(|| {
            let root = self.modulus.pow(self.root, run as u64);
            Box::new(Self::with_root(self.modulus, size, root, self.instructions))
        })
    }

    /// Values in [0, q) to coefficients in [0, q).
    pub fn inverse(&self, buf: &mut [u64]) {
        self.engine.inverse(self.modulus, buf, None, 1);
    }

    /// [`Ntt::inverse`] of other words, times a residue, which costs nothing more.
    ///
    /// # Panics
    /// When a length differs from the size.
    pub fn inverse_times(&self, out: &mut [u64], values: &[u64], factor: u64) {
        self.engine.inverse(self.modulus, out, Some(values), factor);
    }
}
