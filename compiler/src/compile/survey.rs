//! What simulated noise does to the inputs that a program was calibrated on.
//!
//! A class whose score is far enough ahead stays what it is: such inputs are counted, and only some of them simulated.
//! The others are all simulated, those with the smallest lead first, so that a program that is not good enough is found
//! out early.

use fhe_bytecode::clear::InputError;
use fhe_bytecode::{CheckedProgram, Classes};
use serde::Serialize;

use super::calibration::CalibrationSet;
use crate::simulate::{Inputs, Simulator, Summary, Until};

/// Seed of the noise.
const NOISE_SEED: u64 = 1;
/// Inputs that are simulated whatever their lead.
const SPREAD: usize = 256;
/// Evaluations with noise, where inputs are few.
const EVALUATIONS: usize = 64;
/// Slots with noise that more evaluations than inputs may have.
const NOISY_SLOTS: usize = 10_000_000;
/// Error bounds by which a class has to be ahead to be safe: the difference of two errors has 1.4 times the deviation of one, so
/// this is more than six of its own.
const SAFE_LEAD: f64 = 1.5;
/// Bits below the modulus with which no value of a calibration input comes near it.
const CLEAR_OF_THE_EDGE: f64 = 1.0;

/// What simulated noise does to the inputs that a program was calibrated on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SelfCheck {
    /// Whether the inputs were given, not made up.
    pub is_real: bool,
    /// All inputs; those that were not simulated have classes that are ahead by more than one and a half error bounds.
    pub inputs: usize,
    /// Inputs whose best class is ahead by less than twice the error bound, so that an error may decide it.
    pub undecided: usize,
    /// The outcome for those that were simulated.
    #[serde(flatten)]
    pub summary: Summary,
}

/// The calibration inputs with their results.
pub(super) struct Survey<'a> {
    pub(super) calibration: &'a CalibrationSet,
    results: &'a [Vec<f64>],
    /// How far the best class is ahead of the next.
    leads: Vec<f64>,
}

impl<'a> Survey<'a> {
    pub(super) fn new(calibration: &'a CalibrationSet, results: &'a [Vec<f64>], classes: &Classes) -> Self {
        let leads = results.iter().map(|results| classes.lead(results)).collect();
        Self { calibration, results, leads }
    }

    /// The inputs that noise might change something for in a program that has so much headroom.
    pub(super) fn chosen(&self, program: &CheckedProgram, headroom: f64) -> Chosen<'_> {
        let bound = program.spec().prediction.max_abs_error;
        Chosen { of: self, indices: self.doubtful(bound, headroom) }
    }

    /// Simulates what noise might change, to the end or until it does change a class.
    pub(super) fn run(
        &self,
        simulator: &Simulator<'_>,
        until: Until,
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<SelfCheck, InputError> {
        let bound = simulator.bound();
        let summary = simulator.summarized(until, progress)?;
        let (is_real, inputs) = (self.calibration.is_real(), self.calibration.len());
        Ok(SelfCheck { is_real, inputs, undecided: self.undecided(bound), summary })
    }

    /// Inputs whose best class an error within a bound may decide.
    pub(super) fn undecided(&self, bound: f64) -> usize {
        self.leads.iter().filter(|lead| **lead < 2.0 * bound).count()
    }

    /// The inputs to simulate, the most doubtful first.
    fn doubtful(&self, bound: f64, headroom: f64) -> Vec<usize> {
        let n = self.calibration.len();
        let mut all: Vec<usize> = (0..n).collect();
        // What is no number is no lead either.
        let is_safe = |i: usize| self.leads[i] > SAFE_LEAD * bound;
        let is_spread = |i: usize| n <= SPREAD || i * SPREAD / n != (i + 1) * SPREAD / n;
        if headroom >= CLEAR_OF_THE_EDGE {
            all.retain(|&i| is_spread(i) || !is_safe(i));
        }
        all.sort_by(|&a, &b| self.leads[a].total_cmp(&self.leads[b]));
        all
    }
}

/// How often noise is drawn for each of so many inputs.
fn draws(program: &CheckedProgram, n_inputs: usize) -> usize {
    let results = program.steps().filter_map(|step| step.op().dst().map(|dst| dst.len())).sum::<usize>();
    let affordable = NOISY_SLOTS / (results * program.params().slots() * n_inputs).max(1);
    EVALUATIONS.div_ceil(n_inputs.max(1)).min(affordable).max(1)
}

/// Some of the inputs.
pub(super) struct Chosen<'a> {
    of: &'a Survey<'a>,
    indices: Vec<usize>,
}

impl Chosen<'_> {
    /// A program made ready for these inputs.
    pub(super) fn simulator<'b>(&'b self, program: &'b CheckedProgram) -> Result<Simulator<'b>, InputError> {
        Ok(Simulator::new(program, self, NOISE_SEED)?.with_draws(draws(program, self.len())))
    }
}

impl Inputs for Chosen<'_> {
    fn len(&self) -> usize {
        self.indices.len()
    }

    fn input(&self, index: usize) -> Vec<f64> {
        self.of.calibration.input(self.indices[index])
    }

    fn results(&self, index: usize) -> Option<&[f64]> {
        Some(&self.of.results[self.indices[index]])
    }
}
