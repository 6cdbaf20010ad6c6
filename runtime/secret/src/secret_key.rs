//! The secret key: generation, encryption and decryption are its methods, so nothing else touches it.

use zeroize::{Zeroize, Zeroizing};

use super::random::{PrivateSeed, SeedSource, small_poly};
use fhe_ckks::{CkksError, Context, KeyId, Level, Segment};
use fhe_ring::{Automorphism, NttForm, Poly};

/// A uniform ternary secret; erased when dropped. Has neither `Debug` nor `Clone` on purpose.
pub struct SecretKey {
    id: KeyId,
    coeffs: Zeroizing<Vec<i8>>,
    /// The secret in NTT form over all primes.
    ntt: SecretPoly,
    lower: Vec<LowerSecret>,
}

/// The secret of a segment below the first.
struct LowerSecret {
    key: SecretKey,
    /// Where its ring is smaller: the secret above and its own, as polynomials of the ring above, over the primes of the key that
    /// leads there.
    entry: Option<[SecretPoly; 2]>,
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
        let mut lower: Vec<LowerSecret> = Vec::with_capacity(context.lower().len());
        for segment in context.lower() {
            let above = lower.last().map_or(&coeffs, |lower| &lower.key.coeffs);
            let made = LowerSecret::below(segment, id, above);
            lower.push(made);
        }
        Self { id, coeffs, ntt, lower }
    }

    /// The tables and the secret of the segment that a level is in.
    pub fn at<'a>(&'a self, context: &'a Context, level: Level) -> (&'a Context, &'a Self) {
        let key = match context.params().segment(level) {
            0 => self,
            segment => &self.lower[segment - 1].key,
        };
        (context.at(level), key)
    }

    /// The secret above the segment of a level and that of the segment, both in the ring above; none where it is the same ring.
    pub(crate) fn entry(&self, context: &Context, level: Level) -> Option<&[SecretPoly; 2]> {
        let segment = context.params().segment(level).checked_sub(1)?;
        self.lower[segment].entry.as_ref()
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

impl LowerSecret {
    /// The secret of a segment below the one with these coefficients: the same where the ring is the same.
    fn below(segment: &Segment, id: KeyId, above: &[i8]) -> Self {
        let context = segment.context();
        let Some(entry) = segment.entry() else {
            let key = SecretKey::assemble(context, id, Zeroizing::new(above.to_vec()));
            return Self { key, entry: None };
        };
        let (n, stride) = (context.ring().n(), entry.ring().n() / context.ring().n());
        let coeffs = PrivateSeed::of_smaller(above, n).ternary(n);
        let mut spread = Zeroizing::new(vec![0; entry.ring().n()]);
        spread.iter_mut().step_by(stride).zip(coeffs.iter()).for_each(|(out, &c)| *out = c);
        let basis = entry.ring().basis_qp(entry.ring().n_q());
        let secrets = [above, &spread].map(|coeffs| SecretPoly(small_poly(entry, basis, coeffs)));
        Self { key: SecretKey::assemble(context, id, coeffs), entry: Some(secrets) }
    }
}
