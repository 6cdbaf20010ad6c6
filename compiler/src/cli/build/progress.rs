//! A compilation as a line that turns and counts.

use indicatif::ProgressBar;

use super::super::output::spinner;
use crate::{Observer, Stage};

/// Shows what a compilation is at; hidden when nobody looks.
pub(in crate::cli) struct Progress {
    spinner: ProgressBar,
    stage: String,
}

impl Progress {
    pub(in crate::cli) fn new(quiet: bool) -> Self {
        Self { spinner: spinner(quiet), stage: String::new() }
    }

    pub(in crate::cli) fn finish(&self) {
        self.spinner.finish_and_clear();
    }
}

impl Observer for Progress {
    fn stage(&mut self, stage: Stage<'_>) {
        self.stage = match stage {
            Stage::Import { model } => format!("reading {model}"),
            Stage::Passes => "running the passes".to_owned(),
            Stage::Calibrate => "measuring values".to_owned(),
            Stage::Schedule { precision: None } => "scheduling".to_owned(),
            Stage::Schedule { precision: Some(bits) } => {
                format!("scheduling for {bits:.0} bits of precision")
            }
            Stage::Simulate => "simulating the noise of encryption".to_owned(),
        };
        self.spinner.set_message(self.stage.clone());
    }

    fn fraction(&mut self, done: usize, of: usize) {
        self.spinner.set_message(format!("{}: {done} of {of} inputs", self.stage));
    }
}
