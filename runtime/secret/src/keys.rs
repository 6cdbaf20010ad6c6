//! Making evaluation keys.
//!
//! A key-switching key from s' to s at level l has one pair (bⱼ, aⱼ) per digit: bⱼ = eⱼ - aⱼ·s + P·gⱼ·s'; see
//! [`fhe_ckks::KeySwitchKey`] for what it is.

use std::collections::BTreeMap;

use fhe_bytecode::Level;
use fhe_ckks::{
    CkksError, Context, EvaluationKeys, GaloisKeys, KeyRequest, KeySwitchKey, KeyUse, PublicSeed, RelinKey,
    Rotation,
};
use fhe_ring::{NttForm, PackedPoly, Poly};
use zeroize::Zeroize;

use super::random::{PrivateSeed, SeedSource, small_poly};
use super::secret_key::SecretKey;

impl SecretKey {
    /// One fresh evaluation key usable up to `level`, for writing keys to a file as they are made.
    ///
    /// The key for an automorphism σ switches from s to σ⁻¹(s), so that the permutation is applied once, after the key
    /// switch, instead of to every digit before it.
    ///
    /// # Errors
    /// When the level does not exist or the operating system has no randomness.
    pub fn evaluation_key(
        &self,
        context: &Context,
        (key_use, level): (KeyUse, Level),
        seeds: &mut SeedSource,
    ) -> Result<KeySwitchKey, CkksError> {
        let (public, private) = (seeds.public()?, seeds.private()?);
        match key_use {
            KeyUse::Relinearize => {
                let squared = self.squared(context);
                switching_key(context, level, &squared.0, self.ntt(), public, &private)
            }
            KeyUse::Move(automorphism) => {
                let inverse = context.automorphism(automorphism.inverse_galois_element(context.ring().n()));
                let to = self.permuted(context, &inverse);
                switching_key(context, level, self.ntt(), &to.0, public, &private)
            }
        }
    }

    /// Every key of `request`.
    ///
    /// # Errors
    /// As [`SecretKey::evaluation_key`].
    pub fn evaluation_keys(
        &self,
        context: &Context,
        request: &KeyRequest,
        seeds: &mut SeedSource,
    ) -> Result<EvaluationKeys, CkksError> {
        let keys = request
            .iter()
            .map(|(key_use, level)| Ok((key_use, self.evaluation_key(context, (key_use, level), seeds)?)))
            .collect::<Result<_, CkksError>>()?;
        Ok(EvaluationKeys::from_parts(context, self.id(), keys))
    }

    /// A fresh relinearization key.
    ///
    /// # Errors
    /// As [`SecretKey::evaluation_key`].
    pub fn relin_key(
        &self,
        context: &Context,
        level: Level,
        seeds: &mut SeedSource,
    ) -> Result<RelinKey, CkksError> {
        let key = self.evaluation_key(context, (KeyUse::Relinearize, level), seeds)?;
        Ok(RelinKey::from_parts(self.id(), key))
    }

    /// Fresh keys for the given rotations; a rotation by zero needs none and is skipped.
    ///
    /// # Errors
    /// As [`SecretKey::evaluation_key`].
    pub fn rotation_keys(
        &self,
        context: &Context,
        wanted: &[(Rotation, Level)],
        seeds: &mut SeedSource,
    ) -> Result<GaloisKeys, CkksError> {
        let mut keys = BTreeMap::new();
        for &(rotation, level) in wanted.iter().filter(|(rotation, _)| !rotation.is_zero()) {
            let automorphism = rotation.into();
            let key = self.evaluation_key(context, (KeyUse::Move(automorphism), level), seeds)?;
            keys.insert(automorphism, key);
        }
        Ok(GaloisKeys::from_parts(self.id(), keys))
    }
}

/// A key that switches from `from` to `to`.
fn switching_key(
    context: &Context,
    level: Level,
    from: &Poly<NttForm>,
    to: &Poly<NttForm>,
    public: PublicSeed,
    private: &PrivateSeed,
) -> Result<KeySwitchKey, CkksError> {
    context.check_level(level)?;
    let ring = context.ring();
    let (params, basis) = (context.params(), context.held_basis(level));
    let held = params.held(level);
    let (b, a) = params
        .key_digits(level)
        .iter()
        .map(|&digit| {
            let a = public.uniform_poly(context, basis, digit as u64);
            let mut b = small_poly(context, basis, &private.error(ring.n(), digit as u64));
            ring.for_each_tower(&mut b, |tower, i, b| {
                // Secrets span all primes, keys only those of their levels.
                let all = ring.tower_index(basis, i);
                let mut product = vec![0; ring.n()];
                tower.kernels.mul_into(&mut product, a.tower(i), to.tower(all));
                tower.kernels.sub_assign(b, &product);
                if held.get(i).is_some_and(|&tower| params.digit_of(tower) == digit) {
                    product.copy_from_slice(from.tower(all));
                    tower.kernels.mul_scalar_assign(&mut product, context.p(all));
                    tower.kernels.add_assign(b, &product);
                }
                product.zeroize();
            });
            (PackedPoly::new(ring, &b), PackedPoly::new(ring, &a))
        })
        .unzip();
    Ok(KeySwitchKey::from_halves(level, public, b, a))
}
