//! Secret-key encryption and decryption.
//!
//! A fresh ciphertext is (m + e - a·s, a) with a uniform and grown from a public seed; it decrypts
//! as c0 + c1·s (+ c2·s²).

use zeroize::Zeroize;

use super::random::{SeedSource, small_poly};
use super::secret_key::{SecretKey, SecretPoly};
use fhe_ckks::{Ciphertext, CkksError, Context, Plaintext, SeededCiphertext};
use fhe_ring::{NttForm, Poly};

impl SecretKey {
    /// Encrypts a plaintext at the plaintext's level, which is one of the first segment; lower ones have tables and a secret of
    /// their own ([`SecretKey::at`]).
    ///
    /// # Errors
    /// When the plaintext is compressed or has special primes, or the operating system has no randomness.
    pub fn encrypt(
        &self,
        context: &Context,
        plain: &Plaintext,
        seeds: &mut SeedSource,
    ) -> Result<SeededCiphertext, CkksError> {
        let basis = plain.basis();
        let level = context.level_of(basis);
        let level = level.ok_or(CkksError::PlaintextBasis { expected: basis.n_q(), found: basis.len() })?;
        let ring = context.ring();
        let seed = seeds.public()?;
        let a = seed.uniform_poly(context, basis, 0);
        let error = seeds.private()?.error(ring.n(), 0);
        let mut c0 = small_poly(context, basis, &error);
        let mut mask = SecretPoly(ring.mul(&a, self.ntt()));
        ring.sub_assign(&mut c0, &mask.0);
        mask.0.zeroize();
        ring.for_each_tower(&mut c0, |tower, i, c0| {
            tower.kernels.add_assign(c0, &plain.expanded_tower(ring.n(), i));
        });
        Ok(SeededCiphertext::from_half(c0, seed, level, plain.scale()))
    }

    /// Decrypts to the values of all slots.
    ///
    /// # Errors
    /// When the ciphertext has other than two or three polynomials.
    pub fn decrypt(&self, context: &Context, ciphertext: &Ciphertext) -> Result<Vec<f64>, CkksError> {
        let message = self.decrypt_poly(context, ciphertext)?;
        Ok(context.at(ciphertext.level()).encoder().decode_poly(message, ciphertext.scale()))
    }

    /// Decrypts to the polynomial that holds message and noise.
    ///
    /// # Errors
    /// As [`SecretKey::decrypt`].
    pub fn decrypt_poly(
        &self,
        context: &Context,
        ciphertext: &Ciphertext,
    ) -> Result<Poly<NttForm>, CkksError> {
        let (context, own) = self.at(context, ciphertext.level());
        let ring = context.ring();
        let [c0, rest @ ..] = ciphertext.polys() else {
            return Err(CkksError::Degree { expected: 2, found: 0 });
        };
        // Horner's rule in s: ((c2·s + c1)·s + c0).
        let mut sum = SecretPoly(ring.zero(c0.basis()));
        for poly in rest.iter().rev() {
            ring.add_assign(&mut sum.0, poly);
            sum = SecretPoly(ring.mul(&sum.0, own.ntt()));
        }
        let mut message = c0.clone();
        ring.add_assign(&mut message, &sum.0);
        Ok(message)
    }
}
