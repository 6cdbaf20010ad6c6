//! Ciphertext registers, addressed in runs; every sample of a batch has its own.

use fhe_bytecode::CtRange;

use fhe_ckks::{Ciphertext, CkksError};

const UNDEFINED: CkksError = CkksError::Plan("a register is not defined");
const LENGTH: CkksError = CkksError::Plan("a result has another length than its registers");

/// The registers of one evaluation; grows as needed. Values of a run are those of the first sample, then those of the next.
#[derive(Debug)]
pub(crate) struct RegisterFile {
    samples: Vec<Vec<Option<Ciphertext>>>,
}

impl RegisterFile {
    /// Empty registers for so many samples.
    pub(crate) fn new(n_samples: usize) -> Self {
        Self { samples: (0..n_samples).map(|_| Vec::new()).collect() }
    }

    /// Defines the registers of a run.
    pub(crate) fn put(&mut self, run: CtRange, values: Vec<Ciphertext>) -> Result<(), CkksError> {
        if values.len() != run.len() * self.samples.len() {
            return Err(LENGTH);
        }
        let mut values = values.into_iter();
        for registers in &mut self.samples {
            for (id, value) in run.iter().zip(values.by_ref().take(run.len())) {
                if registers.len() <= id.index() {
                    registers.resize_with(id.index() + 1, || None);
                }
                registers[id.index()] = Some(value);
            }
        }
        Ok(())
    }

    /// Frees the registers of a run and gives what they held.
    pub(crate) fn take(&mut self, run: CtRange) -> Result<Vec<Ciphertext>, CkksError> {
        let all = self.samples.iter_mut().flat_map(|registers| {
            let mut take = |id: fhe_bytecode::CtId| registers.get_mut(id.index())?.take();
            run.iter().map(|id| take(id).ok_or(UNDEFINED)).collect::<Vec<_>>()
        });
        all.collect()
    }

    /// What the registers of a run hold.
    pub(crate) fn run(&self, run: CtRange) -> Result<Vec<&Ciphertext>, CkksError> {
        let all = self.samples.iter().flat_map(|registers| {
            run.iter().map(|id| registers.get(id.index()).and_then(Option::as_ref).ok_or(UNDEFINED))
        });
        all.collect()
    }

    /// Lends the values of several runs as one slice for each lane of each sample; only a register named twice is copied.
    pub(crate) fn with_lanes<T>(
        &mut self,
        runs: &[CtRange],
        lanes: usize,
        work: impl FnOnce(&[&[Ciphertext]]) -> Result<T, CkksError>,
    ) -> Result<T, CkksError> {
        let part = |run: &CtRange, lane: usize| {
            let each = run.len() / lanes;
            run.iter().skip(lane * each).take(each)
        };
        // One lane after the other: in each a part of every run.
        let ids: Vec<usize> = (0..lanes)
            .flat_map(|lane| runs.iter().flat_map(move |run| part(run, lane)))
            .map(|id| id.index())
            .collect();
        let mut lent: Vec<Vec<Ciphertext>> = Vec::with_capacity(self.samples.len());
        for registers in &mut self.samples {
            let mut values: Vec<Ciphertext> = Vec::with_capacity(ids.len());
            for (position, &id) in ids.iter().enumerate() {
                let value = match ids[..position].iter().position(|&earlier| earlier == id) {
                    Some(earlier) => values[earlier].clone(),
                    None => registers.get_mut(id).and_then(Option::take).ok_or(UNDEFINED)?,
                };
                values.push(value);
            }
            lent.push(values);
        }
        let each = (ids.len() / lanes).max(1);
        let slices: Vec<&[Ciphertext]> = lent.iter().flat_map(|values| values.chunks(each)).collect();
        let result = work(&slices);
        for (registers, values) in self.samples.iter_mut().zip(lent) {
            for (&id, value) in ids.iter().zip(values) {
                registers[id] = Some(value);
            }
        }
        result
    }
}
