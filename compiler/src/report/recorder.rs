//! Keeps the graph on its way through a compilation, for the page.

use fhec_ir::Graph;
use fhec_passes::{Pass, PassError, PassRun};

use super::stages::Stages;
use crate::import::Imported;
use crate::levels::{LevelsOptions, last_row, partial_rows};
use crate::lower::Circuit;
use crate::{Observer, Stage};

/// Records the passes of a compilation, and tells another observer what it is told.
pub struct Recorder<O> {
    inner: O,
    stages: Stages,
    failed: Option<PassError>,
}

impl<O: Observer> Recorder<O> {
    /// Records for `inner`.
    pub fn new(inner: O) -> Self {
        Self { inner, stages: Stages::default(), failed: None }
    }

    /// What was recorded.
    ///
    /// # Errors
    /// If a configuration of the passes failed that only the page asks for.
    pub fn finish(self) -> Result<Stages, PassError> {
        match self.failed {
            Some(error) => Err(error),
            None => Ok(self.stages),
        }
    }
}

impl<O: Observer> Observer for Recorder<O> {
    fn stage(&mut self, stage: Stage<'_>) {
        self.inner.stage(stage);
    }

    fn fraction(&mut self, done: usize, of: usize) {
        self.inner.fraction(done, of);
    }

    fn imported(&mut self, model: &Imported) {
        self.inner.imported(model);
        self.stages = Stages::imported(&model.graph);
        match partial_rows(&model.graph, &LevelsOptions::default()) {
            Ok(rows) => self.stages.configurations = rows,
            Err(error) => self.failed = Some(error),
        }
    }

    fn passed(&mut self, pass: &dyn Pass, run: &PassRun, graph: &Graph) {
        self.inner.passed(pass, run, graph);
        self.stages.push(run, pass.summary(), graph);
    }

    fn optimized(&mut self, graph: &Graph) {
        self.inner.optimized(graph);
        self.stages.configurations.push(last_row(graph));
    }

    fn lowered(&mut self, circuit: &Circuit) {
        self.inner.lowered(circuit);
    }
}
