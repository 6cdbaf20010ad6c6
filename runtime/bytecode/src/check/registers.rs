//! Which registers hold which tensors: whole runs, of one tensor or of several lanes, so nothing here takes longer for a
//! longer run.

use super::error::Fault;
use super::replay::Fact;
use crate::ids::CtRange;
use std::collections::BTreeMap;

/// More registers than any program may use.
const MAX_REGISTERS: u32 = 1 << 20;

/// The runs in use by their first register.
#[derive(Debug, Default)]
pub(super) struct Registers {
    runs: BTreeMap<u32, (u32, Fact)>,
}

impl Registers {
    /// The fact of a run that holds one whole tensor.
    pub(super) fn read(&self, range: CtRange) -> Result<Fact, Fault> {
        bounded(range)?;
        match self.runs.get(&range.first.0) {
            Some((len, fact)) if *len == range.len => Ok(*fact),
            _ => Err(Fault::NotATensor(range)),
        }
    }

    /// The fact of a run that a range lies in, and how many registers of it come before.
    pub(super) fn read_part(&self, range: CtRange) -> Result<(u32, Fact), Fault> {
        bounded(range)?;
        match self.runs.range(..=range.first.0).next_back() {
            Some((first, (len, fact))) if first + len >= range.first.0 + range.len => {
                Ok((range.first.0 - first, *fact))
            }
            _ => Err(Fault::NotATensor(range)),
        }
    }

    /// Puts a tensor into free registers.
    pub(super) fn define(&mut self, range: CtRange, fact: Fact) -> Result<(), Fault> {
        bounded(range)?;
        let end = range.first.0 + range.len;
        // Only the last run that begins before the end can reach into this one.
        let before = self.runs.range(..end).next_back();
        if before.is_some_and(|(first, (len, _))| first + len > range.first.0) {
            return Err(Fault::InUse(range));
        }
        self.runs.insert(range.first.0, (range.len, fact));
        Ok(())
    }

    /// Ends the life of a tensor.
    pub(super) fn free(&mut self, range: CtRange) -> Result<(), Fault> {
        self.read(range)?;
        self.runs.remove(&range.first.0);
        Ok(())
    }

    /// The first register in use, and how many more there are.
    pub(super) fn leaked(&self) -> Option<(u32, u64)> {
        let first = *self.runs.keys().next()?;
        Some((first, self.runs.values().map(|(len, _)| u64::from(*len)).sum::<u64>() - 1))
    }
}

/// A run that is not empty and within the limit.
pub(super) fn bounded(range: CtRange) -> Result<(), Fault> {
    let end = range.first.0.checked_add(range.len);
    let ok = range.len > 0 && end.is_some_and(|end| end <= MAX_REGISTERS);
    if ok { Ok(()) } else { Err(Fault::Range(range)) }
}
