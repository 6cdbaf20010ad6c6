//! Ciphertext registers, addressed in runs.

use fhe_bytecode::CtRange;

use fhe_ckks::{Ciphertext, CkksError};

const UNDEFINED: CkksError = CkksError::Plan("a register is not defined");

/// The registers of one evaluation; grows as needed.
#[derive(Debug, Default)]
pub(crate) struct RegisterFile {
    registers: Vec<Option<Ciphertext>>,
}

impl RegisterFile {
    /// Defines the registers of a run.
    pub(crate) fn put(&mut self, run: CtRange, values: Vec<Ciphertext>) -> Result<(), CkksError> {
        if values.len() != run.len() {
            return Err(CkksError::Plan("a result has another length than its registers"));
        }
        for (id, value) in run.iter().zip(values) {
            if self.registers.len() <= id.index() {
                self.registers.resize_with(id.index() + 1, || None);
            }
            self.registers[id.index()] = Some(value);
        }
        Ok(())
    }

    /// Frees the registers of a run and gives what they held.
    pub(crate) fn take(&mut self, run: CtRange) -> Result<Vec<Ciphertext>, CkksError> {
        let mut take = |id: fhe_bytecode::CtId| self.registers.get_mut(id.index())?.take();
        run.iter().map(|id| take(id).ok_or(UNDEFINED)).collect()
    }

    /// What the registers of a run hold.
    pub(crate) fn run(&self, run: CtRange) -> Result<Vec<&Ciphertext>, CkksError> {
        run.iter()
            .map(|id| self.registers.get(id.index()).and_then(Option::as_ref).ok_or(UNDEFINED))
            .collect()
    }

    /// Lends the values of several runs as one slice; only a register named twice is copied.
    pub(crate) fn with_runs<T>(
        &mut self,
        runs: &[CtRange],
        work: impl FnOnce(&[Ciphertext]) -> Result<T, CkksError>,
    ) -> Result<T, CkksError> {
        let ids: Vec<usize> = runs.iter().flat_map(|run| run.iter()).map(|id| id.index()).collect();
        let mut values: Vec<Ciphertext> = Vec::with_capacity(ids.len());
        for (position, &id) in ids.iter().enumerate() {
            let value = match ids[..position].iter().position(|&earlier| earlier == id) {
                Some(earlier) => values[earlier].clone(),
                None => self.registers.get_mut(id).and_then(Option::take).ok_or(UNDEFINED)?,
            };
            values.push(value);
        }
        let result = work(&values);
        for (id, value) in ids.into_iter().zip(values) {
            self.registers[id] = Some(value);
        }
        result
    }
}
