//! Evaluation keys: what a server needs to relinearize and rotate. They hold no secret in the clear.
//!
//! A key-switching key from s' to s at level l has one pair (bⱼ, aⱼ) per digit over the towers of l and the
//! special primes: bⱼ = eⱼ - aⱼ·s + P·gⱼ·s', where gⱼ is 1 on the towers of digit j and 0 on the others. It
//! serves every level up to l. The halves aⱼ are uniform and grow from a public seed.

use std::collections::BTreeMap;

use fhe_bytecode::Level;
use rayon::prelude::*;

use super::ciphertext::poly_from_residues;
use super::random::{PrivateSeed, PublicSeed, SeedSource, small_poly};
use super::secret_key::{KeyId, SecretKey};
use super::{CkksError, Context, Rotation};
use crate::ring::{NttForm, Packed, PackedPoly, Poly};

/// A key-switching key, usable up to its level.
#[derive(Clone, Debug, PartialEq)]
pub struct KeySwitchKey {
    level: Level,
    seed: PublicSeed,
    b: Vec<PackedPoly>,
    a: Vec<PackedPoly>,
}

impl KeySwitchKey {
    /// Switches from `from` to `to`.
    fn generate(
        context: &Context,
        level: Level,
        from: &Poly<NttForm>,
        to: &Poly<NttForm>,
        public: PublicSeed,
        private: &PrivateSeed,
    ) -> Result<Self, CkksError> {
        context.check_level(level)?;
        let ring = context.ring();
        let basis = context.key_basis(level);
        let size = context.params().digit_size();
        let (b, a) = (0..context.params().n_digits(level))
            .map(|digit| {
                let a = public.uniform_poly(context, basis, digit as u64);
                let mut b = small_poly(context, basis, &private.error(ring.n(), digit as u64));
                ring.for_each_tower(&mut b, |tower, i, b| {
                    // Secrets span all primes, keys only those of their level.
                    let all = ring.tower_index(basis, i);
                    let mut product = vec![0; ring.n()];
                    tower.kernels.mul_into(&mut product, a.tower(i), to.tower(all));
                    tower.kernels.sub_assign(b, &product);
                    if i < basis.n_q && i / size == digit {
                        product.copy_from_slice(from.tower(all));
                        tower.kernels.mul_scalar_assign(&mut product, context.p(i));
                        tower.kernels.add_assign(b, &product);
                    }
                    zeroize::Zeroize::zeroize(&mut product);
                });
                (PackedPoly::new(ring, &b), PackedPoly::new(ring, &a))
            })
            .unzip();
        Ok(Self { level, seed: public, b, a })
    }

    /// Assembles a key from the residues of its halves bⱼ, tower by tower, and its seed.
    ///
    /// # Errors
    /// When the level does not exist, the number of digits or a length does not fit, or a residue is not
    /// below its prime.
    pub fn from_residues(
        context: &Context,
        level: Level,
        seed: PublicSeed,
        digits: &[Vec<u64>],
    ) -> Result<Self, CkksError> {
        const WHAT: &str = "evaluation key";
        context.check_level(level)?;
        if digits.len() != context.params().n_digits(level) {
            return Err(CkksError::Malformed { what: WHAT });
        }
        let (ring, basis) = (context.ring(), context.key_basis(level));
        let b = digits
            .par_iter()
            .map(|residues| {
                let poly = poly_from_residues(context, basis, residues, WHAT)?;
                Ok(PackedPoly::new(ring, &poly))
            })
            .collect::<Result<_, CkksError>>()?;
        let a = (0..digits.len())
            .map(|digit| PackedPoly::new(ring, &seed.uniform_poly(context, basis, digit as u64)))
            .collect();
        Ok(Self { level, seed, b, a })
    }

    /// The highest level it serves.
    pub fn level(&self) -> Level {
        self.level
    }

    /// The seed of the uniform halves.
    pub fn seed(&self) -> &PublicSeed {
        &self.seed
    }

    /// The residues of the halves bⱼ, digit by digit, each tower by tower.
    pub fn residues(&self) -> impl ExactSizeIterator<Item = Vec<u64>> {
        self.b.iter().map(PackedPoly::residues)
    }

    /// Bytes held in memory, both halves.
    pub fn bytes(&self) -> usize {
        self.b.iter().chain(&self.a).map(PackedPoly::bytes).sum()
    }

    /// Both halves of digit `digit` for the tower at position `i` of the key basis of `level`.
    pub(super) fn tower(&self, digit: usize, level: Level, i: usize) -> [Packed<'_>; 2] {
        let n_q = level.n_towers();
        let position = if i < n_q { i } else { i - n_q + self.level.n_towers() };
        [self.b[digit].tower(position), self.a[digit].tower(position)]
    }

    /// Refuses a ciphertext above the key's level.
    pub(super) fn check_level(&self, needed: Level) -> Result<(), CkksError> {
        if needed <= self.level { Ok(()) } else { Err(CkksError::KeyTruncated { key: self.level, needed }) }
    }
}

/// The key that turns s² back into s.
#[derive(Clone, Debug, PartialEq)]
pub struct RelinKey {
    id: KeyId,
    key: KeySwitchKey,
}

impl RelinKey {
    /// A fresh key usable up to `level`.
    ///
    /// # Errors
    /// When the level does not exist or the operating system has no randomness.
    pub fn generate(
        context: &Context,
        secret: &SecretKey,
        level: Level,
        seeds: &mut SeedSource,
    ) -> Result<Self, CkksError> {
        let (public, private) = (seeds.public()?, seeds.private()?);
        let squared = secret.squared(context);
        let key = KeySwitchKey::generate(context, level, &squared.0, secret.ntt(), public, &private)?;
        Ok(Self { id: secret.id(), key })
    }

    /// A key from its parts.
    pub fn from_parts(id: KeyId, key: KeySwitchKey) -> Self {
        Self { id, key }
    }

    /// The secret key it belongs to.
    pub fn id(&self) -> KeyId {
        self.id
    }

    /// The key itself.
    pub fn key(&self) -> &KeySwitchKey {
        &self.key
    }
}

/// Rotation keys, each usable up to its own level.
///
/// The key for σ switches from s to σ⁻¹(s), so that the permutation is applied once, after the key switch,
/// instead of to every digit before it.
#[derive(Clone, Debug, PartialEq)]
pub struct RotationKeys {
    id: KeyId,
    keys: BTreeMap<Rotation, KeySwitchKey>,
}

impl RotationKeys {
    /// Fresh keys for the given rotations; a rotation by zero needs none and is skipped.
    ///
    /// # Errors
    /// When a level does not exist or the operating system has no randomness.
    pub fn generate(
        context: &Context,
        secret: &SecretKey,
        wanted: &[(Rotation, Level)],
        seeds: &mut SeedSource,
    ) -> Result<Self, CkksError> {
        let mut keys = BTreeMap::new();
        for &(rotation, level) in wanted.iter().filter(|(rotation, _)| !rotation.is_zero()) {
            keys.insert(rotation, Self::generate_one(context, secret, rotation, level, seeds)?);
        }
        Ok(Self { id: secret.id(), keys })
    }

    /// One fresh key, for writing keys to a file as they are made.
    ///
    /// # Errors
    /// As [`RotationKeys::generate`].
    pub fn generate_one(
        context: &Context,
        secret: &SecretKey,
        rotation: Rotation,
        level: Level,
        seeds: &mut SeedSource,
    ) -> Result<KeySwitchKey, CkksError> {
        let (public, private) = (seeds.public()?, seeds.private()?);
        let inverse = context.automorphism(rotation.inverse_galois_element(context.ring().n()));
        let to = secret.permuted(context, &inverse);
        KeySwitchKey::generate(context, level, secret.ntt(), &to.0, public, &private)
    }

    /// Keys from their parts.
    pub fn from_parts(id: KeyId, keys: BTreeMap<Rotation, KeySwitchKey>) -> Self {
        Self { id, keys }
    }

    /// The secret key they belong to.
    pub fn id(&self) -> KeyId {
        self.id
    }

    /// Every key with its rotation, in order of steps.
    pub fn iter(&self) -> impl Iterator<Item = (Rotation, &KeySwitchKey)> {
        self.keys.iter().map(|(&rotation, key)| (rotation, key))
    }

    /// The key of a rotation, if it reaches `level`.
    ///
    /// # Errors
    /// When there is no such key or it is truncated below `level`.
    pub fn get(&self, rotation: Rotation, level: Level) -> Result<&KeySwitchKey, CkksError> {
        let missing = CkksError::MissingRotationKey { steps: rotation.steps() };
        let key = self.keys.get(&rotation).ok_or(missing)?;
        key.check_level(level)?;
        Ok(key)
    }

    /// Bytes held in memory.
    pub fn bytes(&self) -> usize {
        self.keys.values().map(KeySwitchKey::bytes).sum()
    }
}
