//! The back end in order: optimized graph, circuit, layouts, schedule, program.

mod error;

use std::sync::Arc;

use fhe_bytecode::{CheckedProgram, CostModel};
use fhec_ir::Verified;
use indexmap::IndexMap;

use crate::cluster::{self, ClusterOptions, Clustering, Order};
use crate::emit::Labels;
use crate::lower::{self, Circuit};
use crate::measure::{Stats, centered};
use crate::report::program_text;
use crate::schedule::{Schedule, Scheduled};
use crate::search::{self, Front, ScheduleError};
use crate::simulate::Inputs;
use crate::stages::StageKind;
use crate::timed::{self, Positions, Timed};

pub use crate::search::{ParamsChoice, RingChoice, Segmentation, SpecialChoice, TowerChoice};
pub use error::BuildError;

/// Inputs made up where no calibration images are given.
pub const MADE_UP_INPUTS: usize = 8;

/// What is asked of the back end.
#[derive(Clone, Debug)]
pub(crate) struct BuildOptions {
    /// How channels share ciphertexts.
    pub(crate) layout: LayoutChoice,
    /// Bits between the largest result and the deviation of its error: the least, and what is tried first.
    pub(crate) precision: std::ops::RangeInclusive<f64>,
    /// Where the parameters come from.
    pub(crate) params: ParamsChoice,
    /// Ring degrees that may be used, as log2.
    pub(crate) log_n: std::ops::RangeInclusive<u32>,
    /// Bits between every value and half the modulus it is in; without a wish at least 1.5, and 3 where that costs nothing.
    pub(crate) headroom: Option<f64>,
    /// How towers make up the moduli of the levels.
    pub(crate) towers: TowerChoice,
    /// What lower levels may have of their own.
    pub(crate) segmentation: Segmentation,
    /// Accept a modulus beyond the security bound.
    pub(crate) insecure: bool,
    /// Bytes that an evaluation may take.
    pub(crate) memory: u64,
    /// Calibrated cost constants.
    pub(crate) costs: CostModel,
    /// Ciphertexts that the input may be the sum of.
    pub(crate) n_encryptions: usize,
    /// Inputs that are evaluated together.
    pub(crate) batch: usize,
    /// Those of them that may share a ciphertext.
    pub(crate) shared: usize,
}

/// How channels share ciphertexts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayoutChoice {
    /// One channel per ciphertext (paper §5.1).
    Hw,
    /// Several channels per ciphertext.
    Packed,
    /// Whichever is predicted to be faster within the memory.
    Auto,
}

/// What the values of a circuit are measured on.
#[derive(Clone, Copy)]
pub(crate) struct Measured<'a> {
    /// Some inputs, for what is a mean.
    pub(crate) probes: &'a [Vec<f64>],
    /// All of them, for what is a maximum.
    pub(crate) all: &'a dyn Inputs,
    /// Numbers that inputs may have, whether some of these have them or not.
    pub(crate) range: Option<[f64; 2]>,
}

/// A program with the stages it came from.
#[derive(Clone, Debug)]
pub struct Built {
    /// The circuit with its times, layouts and schedule.
    pub scheduled: Scheduled,
    /// Sizes and gains of the values.
    pub stats: Stats,
    /// The checked program.
    pub program: CheckedProgram,
    /// What clustering did, if it was asked for.
    pub clustering: Option<Clustering>,
}

/// A circuit with the sizes of its values: what every schedule of it starts from.
#[derive(Clone, Debug)]
pub(crate) struct Prepared {
    /// The circuit with the weights of the graph.
    original: Arc<Circuit>,
    /// The circuit that is built, whose weights may be clustered.
    timed: Timed,
    clustering: Option<Clustering>,
    stats: Stats,
}

impl Prepared {
    /// Lowers an optimized graph, clusters it if that comes after the passes, and measures its values.
    ///
    /// # Errors
    /// When the graph is none that a program can compute, or its numbers leave all bounds.
    pub(crate) fn new(
        graph: Verified<'_>,
        sublevels: u32,
        cluster: Option<ClusterOptions>,
        measured: Measured<'_>,
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<Self, BuildError> {
        let (inputs, outputs) = (graph.inputs().len(), graph.outputs().len());
        if (inputs, outputs) != (1, 1) {
            return Err(BuildError::Arity { inputs, outputs });
        }
        let Measured { probes, all, range } = measured;
        let original = timed::with_lifted_factors(lower::lower(graph));
        let original = Arc::new(centered(original, probes));
        let mut circuit = Arc::clone(&original);
        let clustering = cluster
            .filter(|options| options.order == Order::After)
            .map(|options| cluster::cluster(Arc::make_mut(&mut circuit), options));
        circuit.judge()?;
        if circuit.n_members > 1 && !circuit.merged {
            return Err(BuildError::NotMerged);
        }
        let timed = Timed::new(Arc::clone(&circuit), sublevels.max(1));
        let depth = timed.positions().depth();
        if depth == 0 || sublevels == 0 {
            return Err(BuildError::Empty { depth, sublevels });
        }
        timed.judge()?;
        let at_hand = circuit.at_hand();
        let stats = Stats::measure(&at_hand, probes, all, range, progress);
        let stats = stats.map_err(|overflow| BuildError::Overflow {
            layer: circuit.value(overflow.value).name.clone(),
            size: overflow.size,
        })?;
        if let Some(size) = stats.vanishing_result() {
            let layer = circuit.outputs.first().map_or_else(String::new, |o| circuit.value(*o).name.clone());
            return Err(BuildError::Vanish { layer, size });
        }
        Ok(Self { original, timed, clustering, stats })
    }

    /// The circuit.
    pub(crate) fn circuit(&self) -> &Circuit {
        self.timed.circuit()
    }

    /// The results, input by input.
    pub(crate) fn results(&self) -> &[Vec<f64>] {
        &self.stats.results
    }

    /// Places, schedules and emits the circuit.
    ///
    /// # Errors
    /// When it does not fit the request; says why and by how much.
    pub(crate) fn build(&self, options: &BuildOptions, labels: Labels) -> Result<Built, BuildError> {
        let clustering = self.clustering.as_ref().map(|clustering| (clustering, &self.original));
        let Self { timed, stats, .. } = self;
        search::cheapest(Front { timed, stats, options, clustering }, &labels).map_err(|error| match error {
            BuildError::Schedule(source @ (ScheduleError::DoesNotFit { .. } | ScheduleError::Chain(_))) => {
                let (layer, own) = self.deepest_layer();
                BuildError::Deep { source, depth: timed.positions().depth(), layer, own }
            }
            other => other,
        })
    }

    /// The layer with the most multiplications in a row, and how many these are.
    fn deepest_layer(&self) -> (String, u32) {
        let mut layers: IndexMap<&str, (u32, u32)> = IndexMap::new();
        for id in self.circuit().ids() {
            let (value, end) = (self.circuit().value(id), self.timed.position(id));
            let sources = value.op.sources();
            let begin = sources.into_iter().map(|s| self.timed.position(s)).min().unwrap_or(end);
            let span = layers.entry(&value.name).or_insert((begin, end));
            *span = (span.0.min(begin), span.1.max(end));
        }
        let longest = layers.into_iter().map(|(name, (begin, end))| (name, end - begin));
        // The first of several.
        let longest = longest.reduce(|a, b| if b.1 > a.1 { b } else { a });
        longest.map_or_else(Default::default, |(name, own)| (name.to_owned(), own))
    }
}

impl Built {
    /// The circuit that the program computes.
    #[must_use]
    pub fn circuit(&self) -> &Circuit {
        self.scheduled.placed.circuit()
    }

    /// The text form of a stage.
    #[must_use]
    pub fn text(&self, stage: StageKind) -> String {
        let placed = &self.scheduled.placed;
        match stage {
            StageKind::Circuit => self.circuit().to_string(),
            StageKind::Timed => placed.timed.to_string(),
            StageKind::Placed => placed.to_string(),
            StageKind::Scheduled => self.scheduled.to_string(),
            StageKind::Program => program_text(&self.program),
        }
    }

    /// The multiplications of the circuit, in order.
    #[must_use]
    pub fn positions(&self) -> &Positions {
        self.scheduled.placed.timed.positions()
    }

    /// Parameters, scales and predictions.
    #[must_use]
    pub fn schedule(&self) -> &Schedule {
        &self.scheduled.schedule
    }

    /// The largest error that the program states.
    pub(crate) fn bound(&self) -> f64 {
        self.program.spec().prediction.max_abs_error
    }

    /// Predicted seconds on one core, plaintexts cached.
    pub(crate) fn seconds(&self) -> f64 {
        self.program.spec().prediction.seconds
    }
}
