//! What a rewrite is, what it may know, and how it fails.

use std::collections::BTreeMap;

use fhec_ir::{EvalError, Graph, ShapeError, VerifyErrors};

/// A rewrite of a tensor graph that keeps its function.
pub trait Pass {
    /// Kebab-case and unique: `--print-after`, timings and snapshot folders use it.
    fn name(&self) -> &'static str;

    /// One line for `--list-passes`.
    fn summary(&self) -> &'static str;

    /// Rewrites the graph.
    ///
    /// # Errors
    /// When the graph breaks an invariant the pass relies on.
    fn run(&self, graph: &mut Graph, cx: &mut PassCx) -> Result<Changed, PassError>;
}

/// Whether a pass changed the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changed {
    /// Something is different.
    Yes,
    /// The graph is as it was.
    No,
}

/// Options in, counters and log out. Passes read no environment, clock or file.
#[derive(Clone, Debug, Default)]
pub struct PassCx {
    /// Inputs of the model (each a list of numbers per graph input) from which value ranges are measured.
    pub calibration: Vec<Vec<Vec<f64>>>,
    /// Counters of the pass that runs now.
    counters: BTreeMap<String, u64>,
    log: Vec<String>,
    saturation: Option<Saturation>,
}

/// Why equality saturation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The rules found nothing new: the result is the best that they can reach.
    Saturated,
    /// After the most rounds: factors may not have travelled to their ends.
    RoundLimit,
    /// After the most e-nodes.
    NodeLimit,
}

impl Stop {
    /// The reason in a word, for reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Saturated => "saturated",
            Self::RoundLimit => "round-limit",
            Self::NodeLimit => "node-limit",
        }
    }
}

/// How equality saturation of a pass went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Saturation {
    /// Why it ended.
    pub stop: Stop,
    /// Rounds of all rules.
    pub rounds: usize,
    /// E-nodes at the end.
    pub n_nodes: usize,
}

/// What a pass reports besides the graph.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Named counts, by name.
    pub counters: BTreeMap<String, u64>,
    /// Remarks in order.
    pub log: Vec<String>,
    /// How equality saturation went, in a pass that has it.
    pub saturation: Option<Saturation>,
}

impl PassCx {
    /// A context with calibration inputs.
    #[must_use]
    pub fn with_calibration(calibration: Vec<Vec<Vec<f64>>>) -> Self {
        Self { calibration, ..Self::default() }
    }

    /// Adds to a counter.
    pub fn count(&mut self, name: &str, n: u64) {
        *self.counters.entry(name.to_owned()).or_default() += n;
    }

    /// Notes a remark.
    pub fn log(&mut self, line: String) {
        self.log.push(line);
    }

    /// Notes how equality saturation went.
    pub(crate) fn saturated(&mut self, saturation: Saturation) {
        self.log(format!("{} after {} rounds", saturation.stop.name(), saturation.rounds));
        self.saturation = Some(saturation);
    }

    /// What was counted and noted since the last call.
    pub(crate) fn take_report(&mut self) -> Report {
        Report {
            counters: std::mem::take(&mut self.counters),
            log: std::mem::take(&mut self.log),
            saturation: self.saturation.take(),
        }
    }
}

/// Why a pass, or the manager, gives up. All of these are bugs of ours or of the caller, never of the model.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PassError {
    /// The graph a pass left behind breaks an invariant.
    #[error("pass {pass} left a broken graph: {source}")]
    Verify {
        /// The pass.
        pass: &'static str,
        /// What is broken.
        source: VerifyErrors,
    },
    /// A new node does not fit its operands.
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// Calibration or comparison inputs do not fit the graph.
    #[error(transparent)]
    Eval(#[from] EvalError),
    /// Equality saturation stopped for a reason that depends on the machine.
    #[error("equality saturation of pass {pass} stopped before its limits")]
    SaturationStopped {
        /// The pass.
        pass: &'static str,
    },
    /// The graph computes something else after a pass.
    #[error("pass {pass} changed output {output} by {error:e} of its range")]
    Meaning {
        /// The pass.
        pass: &'static str,
        /// Which output.
        output: usize,
        /// Largest difference, relative to the range of the output.
        error: f64,
    },
    /// No pass has that name.
    #[error("there is no pass named {name}")]
    NoSuchPass {
        /// The name asked for.
        name: String,
    },
}
