//! The secret key: generation, encryption and decryption are its methods, so nothing else touches it.

use zeroize::{Zeroize, Zeroizing};

use super::random::{SeedSource, small_poly};
use fhe_ckks::{CkksError, Context, KeyId};
use fhe_ring::{Automorphism, NttForm, Poly};

/// A uniform ternary secret; erased when dropped. Has neither `Debug` nor `Clone` on purpose.
pub struct SecretKey {
    id: KeyId,
    coeffs: Zeroizing<Vec<i8>>,
    /// The secret in NTT form over all primes.
    ntt: SecretPoly,
}

/// A polynomial that is erased when dropped.
pub(crate) struct SecretPoly(pub(crate) Poly<NttForm>);

impl Drop for SecretPoly {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl SecretKey {
    /// A fresh key with a fresh id.
    ///
    /// # Errors
    /// When the operating system has no randomness.
    pub fn generate(context: &Context, seeds: &mut SeedSource) -> Result<Self, CkksError> {
        let coeffs = seeds.private()?.ternary(context.ring().n());
        let mut id = [0; 16];
        id.copy_from_slice(&seeds.bytes()?[..16]);
        Ok(Self::assemble(context, KeyId(id), coeffs))
    }

    /// Rebuilds a key from its id and its N coefficients, each -1, 0 or 1, as a file holds them.
    ///
    /// # Errors
    /// When the number of coefficients does not fit or one is out of range.
    pub fn from_coeffs(context: &Context, id: KeyId, coeffs: Zeroizing<Vec<i8>>) -> Result<Self, CkksError> {
        let out_of_range = coeffs.iter().fold(false, |bad, &c| bad | !(-1..=1).contains(&c));
        if coeffs.len() != context.ring().n() || out_of_range {
            return Err(CkksError::Malformed { what: "secret key" });
        }
        Ok(Self::assemble(context, id, coeffs))
    }

    fn assemble(context: &Context, id: KeyId, coeffs: Zeroizing<Vec<i8>>) -> Self {
        let basis = context.ring().basis_qp(context.ring().n_q());
        let ntt = SecretPoly(small_poly(context, basis, &coeffs));
        Self { id, coeffs, ntt }
    }

    /// The key's id.
    pub fn id(&self) -> KeyId {
        self.id
    }

    /// The coefficients, for writing to a protected file.
    pub fn coeffs(&self) -> &[i8] {
        &self.coeffs
    }

    /// The secret s.
    pub(crate) fn ntt(&self) -> &Poly<NttForm> {
        &self.ntt.0
    }

    /// s².
    pub(crate) fn squared(&self, context: &Context) -> SecretPoly {
        SecretPoly(context.ring().mul(self.ntt(), self.ntt()))
    }

    /// σ(s).
    pub(crate) fn permuted(&self, context: &Context, automorphism: &Automorphism) -> SecretPoly {
        let mut out = context.ring().zero(self.ntt().basis());
        context.ring().for_each_tower(&mut out, |_, i, out| automorphism.apply(out, self.ntt().tower(i)));
        SecretPoly(out)
    }
}
