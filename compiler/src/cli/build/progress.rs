//! A compilation as a bar: what it is at, and how much is left.

use fhe_diagnostics::Bar;

use super::super::Outcome;
use super::super::output::print;
use crate::lower::Circuit;
use crate::{Observer, Stage};

/// Shows what a compilation is at; hidden when nobody looks.
pub(in crate::cli) struct Progress {
    bar: Bar,
    prints_circuit: bool,
    /// What came of printing.
    pub(super) printed: Outcome,
}

impl Progress {
    pub(in crate::cli) fn new(quiet: bool, prints_circuit: bool) -> Self {
        Self { bar: Bar::new("reading", quiet), prints_circuit, printed: Ok(()) }
    }

    pub(in crate::cli) fn rehearse(&self) {
        self.bar.begin("evaluating once under throw-away keys");
    }

    pub(in crate::cli) fn finish(&self) {
        self.bar.finish();
    }
}

impl Observer for Progress {
    fn stage(&mut self, stage: Stage<'_>) {
        let title = match stage {
            Stage::Import { model } => format!("reading {model}"),
            Stage::Approximate => "fitting polynomials".to_owned(),
            Stage::Passes => "running the passes".to_owned(),
            Stage::Calibrate => "measuring values".to_owned(),
            Stage::Schedule { precision: None } => "scheduling".to_owned(),
            Stage::Schedule { precision: Some(bits) } => {
                format!("scheduling for {bits:.0} bits of precision")
            }
            Stage::Simulate => "simulating the noise of encryption".to_owned(),
        };
        self.bar.begin(&title);
    }

    fn fraction(&mut self, done: usize, of: usize) {
        self.bar.set(done as f64 / of.max(1) as f64, &format!("{done} of {of} inputs"));
    }

    fn lowered(&mut self, circuit: &Circuit) {
        if self.prints_circuit {
            self.printed = self.bar.suspend(|| print(&circuit.to_string()));
        }
    }
}
