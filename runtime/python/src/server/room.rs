//! How a server divides its memory.

use fhe_bytecode::CheckedProgram;
use fhe_host::{memory, show_bytes};
use fhe_machine::VmError;
use pyo3::prelude::*;

use crate::fault::{Class, Fault};
use crate::sizes;

/// Evaluations that plaintexts are kept for.
pub(super) const MANY: usize = 1000;

/// Bytes of a server, and what they are for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    /// For everything together.
    budget: u64,
    /// Of one evaluation.
    working: u64,
    /// Of all plaintexts that are kept.
    pub(super) plaintexts: u64,
}

/// A number of bytes from the user, or what the machine has to spare.
pub(super) fn asked(memory: Option<&Bound<'_, PyAny>>) -> PyResult<u64> {
    let asked = memory.map(sizes::parse).transpose()?;
    Ok(memory::budget(asked, rayon::current_num_threads()))
}

impl Room {
    /// Divides `budget`: keys of `clients` clients and one evaluation come first, plaintexts get the rest.
    pub(super) fn new(program: &CheckedProgram, budget: u64, clients: usize) -> Result<Self, Fault> {
        let keys = program.key_bytes().saturating_mul(clients.max(1) as u64);
        let working = program.peak_bytes();
        let needed = keys.saturating_add(working);
        match budget.checked_sub(needed) {
            Some(plaintexts) => Ok(Self { budget, working, plaintexts }),
            None => Err(VmError::TooLittleMemory { needed, keys, working, budget }.into()),
        }
    }

    /// Refuses keys that do not fit beside those that are here.
    pub(super) fn check(&self, held: u64, keys: u64) -> Result<(), Fault> {
        let left = self.budget.saturating_sub(self.working + self.plaintexts);
        if held.saturating_add(keys) <= left {
            return Ok(());
        }
        let what = format!(
            "keys of {} do not fit: {} of {} for keys are taken",
            show_bytes(keys),
            show_bytes(held),
            show_bytes(left)
        );
        Err(Fault::new(Class::Resource, "memory", what).with_remedy(
            "forget a client with remove_keys, or make the server with more memory or for more clients",
        ))
    }
}
