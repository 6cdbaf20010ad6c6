//! The evaluation keys a program asks for, as one set.

use std::collections::BTreeMap;

use fhe_bytecode::{Fingerprint, KeyPlace, Keys, Level};

use super::{Context, Galois, GaloisKeys, KeyId, KeySwitchKey, RelinKey, Rotation};

/// What one evaluation key is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum KeyUse {
    /// Relinearization.
    Relinearize,
    /// One rotation or the conjugation.
    Move(Galois),
    /// The way into a smaller ring.
    Enter,
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
    /// Keys by segment and in order of use, without duplicates.
    wanted: BTreeMap<(usize, KeyUse), Level>,
}

impl KeyRequest {
    /// Asks for a key of the first segment up to `level`, or up to the highest level asked for so far. Rotation by zero needs no
    /// key.
    pub fn add(&mut self, key_use: KeyUse, level: Level) {
        self.add_in(0, key_use, level);
    }

    /// As [`KeyRequest::add`], of a segment, which the level has to be in.
    pub fn add_in(&mut self, segment: usize, key_use: KeyUse, level: Level) {
        if key_use != KeyUse::Move(Rotation::ZERO.into()) {
            let wanted = self.wanted.entry((segment, key_use)).or_insert(level);
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

    /// Every key with its level, segment by segment in order of use.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (KeyUse, Level)> {
        self.wanted.iter().map(|(&(_, key_use), &level)| (key_use, level))
    }

    /// Where every key lives.
    pub fn places(&self) -> impl Iterator<Item = KeyPlace> {
        self.iter().map(|(key_use, level)| KeyPlace { level, enters: key_use == KeyUse::Enter })
    }

    /// Bytes of all keys in memory.
    pub fn bytes(&self, context: &Context) -> u64 {
        self.places().map(|place| context.params().key_bytes(place)).sum()
    }
}

/// The keys that a program, or its interface, asks for.
pub fn key_request(context: &Context, keys: impl Into<Keys>) -> KeyRequest {
    let keys = keys.into();
    let mut request = KeyRequest::default();
    let mut add = |segment: usize, key_use, level: Option<Level>| {
        level.into_iter().for_each(|level| request.add_in(segment, key_use, level));
    };
    let rotation =
        |key: &fhe_bytecode::RotationKey| KeyUse::rotation(key.rotation.amount(), context.at(key.level));
    add(0, KeyUse::Relinearize, keys.relin);
    add(0, KeyUse::Move(Galois::Conjugation), keys.conjugation);
    keys.rotations.iter().for_each(|key| add(0, rotation(key), Some(key.level)));
    for (lower, segment) in keys.lower.iter().zip(1..) {
        add(segment, KeyUse::Relinearize, lower.relin);
        add(segment, KeyUse::Move(Galois::Conjugation), lower.conjugation);
        add(segment, KeyUse::Enter, lower.entry);
        lower.rotations.iter().for_each(|key| add(segment, rotation(key), Some(key.level)));
    }
    request
}

/// All evaluation keys of one secret key that a server holds.
#[derive(Debug, Clone, PartialEq)]
pub struct EvaluationKeys {
    params: Fingerprint,
    id: KeyId,
    segments: Vec<SegmentKeys>,
}

/// The keys of one segment.
#[derive(Debug, Clone, PartialEq)]
pub struct SegmentKeys {
    relin: Option<RelinKey>,
    galois: GaloisKeys,
    entry: Option<KeySwitchKey>,
}

impl SegmentKeys {
    /// The relinearization key, if there is one.
    pub fn relin(&self) -> Option<&RelinKey> {
        self.relin.as_ref()
    }

    /// The keys of rotations and of the conjugation.
    pub fn galois(&self) -> &GaloisKeys {
        &self.galois
    }

    /// The key that leads into the ring of the segment, if there is one.
    pub fn entry(&self) -> Option<&KeySwitchKey> {
        self.entry.as_ref()
    }

    /// Every key, in order of use.
    fn iter(&self) -> impl Iterator<Item = (KeyUse, &KeySwitchKey)> {
        let relin = self.relin.iter().map(|key| (KeyUse::Relinearize, key.key()));
        let moves = self.galois.iter().map(|(automorphism, key)| (KeyUse::Move(automorphism), key));
        relin.chain(moves).chain(self.entry.iter().map(|key| (KeyUse::Enter, key)))
    }
}

impl EvaluationKeys {
    /// A set from single keys of the secret key `id`, all made or read with `context`. The level of a key says which segment it
    /// is for.
    pub fn from_parts(
        context: &Context,
        id: KeyId,
        keys: impl IntoIterator<Item = (KeyUse, KeySwitchKey)>,
    ) -> Self {
        let none = || (None, BTreeMap::new(), None);
        let mut all: Vec<_> = context.params().segments().map(|_| none()).collect();
        for (key_use, key) in keys {
            let (relin, galois, entry) = &mut all[context.params().segment(key.level())];
            match key_use {
                KeyUse::Relinearize => *relin = Some(RelinKey::from_parts(id, key)),
                KeyUse::Enter => *entry = Some(key),
                KeyUse::Move(automorphism) => {
                    galois.insert(automorphism, key);
                }
            }
        }
        let segment =
            |(relin, galois, entry)| SegmentKeys { relin, galois: GaloisKeys::from_parts(id, galois), entry };
        let segments = all.into_iter().map(segment).collect();
        Self { params: context.params().fingerprint(), id, segments }
    }

    /// The parameters they are for.
    pub fn params(&self) -> Fingerprint {
        self.params
    }

    /// The secret key they belong to.
    pub fn id(&self) -> KeyId {
        self.id
    }

    /// The keys of a segment.
    pub fn segment(&self, index: usize) -> Option<&SegmentKeys> {
        self.segments.get(index)
    }

    /// The relinearization key of the first segment, if there is one.
    pub fn relin(&self) -> Option<&RelinKey> {
        self.segments[0].relin()
    }

    /// The keys of rotations and of the conjugation in the first segment.
    pub fn galois(&self) -> &GaloisKeys {
        self.segments[0].galois()
    }

    /// Every key, segment by segment in order of use.
    pub fn iter(&self) -> impl Iterator<Item = (KeyUse, &KeySwitchKey)> {
        self.segments.iter().flat_map(SegmentKeys::iter)
    }

    /// Bytes held in memory.
    pub fn bytes(&self) -> u64 {
        self.iter().map(|(_, key)| key.bytes() as u64).sum()
    }

    /// The first key of `request` that is missing or does not reach its level.
    pub fn missing(&self, request: &KeyRequest) -> Option<(KeyUse, Level)> {
        let own = self.segments.iter().enumerate().flat_map(|(segment, keys)| {
            keys.iter().map(move |(key_use, key)| ((segment, key_use), key.level()))
        });
        let levels: BTreeMap<(usize, KeyUse), Level> = own.collect();
        let missing =
            request.wanted.iter().find(|(key, level)| levels.get(key).is_none_or(|found| found < *level));
        missing.map(|(&(_, key_use), &level)| (key_use, level))
    }
}

impl std::fmt::Display for KeyUse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Relinearize => f.write_str("relinearization"),
            Self::Move(automorphism) => automorphism.fmt(f),
            Self::Enter => f.write_str("the way into a smaller ring"),
        }
    }
}
