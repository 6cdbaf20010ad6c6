//! Both sides of an evaluation in one process, with keys from a seed.

use fhe_bytecode::CheckedProgram;
use fhe_client::{Answer, Outside};
use fhe_fixed_seeds::fixed_seeds;
use fhe_machine::{Options, Silent};
use fhe_runtime::Trial;
use fhe_secret::SeedSource;

/// Memory of an evaluation, in bytes.
const MEMORY: u64 = 4 << 30;

/// A program with keys.
pub(crate) struct Encrypted<'p> {
    program: &'p CheckedProgram,
    trial: Trial<'p>,
    seeds: SeedSource,
}

/// What a client gets to see.
pub(crate) struct Scores {
    pub(crate) numbers: Vec<f64>,
    /// Somebody said so: the input has numbers that the program was not calibrated on, or a score is doubtful.
    pub(crate) is_flagged: bool,
    /// The best class, where the answer says that it is.
    pub(crate) class: Option<usize>,
}

impl<'p> Encrypted<'p> {
    pub(crate) fn new(program: &'p CheckedProgram, seed: u64, n_evaluations: usize) -> Self {
        let mut seeds = fixed_seeds(seed);
        let trial = Trial::new(program, Options { memory: MEMORY, n_evaluations }, &mut seeds).unwrap();
        Self { program, trial, seeds }
    }

    /// Encrypts, evaluates and decrypts.
    pub(crate) fn run(&mut self, input: &[f64]) -> Scores {
        let numbers = self.trial.run(input, &mut self.seeds, &Silent).unwrap().decrypted;
        let interface = self.trial.interface();
        let answer = Answer::new(interface, &numbers);
        let is_flagged = Outside::of(interface, input).is_some() || !answer.doubts.is_empty();
        Scores { numbers, is_flagged, class: (!answer.is_undecided).then_some(answer.class) }
    }

    /// The largest error that the program predicts.
    pub(crate) fn bound(&self) -> f64 {
        self.program.spec().prediction.max_abs_error
    }
}
