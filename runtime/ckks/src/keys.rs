//! Evaluation keys: what a server needs to relinearize and rotate. They hold no secret in the clear.
//!
//! A key-switching key from s' to s at level l has one pair (bⱼ, aⱼ) per digit over the towers of all levels up to l and the
//! special primes: bⱼ = eⱼ - aⱼ·s + P·gⱼ·s', where gⱼ is 1 on the towers of digit j and 0 on the others, whichever of them a
//! level has. So it serves every level up to l. The halves aⱼ are uniform and grow from a public seed.

use std::collections::BTreeMap;
use std::fmt;

use fhe_bytecode::Level;
use fhe_ring::parallel::*;

use super::ciphertext::poly_from_residues;
use super::seed::PublicSeed;
use super::{CkksError, Context, Galois};
use fhe_ring::{Packed, PackedPoly, Unchecked};

/// Names a secret key in the files that belong to it; random, not derived from the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KeyId(pub [u8; 16]);

/// The first eight bytes, enough to tell keys apart.
impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0[..8].iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A key-switching key, usable up to its level.
#[derive(Clone, Debug, PartialEq)]
pub struct KeySwitchKey {
    level: Level,
    seed: PublicSeed,
    b: Vec<PackedPoly>,
    a: Vec<PackedPoly>,
}

impl KeySwitchKey {
    /// A key from its halves, one pair per digit, in the order of digits.
    pub fn from_halves(level: Level, seed: PublicSeed, b: Vec<PackedPoly>, a: Vec<PackedPoly>) -> Self {
        Self { level, seed, b, a }
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
        if digits.len() != context.params().key_digits(level).len() {
            return Err(CkksError::Malformed { what: WHAT });
        }
        let (ring, basis) = (context.ring(), context.held_basis(level));
        let b = digits
            .par_iter()
            .map(|residues| {
                let poly = poly_from_residues(context, basis, residues, WHAT)?;
                Ok(PackedPoly::new(ring, &poly))
            })
            .collect::<Result<_, CkksError>>()?;
        let a = uniform_halves(context, level, &seed);
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

    /// Both halves of the digit at position `digit` of `level`, for the tower at position `i` of its key basis.
    pub(super) fn tower(&self, context: &Context, digit: usize, level: Level, i: usize) -> [Packed<'_>; 2] {
        let (held, basis) = (context.held_basis(self.level), context.key_basis(level));
        let n_q = basis.n_q();
        let position = if i < n_q { held.q.rank(basis.q.nth(i)) } else { held.n_q() + i - n_q };
        let digit = context.key_digit(self.level, level, digit);
        [self.b[digit].tower(position), self.a[digit].tower(position)]
    }

    /// Refuses a ciphertext above the key's level.
    pub(super) fn check_level(&self, needed: Level) -> Result<(), CkksError> {
        if needed <= self.level { Ok(()) } else { Err(CkksError::KeyTruncated { key: self.level, needed }) }
    }
}

/// A key from outside: the halves bⱼ as they are packed in memory, with residues that may be anything.
#[derive(Debug)]
pub struct UncheckedKey {
    level: Level,
    seed: PublicSeed,
    b: Vec<Unchecked>,
}

impl UncheckedKey {
    /// Whether the halves of a key are the same bytes in memory as they are where every residue has the bits of its prime.
    pub fn is_possible(context: &Context, level: Level) -> bool {
        Unchecked::is_possible(context.ring(), context.held_basis(level))
    }

    /// A key from its seed and the bytes that `read` fills in: digit by digit, each tower by tower.
    ///
    /// # Errors
    /// Those of `read`.
    ///
    /// # Panics
    /// When it is not possible or the level does not exist.
    pub fn read<E>(
        context: &Context,
        level: Level,
        seed: PublicSeed,
        mut read: impl FnMut(&mut [u8]) -> Result<(), E>,
    ) -> Result<Self, E> {
        let (ring, basis) = (context.ring(), context.held_basis(level));
        let digits = context.params().key_digits(level).iter();
        let b = digits.map(|_| Unchecked::read(ring, basis, &mut read)).collect::<Result<_, E>>()?;
        Ok(Self { level, seed, b })
    }

    /// Checks every residue and grows the uniform halves.
    ///
    /// # Errors
    /// When a residue is not below its prime.
    pub fn checked(self, context: &Context) -> Result<KeySwitchKey, CkksError> {
        let Self { level, seed, b } = self;
        let check = |half: Unchecked| half.checked(context.ring());
        let b: Option<Vec<_>> = b.into_par_iter().map(check).collect();
        let b = b.ok_or(CkksError::Malformed { what: "evaluation key" })?;
        let a = uniform_halves(context, level, &seed);
        Ok(KeySwitchKey { level, seed, b, a })
    }
}

/// The uniform halves of a key, one for each of its digits: grown from the digit's place among all digits.
fn uniform_halves(context: &Context, level: Level, seed: &PublicSeed) -> Vec<PackedPoly> {
    let basis = context.held_basis(level);
    let half = |&digit: &usize| seed.uniform_packed(context, basis, digit as u64);
    context.params().key_digits(level).par_iter().map(half).collect()
}

/// The key that turns s² back into s.
#[derive(Clone, Debug, PartialEq)]
pub struct RelinKey {
    id: KeyId,
    key: KeySwitchKey,
}

impl RelinKey {
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

/// Keys of automorphisms, each usable up to its own level.
///
/// The key for σ switches from s to σ⁻¹(s), so that the permutation is applied once, after the key switch,
/// instead of to every digit before it.
#[derive(Clone, Debug, PartialEq)]
pub struct GaloisKeys {
    id: KeyId,
    keys: BTreeMap<Galois, KeySwitchKey>,
}

impl GaloisKeys {
    /// Keys from their parts.
    pub fn from_parts(id: KeyId, keys: BTreeMap<Galois, KeySwitchKey>) -> Self {
        Self { id, keys }
    }

    /// The secret key they belong to.
    pub fn id(&self) -> KeyId {
        self.id
    }

    /// Every key with its automorphism: rotations in order of steps, then the conjugation.
    pub fn iter(&self) -> impl Iterator<Item = (Galois, &KeySwitchKey)> {
        self.keys.iter().map(|(&automorphism, key)| (automorphism, key))
    }

    /// The key of an automorphism, if it reaches `level`.
    ///
    /// # Errors
    /// When there is no such key or it is truncated below `level`.
    pub fn get(&self, automorphism: impl Into<Galois>, level: Level) -> Result<&KeySwitchKey, CkksError> {
        let automorphism = automorphism.into();
        let key = self.keys.get(&automorphism).ok_or(CkksError::MissingKey(automorphism))?;
        key.check_level(level)?;
        Ok(key)
    }

    /// Bytes held in memory.
    pub fn bytes(&self) -> usize {
        self.keys.values().map(KeySwitchKey::bytes).sum()
    }
}
