//! The keys that a program lists against those it uses.

use super::error::Fault;
use super::{CheckError, CheckErrors, CheckedProgram, MAX_ERRORS, Place};
use crate::interface::Interface;
use crate::params::Level;
use crate::program::{ProgramSpec, RotationKey};
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
}

impl Keys {
    /// The level of every key.
    pub fn levels(&self) -> impl Iterator<Item = Level> {
        let rotations = self.rotations.iter().map(|key| key.level);
        self.relin.into_iter().chain(self.conjugation).chain(rotations)
    }
}

impl From<&CheckedProgram> for Keys {
    fn from(program: &CheckedProgram) -> Self {
        let spec = program.spec();
        let (relin, conjugation) = (spec.relin_level, spec.conjugation_level);
        Self { rotations: spec.rotation_keys.clone(), relin, conjugation }
    }
}

impl From<&Interface> for Keys {
    fn from(interface: &Interface) -> Self {
        let spec = interface.spec();
        let (relin, conjugation) = (spec.relin_level, spec.conjugation_level);
        Self { rotations: spec.rotation_keys.clone(), relin, conjugation }
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
    let needed: BTreeMap<Rotation, Level> = used.rotations.iter().map(|k| (k.rotation, k.level)).collect();
    let mut listed = BTreeMap::new();
    for key in &spec.rotation_keys {
        let in_order = listed.last_key_value().is_none_or(|(last, _)| *last < key.rotation);
        let useful = needed.get(&key.rotation).is_some_and(|level| key.level <= *level);
        if !in_order || !useful {
            fault(Fault::UselessKey(format!("rotation {}", key.rotation)));
        }
        listed.insert(key.rotation, key.level);
    }
    for (&rotation, &level) in &needed {
        if listed.get(&rotation).is_none_or(|have| *have < level) {
            fault(Fault::NoRotationKey(rotation, level));
        }
    }
    let others = [
        ("relinearization", spec.relin_level, used.relin),
        ("conjugation", spec.conjugation_level, used.conjugation),
    ];
    for (name, have, need) in others {
        match (have, need) {
            (have, Some(level)) if have.is_none_or(|have| have < level) => fault(Fault::NoKey(name, level)),
            (Some(have), need) if need.is_none_or(|need| have > need) => {
                fault(Fault::UselessKey(name.to_owned()));
            }
            _ => {}
        }
    }
    if errors.is_empty() { Ok(()) } else { Err(CheckErrors::new(errors)) }
}
