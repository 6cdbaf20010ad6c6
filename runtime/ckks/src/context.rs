//! Everything that follows from the parameters: the ring, conversion tables, encoder tables, permutations.

use std::collections::HashMap;
use std::sync::{Arc, RwLock};

use fhe_bytecode::{Level, Params};

use super::fft::Fft;
use super::{CkksError, Encoder};
use fhe_ring::kernels::Instructions;
use fhe_ring::modulus::ShoupConstant;
use fhe_ring::{Automorphism, BaseConverter, Basis, Ring};

/// Precomputed tables of one parameter set; shared by everything that computes with it.
#[derive(Debug)]
pub struct Context {
    params: Params,
    ring: Ring,
    fft: Fft,
    /// `digits[j][k - 1]` converts from the first k towers of digit j.
    digits: Vec<Vec<BaseConverter>>,
    /// Converts from the special primes.
    special: BaseConverter,
    /// `tops[l]` converts from tower l alone.
    tops: Vec<BaseConverter>,
    /// P modulo each tower of the chain.
    p: Vec<ShoupConstant>,
    /// P⁻¹ modulo each tower of the chain.
    p_inv: Vec<ShoupConstant>,
    automorphisms: RwLock<HashMap<usize, Arc<Automorphism>>>,
}

impl Context {
    /// Tables for checked parameters, with the fastest kernels the CPU has.
    ///
    /// # Errors
    /// When a prime has no transform, which checked parameters exclude.
    pub fn new(params: Params) -> Result<Arc<Self>, CkksError> {
        Self::with_instructions(params, Instructions::Best)
    }

    /// As [`Context::new`], with a choice of kernels; results do not depend on it.
    ///
    /// # Errors
    /// As [`Context::new`].
    pub fn with_instructions(params: Params, instructions: Instructions) -> Result<Arc<Self>, CkksError> {
        let ring = Ring::new(params.n(), params.towers(), params.special_primes(), instructions)?;
        let n_q = ring.n_q();
        let digits = (0..n_q)
            .step_by(params.digit_size())
            .map(|start| {
                let end = (start + params.digit_size()).min(n_q);
                (start + 1..=end).map(|end| BaseConverter::new(&ring, start..end)).collect()
            })
            .collect();
        let p: Vec<ShoupConstant> = ring.towers()[..n_q]
            .iter()
            .map(|tower| {
                let q = tower.modulus;
                q.shoup(params.special_primes().iter().fold(1, |product, &s| q.mul(product, q.reduce(s))))
            })
            .collect();
        let p_inv = p
            .iter()
            .zip(ring.towers())
            .map(|(p, tower)| tower.modulus.shoup(tower.modulus.inv(p.value())))
            .collect();
        Ok(Arc::new(Self {
            fft: Fft::new(params.n()),
            digits,
            special: BaseConverter::new(&ring, n_q..ring.towers().len()),
            tops: (0..n_q).map(|top| BaseConverter::new(&ring, top..top + 1)).collect(),
            p,
            p_inv,
            automorphisms: RwLock::default(),
            ring,
            params,
        }))
    }

    /// The parameters.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// The ring.
    pub fn ring(&self) -> &Ring {
        &self.ring
    }

    /// Number of slots, N/2.
    pub fn slots(&self) -> usize {
        self.params.slots()
    }

    /// The encoder.
    pub fn encoder(&self) -> Encoder<'_> {
        Encoder::new(self)
    }

    /// Refuses a level that the parameters do not have.
    ///
    /// # Errors
    /// When `level` is above the highest.
    pub fn check_level(&self, level: Level) -> Result<(), CkksError> {
        let max = self.params.max_level();
        if level <= max { Ok(()) } else { Err(CkksError::NoSuchLevel { level, max }) }
    }

    /// The towers of a ciphertext at `level`.
    pub fn basis(&self, level: Level) -> Basis {
        self.ring.basis_q(level.n_towers())
    }

    /// The towers of a ciphertext at `level` and the special primes.
    pub fn key_basis(&self, level: Level) -> Basis {
        self.ring.basis_qp(level.n_towers())
    }

    pub(super) fn fft(&self) -> &Fft {
        &self.fft
    }

    /// The converter of digit `digit` when only `n_q` towers of the chain are left.
    pub(super) fn digit(&self, digit: usize, n_q: usize) -> &BaseConverter {
        let size = self.params.digit_size();
        let len = size.min(n_q - digit * size);
        &self.digits[digit][len - 1]
    }

    pub(super) fn special(&self) -> &BaseConverter {
        &self.special
    }

    pub(super) fn top(&self, tower: usize) -> &BaseConverter {
        &self.tops[tower]
    }

    /// The product of the special primes modulo tower `tower`.
    pub fn p(&self, tower: usize) -> ShoupConstant {
        self.p[tower]
    }

    pub(super) fn p_inv(&self, tower: usize) -> ShoupConstant {
        self.p_inv[tower]
    }

    /// The permutation of X → X^element, made on first use.
    pub fn automorphism(&self, element: usize) -> Arc<Automorphism> {
        const LOCK: &str = "no holder of the lock panics";
        if let Some(found) = self.automorphisms.read().expect(LOCK).get(&element) {
            return found.clone();
        }
        let made = Arc::new(Automorphism::new(self.ring.n(), element));
        self.automorphisms.write().expect(LOCK).entry(element).or_insert(made).clone()
    }
}
