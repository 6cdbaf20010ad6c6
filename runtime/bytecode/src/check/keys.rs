//! The keys that a program lists against those it uses.

use super::error::Fault;
use super::{CheckError, CheckErrors, CheckedProgram, MAX_ERRORS, Place};
use crate::interface::Interface;
use crate::params::{KeyPlace, Level, Params};
use crate::program::{ProgramSpec, RotationKey, SegmentKeys};
use crate::rotation::Rotation;
use std::collections::BTreeMap;

/// The keys that a program uses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Keys {
    /// Highest level of every rotation, sorted by rotation.
    pub rotations: Vec<RotationKey>,
    /// Highest level of a relinearization.
    pub relin: Option<Level>,
    /// Highest level of a conjugation.
    pub conjugation: Option<Level>,
    /// Keys of the segments below the first.
    pub lower: Vec<SegmentKeys>,
}

impl Keys {
    /// Where every key lives.
    pub fn places(&self) -> impl Iterator<Item = KeyPlace> {
        let own = places(&self.rotations, self.relin, self.conjugation);
        own.chain(self.lower.iter().flat_map(|lower| {
            let entry = lower.entry.map(|level| KeyPlace { level, enters: true });
            entry.into_iter().chain(places(&lower.rotations, lower.relin, lower.conjugation))
        }))
    }

    /// How many rotation keys, in all segments.
    pub fn n_rotations(&self) -> usize {
        self.rotations.len() + self.lower.iter().map(|lower| lower.rotations.len()).sum::<usize>()
    }

    /// Bytes of all keys in memory.
    pub fn bytes(&self, params: &Params) -> u64 {
        self.places().fold(0u64, |sum, place| sum.saturating_add(params.key_bytes(place)))
    }
}

fn places(
    rotations: &[RotationKey],
    relin: Option<Level>,
    conjugation: Option<Level>,
) -> impl Iterator<Item = KeyPlace> {
    let rotations = rotations.iter().map(|key| key.level);
    relin.into_iter().chain(conjugation).chain(rotations).map(KeyPlace::from)
}

impl From<&CheckedProgram> for Keys {
    fn from(program: &CheckedProgram) -> Self {
        let spec = program.spec();
        let (relin, conjugation) = (spec.relin_level, spec.conjugation_level);
        let (rotations, lower) = (spec.rotation_keys.clone(), spec.lower_keys.clone());
        Self { rotations, relin, conjugation, lower }
    }
}

impl From<&Interface> for Keys {
    fn from(interface: &Interface) -> Self {
        let spec = interface.spec();
        let (relin, conjugation) = (spec.relin_level, spec.conjugation_level);
        let (rotations, lower) = (spec.rotation_keys.clone(), spec.lower_keys.clone());
        Self { rotations, relin, conjugation, lower }
    }
}

/// Compares the keys that a program lists with those it uses.
pub(super) fn check_keys(spec: &ProgramSpec, used: &Keys) -> Result<(), CheckErrors> {
    let mut errors = Vec::new();
    let mut fault = |fault: Fault| {
        if errors.len() < MAX_ERRORS {
            errors.push(CheckError::at(Place::Keys, fault));
        }
    };
    rotations(&spec.rotation_keys, &used.rotations, &mut fault);
    single("relinearization", spec.relin_level, used.relin, &mut fault);
    single("conjugation", spec.conjugation_level, used.conjugation, &mut fault);
    let (found, needed) = (spec.lower_keys.len(), used.lower.len());
    if found != needed {
        fault(Fault::SegmentKeys { found, needed });
    }
    for (listed, used) in spec.lower_keys.iter().zip(&used.lower) {
        single("entry", listed.entry, used.entry, &mut fault);
        rotations(&listed.rotations, &used.rotations, &mut fault);
        single("relinearization", listed.relin, used.relin, &mut fault);
        single("conjugation", listed.conjugation, used.conjugation, &mut fault);
    }
    if errors.is_empty() { Ok(()) } else { Err(CheckErrors::new(errors)) }
}

/// The rotation keys of a segment that are listed against those that are used.
fn rotations(listed: &[RotationKey], used: &[RotationKey], fault: &mut impl FnMut(Fault)) {
    let needed: BTreeMap<Rotation, Level> = used.iter().map(|k| (k.rotation, k.level)).collect();
    let mut found = BTreeMap::new();
    for key in listed {
        let in_order = found.last_key_value().is_none_or(|(last, _)| *last < key.rotation);
        let useful = needed.get(&key.rotation).is_some_and(|level| key.level <= *level);
        if !in_order || !useful {
            fault(Fault::UselessKey(format!("rotation {}", key.rotation)));
        }
        found.insert(key.rotation, key.level);
    }
    for (&rotation, &level) in &needed {
        if found.get(&rotation).is_none_or(|have| *have < level) {
            fault(Fault::NoRotationKey(rotation, level));
        }
    }
}

/// A key that a segment has at most one of.
fn single(name: &'static str, have: Option<Level>, need: Option<Level>, fault: &mut impl FnMut(Fault)) {
    match (have, need) {
        (have, Some(level)) if have.is_none_or(|have| have < level) => fault(Fault::NoKey(name, level)),
        (Some(have), need) if need.is_none_or(|need| have > need) => {
            fault(Fault::UselessKey(name.to_owned()));
        }
        _ => {}
    }
}
