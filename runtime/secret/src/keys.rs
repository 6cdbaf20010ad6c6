//! Making evaluation keys, whole ([`fhe_ckks::KeySwitchKey`]) or as the digits that a file holds ([`KeyDigits`]).

use std::collections::BTreeMap;

use fhe_bytecode::Level;
use fhe_ckks::{
    CkksError, Context, EvaluationKeys, GaloisKeys, KeyRequest, KeySwitchKey, KeyUse, RelinKey, Rotation,
};
use fhe_ring::PackedPoly;

use super::digits::KeyDigits;
use super::random::SeedSource;
use super::secret_key::SecretKey;

impl SecretKey {
    /// One fresh evaluation key usable up to `level`.
    ///
    /// # Errors
    /// When the level does not exist or the operating system has no randomness.
    pub fn evaluation_key(
        &self,
        context: &Context,
        wanted: (KeyUse, Level),
        seeds: &mut SeedSource,
    ) -> Result<KeySwitchKey, CkksError> {
        let mut digits = self.key_digits(context, wanted, seeds)?;
        let (level, seed, ring) = (digits.level(), digits.seed(), context.of_key(wanted.0, wanted.1).ring());
        let pairs = std::iter::from_fn(|| digits.next_pair());
        let (b, a) = pairs.map(|(b, a)| (PackedPoly::new(ring, &b), PackedPoly::new(ring, &a))).unzip();
        Ok(KeySwitchKey::from_halves(level, seed, b, a))
    }

    /// The digits of one fresh evaluation key usable up to `level`, for writing keys as they are made.
    ///
    /// # Errors
    /// As [`SecretKey::evaluation_key`].
    pub fn key_digits<'k>(
        &'k self,
        context: &'k Context,
        wanted: (KeyUse, Level),
        seeds: &mut SeedSource,
    ) -> Result<KeyDigits<'k>, CkksError> {
        KeyDigits::new(self, context, wanted, seeds)
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
            .collect::<Result<Vec<_>, CkksError>>()?;
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
