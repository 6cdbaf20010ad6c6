//! The evaluation keys a program asks for, as one set.

use std::collections::BTreeMap;

use fhe_bytecode::{Fingerprint, Keys, Level};

use super::{Context, Galois, GaloisKeys, KeyId, KeySwitchKey, RelinKey, Rotation};

/// What one evaluation key is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum KeyUse {
    /// Relinearization.
    Relinearize,
    /// One rotation or the conjugation.
    Move(Galois),
}

impl KeyUse {
    /// A rotation by so many steps to the left.
    pub fn rotation(steps: i64, context: &Context) -> Self {
        Self::Move(Rotation::new(steps, context).into())
    }
}

/// Which keys are needed, and up to which level each.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct KeyRequest {
    /// Keys in order of use, without duplicates.
    wanted: BTreeMap<KeyUse, Level>,
}

impl KeyRequest {
    /// Asks for a key up to `level`, or up to the highest level asked for so far. Rotation by zero needs no key.
    pub fn add(&mut self, key_use: KeyUse, level: Level) {
        if key_use != KeyUse::Move(Rotation::ZERO.into()) {
            let wanted = self.wanted.entry(key_use).or_insert(level);
            *wanted = level.max(*wanted);
        }
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.wanted.len()
    }

    /// Whether no key is needed.
    pub fn is_empty(&self) -> bool {
        self.wanted.is_empty()
    }

    /// Every key with its level, in order of use.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (KeyUse, Level)> {
        self.wanted.iter().map(|(&key_use, &level)| (key_use, level))
    }

    /// The level of every key.
    pub fn levels(&self) -> impl Iterator<Item = Level> {
        self.wanted.values().copied()
    }

    /// Bytes of all keys in memory.
    pub fn bytes(&self, context: &Context) -> u64 {
        self.levels().map(|level| context.params().key_bytes(level)).sum()
    }
}

/// The keys that a program, or its interface, asks for.
pub fn key_request(context: &Context, keys: impl Into<Keys>) -> KeyRequest {
    let keys = keys.into();
    let mut request = KeyRequest::default();
    if let Some(level) = keys.relin {
        request.add(KeyUse::Relinearize, level);
    }
    if let Some(level) = keys.conjugation {
        request.add(KeyUse::Move(Galois::Conjugation), level);
    }
    for key in &keys.rotations {
        request.add(KeyUse::rotation(key.rotation.amount(), context), key.level);
    }
    request
}

/// All evaluation keys of one secret key that a server holds.
#[derive(Debug, Clone, PartialEq)]
pub struct EvaluationKeys {
    params: Fingerprint,
    relin: Option<RelinKey>,
    galois: GaloisKeys,
}

impl EvaluationKeys {
    /// A set from single keys of the secret key `id`, all made or read with `context`.
    pub fn from_parts(context: &Context, id: KeyId, keys: BTreeMap<KeyUse, KeySwitchKey>) -> Self {
        let mut relin = None;
        let mut galois = BTreeMap::new();
        for (key_use, key) in keys {
            match key_use {
                KeyUse::Relinearize => relin = Some(RelinKey::from_parts(id, key)),
                KeyUse::Move(automorphism) => {
                    galois.insert(automorphism, key);
                }
            }
        }
        let params = context.params().fingerprint();
        Self { params, relin, galois: GaloisKeys::from_parts(id, galois) }
    }

    /// The parameters they are for.
    pub fn params(&self) -> Fingerprint {
        self.params
    }

    /// The secret key they belong to.
    pub fn id(&self) -> KeyId {
        self.galois.id()
    }

    /// The relinearization key, if there is one.
    pub fn relin(&self) -> Option<&RelinKey> {
        self.relin.as_ref()
    }

    /// The keys of rotations and of the conjugation.
    pub fn galois(&self) -> &GaloisKeys {
        &self.galois
    }

    /// Every key, in order of use.
    pub fn iter(&self) -> impl Iterator<Item = (KeyUse, &KeySwitchKey)> {
        let relin = self.relin.iter().map(|key| (KeyUse::Relinearize, key.key()));
        relin.chain(self.galois.iter().map(|(automorphism, key)| (KeyUse::Move(automorphism), key)))
    }

    /// Bytes held in memory.
    pub fn bytes(&self) -> u64 {
        self.iter().map(|(_, key)| key.bytes() as u64).sum()
    }

    /// The first key of `request` that is missing or does not reach its level.
    pub fn missing(&self, request: &KeyRequest) -> Option<(KeyUse, Level)> {
        let levels: BTreeMap<KeyUse, Level> =
            self.iter().map(|(key_use, key)| (key_use, key.level())).collect();
        request.iter().find(|(key_use, level)| levels.get(key_use).is_none_or(|found| found < level))
    }
}

impl std::fmt::Display for KeyUse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Relinearize => f.write_str("relinearization"),
            Self::Move(automorphism) => automorphism.fmt(f),
        }
    }
}
