//! Values: plaintexts and ciphertexts, with their level and exact scale.

use zeroize::Zeroize;

use fhe_bytecode::{Level, Scale};

use super::seed::PublicSeed;
use super::{CkksError, Context};
use fhe_ring::{Basis, Coefficients, NttForm, Poly};

/// An encoded vector before any modulus: integer coefficients.
///
/// A vector of period `slots / run` is a polynomial in X^run; only every run-th coefficient is kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Encoding {
    pub(super) coeffs: Coefficients,
    pub(super) scale: Scale,
}

impl Encoding {
    /// The integer coefficients; of a vector with a period only those that are not zero.
    pub fn coeffs(&self) -> &Coefficients {
        &self.coeffs
    }

    /// Scale of the encoded vector.
    pub fn scale(&self) -> Scale {
        self.scale
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.coeffs.bytes()
    }
}

impl Zeroize for Encoding {
    fn zeroize(&mut self) {
        self.coeffs.zeroize();
    }
}

/// An encoded vector in NTT form, over the towers of a level and, for linear maps, the special primes.
///
/// Of a periodic vector only one residue of each run of equal ones is kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Plaintext {
    pub(super) poly: Poly<NttForm>,
    pub(super) scale: Scale,
}

impl Plaintext {
    /// The primes it has residues for.
    pub fn basis(&self) -> Basis {
        self.poly.basis()
    }

    /// Scale of the encoded vector.
    pub fn scale(&self) -> Scale {
        self.scale
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.poly.data().len() * 8
    }
}

impl Zeroize for Plaintext {
    fn zeroize(&mut self) {
        self.poly.zeroize();
    }
}

/// An encrypted vector: two polynomials (three before relinearization) in NTT form.
#[derive(Clone, Debug, PartialEq)]
pub struct Ciphertext {
    pub(super) polys: Vec<Poly<NttForm>>,
    pub(super) level: Level,
    pub(super) scale: Scale,
}

impl Ciphertext {
    /// Assembles a ciphertext from residues, tower by tower, as a file holds them.
    ///
    /// # Errors
    /// When the level does not exist, the number of polynomials is not two or three, a length does not fit,
    /// or a residue is not below its prime.
    pub fn from_residues(
        context: &Context,
        level: Level,
        scale: Scale,
        polys: &[Vec<u64>],
    ) -> Result<Self, CkksError> {
        context.check_level(level)?;
        if !(2..=3).contains(&polys.len()) {
            return Err(CkksError::Malformed { what: "ciphertext" });
        }
        let polys = polys
            .iter()
            .map(|residues| poly_from_residues(context, context.basis(level), residues, "ciphertext"))
            .collect::<Result<_, _>>()?;
        Ok(Self { polys, level, scale })
    }

    /// Its level.
    pub fn level(&self) -> Level {
        self.level
    }

    /// Its scale.
    pub fn scale(&self) -> Scale {
        self.scale
    }

    /// Its polynomials, in NTT form.
    pub fn polys(&self) -> &[Poly<NttForm>] {
        &self.polys
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.polys.iter().map(|poly| poly.data().len() * 8).sum()
    }

    /// Refuses a ciphertext that does not have `expected` polynomials.
    /// The same ciphertext under a scale that agrees with its own: keeps the rounding of many steps from adding up.
    ///
    /// # Errors
    /// When the scales do not agree.
    pub fn with_scale(mut self, scale: Scale) -> Result<Self, CkksError> {
        if !self.scale.agrees(scale) {
            return Err(CkksError::ScaleMismatch { left: self.scale, right: scale });
        }
        self.scale = scale;
        Ok(self)
    }

    /// Whether it has two polynomials over the towers of its level in `context`.
    pub fn is_relinearized_in(&self, context: &Context) -> bool {
        let context = context.at(self.level);
        let (basis, n) = (context.basis(self.level), context.params().n());
        let fits = |poly: &Poly<NttForm>| poly.basis() == basis && poly.data().len() == n * basis.len();
        self.polys.len() == 2 && context.check_level(self.level).is_ok() && self.polys.iter().all(fits)
    }

    pub(super) fn check_degree(&self, expected: usize) -> Result<(), CkksError> {
        let found = self.polys.len();
        if found == expected { Ok(()) } else { Err(CkksError::Degree { expected, found }) }
    }
}

/// A fresh encryption whose uniform half is kept as the seed it grew from: half the bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct SeededCiphertext {
    pub(super) c0: Poly<NttForm>,
    pub(super) seed: PublicSeed,
    pub(super) level: Level,
    pub(super) scale: Scale,
}

impl SeededCiphertext {
    /// A fresh ciphertext from its first half and the seed of the other.
    pub fn from_half(c0: Poly<NttForm>, seed: PublicSeed, level: Level, scale: Scale) -> Self {
        Self { c0, seed, level, scale }
    }

    /// Assembles a fresh ciphertext from the residues of its first half and its seed.
    ///
    /// # Errors
    /// As [`Ciphertext::from_residues`].
    pub fn from_residues(
        context: &Context,
        level: Level,
        scale: Scale,
        residues: &[u64],
        seed: PublicSeed,
    ) -> Result<Self, CkksError> {
        context.check_level(level)?;
        let c0 = poly_from_residues(context, context.basis(level), residues, "ciphertext")?;
        Ok(Self { c0, seed, level, scale })
    }

    /// The residues of the first half, tower by tower.
    pub fn residues(&self) -> &[u64] {
        self.c0.data()
    }

    /// The seed of the uniform half.
    pub fn seed(&self) -> &PublicSeed {
        &self.seed
    }

    /// Its level.
    pub fn level(&self) -> Level {
        self.level
    }

    /// Its scale.
    pub fn scale(&self) -> Scale {
        self.scale
    }

    /// Grows the uniform half.
    pub fn expand(&self, context: &Context) -> Ciphertext {
        let context = context.at(self.level);
        let c1 = self.seed.uniform_poly(context, self.c0.basis(), 0);
        Ciphertext { polys: vec![self.c0.clone(), c1], level: self.level, scale: self.scale }
    }
}

/// A polynomial from untrusted residues.
pub(super) fn poly_from_residues(
    context: &Context,
    basis: Basis,
    residues: &[u64],
    what: &'static str,
) -> Result<Poly<NttForm>, CkksError> {
    let poly =
        Poly::from_residues(context.ring().n(), basis, residues).ok_or(CkksError::Malformed { what })?;
    if context.ring().is_reduced(&poly) { Ok(poly) } else { Err(CkksError::Malformed { what }) }
}
