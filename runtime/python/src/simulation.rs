//! A program over a data set, in the clear.

use fhe_bytecode::{CheckedProgram, Preprocessing};
use fhec::simulate::{Inputs, simulate};

use crate::fault::Fault;
use crate::long::Watch;
use crate::samples::Given;

/// Samples as they were given: a picture is normalized when it is asked for.
struct Set<'p> {
    samples: Given,
    truth: Option<Vec<usize>>,
    preprocessing: &'p Preprocessing,
}

impl Inputs for Set<'_> {
    fn len(&self) -> usize {
        self.samples.len()
    }

    fn input(&self, index: usize) -> Vec<f64> {
        self.samples
            .tensor(index, self.preprocessing)
            .expect("an index below the length, and channels of a checked program")
    }

    fn class(&self, index: usize) -> Option<usize> {
        self.truth.as_ref().map(|truth| truth[index]).or(self.samples.label(index))
    }
}

/// The figures of `fhec simulate --format json`.
pub(crate) fn simulation(
    program: &CheckedProgram,
    samples: Given,
    truth: Option<Vec<usize>>,
    seed: u64,
    watch: &Watch,
) -> Result<serde_json::Value, Fault> {
    let set = Set { samples, truth, preprocessing: &program.spec().input.preprocessing };
    let mut progress = |done: usize, of: usize| {
        watch.tell(Some(done as f64 / of.max(1) as f64), format!("{done} of {of} samples"));
    };
    let simulation =
        simulate(program, &set, seed, &mut progress).map_err(|error| Fault::bug(error.to_string()))?;
    serde_json::to_value(&simulation).map_err(|error| Fault::bug(error.to_string()))
}
