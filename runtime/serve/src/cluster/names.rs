//! Names of what machines share, and what messages say.

use serde::{Deserialize, Serialize};

use super::ClusterError;
use crate::ids::{JobId, JobRef, KeyName, KeyRef, Owner, ProgramId};

/// Parts of the queue. A key is in one of them, and every part has one worker that is its home.
pub(super) const N_PARTITIONS: u16 = 256;

/// The names of one service.
#[derive(Clone, Debug)]
pub(super) struct Names(String);

impl Names {
    pub(super) fn new(name: &str) -> Result<Self, ClusterError> {
        let is_fit = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        match (1..=32).contains(&name.len()) && name.chars().all(is_fit) {
            true => Ok(Self(name.to_owned())),
            false => Err(ClusterError::Name(name.to_owned())),
        }
    }

    pub(super) fn stream(&self) -> String {
        format!("{}-work", self.0)
    }

    pub(super) fn jobs(&self) -> String {
        format!("{}-jobs", self.0)
    }

    pub(super) fn workers(&self) -> String {
        format!("{}-workers", self.0)
    }

    /// Where workers hear the subjects of new messages.
    pub(super) fn wake(&self) -> String {
        format!("{}.wake", self.0)
    }

    pub(super) fn all(&self) -> String {
        format!("{}.work.>", self.0)
    }

    pub(super) fn of_owner(&self, owner: &Owner) -> String {
        format!("{}.work.*.{owner}", self.0)
    }

    pub(super) fn of_partition(&self, partition: u16) -> String {
        format!("{}.work.{partition:03}.>", self.0)
    }

    pub(super) fn subject(&self, key: &KeyRef) -> String {
        format!("{}.work.{:03}.{}", self.0, partition(key), key.owner)
    }

    /// The partition of a subject.
    pub(super) fn partition_of(&self, subject: &str) -> Option<u16> {
        subject.strip_prefix(&self.0)?.strip_prefix(".work.")?.split('.').next()?.parse().ok()
    }
}

pub(super) fn consumer(partition: u16) -> String {
    format!("part-{partition:03}")
}

/// The part of the queue that a key's work goes to.
pub(super) fn partition(key: &KeyRef) -> u16 {
    let mut hasher = blake3::Hasher::new_derive_key("fhe-serve 1 partition");
    hasher.update(&key.key.0);
    let hash = hasher.finalize();
    u16::from_le_bytes([hash.as_bytes()[0], hash.as_bytes()[1]]) % N_PARTITIONS
}

/// The folder of a key's pieces in the store.
pub(super) fn keys_folder(key: &KeyRef) -> String {
    format!("keys/{}/{}/{}", key.owner, key.program, key.key)
}

pub(super) fn input_name(job: &JobRef) -> String {
    format!("jobs/{}/{}.input", job.owner, job.id)
}

pub(super) fn result_name(job: &JobRef) -> String {
    format!("jobs/{}/{}.result", job.owner, job.id)
}

/// A message: what is to be done with whose keys.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Work {
    pub owner: Owner,
    pub program: ProgramId,
    pub key: KeyName,
    /// The job to evaluate; without one, the keys are to be checked.
    pub job: Option<JobId>,
}

impl Work {
    pub(super) fn check(key: &KeyRef) -> Self {
        Self { owner: key.owner.clone(), program: key.program, key: key.key, job: None }
    }

    pub(super) fn evaluate(key: &KeyRef, job: JobId) -> Self {
        Self { job: Some(job), ..Self::check(key) }
    }

    pub(super) fn key_ref(&self) -> KeyRef {
        KeyRef { owner: self.owner.clone(), program: self.program, key: self.key }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u8) -> KeyRef {
        KeyRef { owner: "a-b".parse().unwrap(), program: ProgramId([1; 32]), key: KeyName([number; 16]) }
    }

    #[test]
    fn a_subject_names_its_partition() {
        let names = Names::new("fhe").unwrap();
        for number in 0..=255 {
            let key = key(number);
            assert!(partition(&key) < N_PARTITIONS);
            assert_eq!(names.partition_of(&names.subject(&key)), Some(partition(&key)));
        }
        let used: std::collections::BTreeSet<u16> = (0..=255).map(|number| partition(&key(number))).collect();
        assert!(used.len() > 140, "keys are spread: {}", used.len());
        assert_eq!(names.partition_of("other.work.001.a"), None);
    }

    #[test]
    fn names_that_are_none_are_refused() {
        for bad in ["", "a.b", "A", "a b", "*", &"a".repeat(33)] {
            assert!(Names::new(bad).is_err(), "{bad}");
        }
    }
}
