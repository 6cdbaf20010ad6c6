//! The back end in order: optimized graph, circuit, layouts, schedule, program.

mod error;
mod facts;
mod front;
mod memory;

use fhe_bytecode::params::LOG_N_RANGE;
use fhe_bytecode::{CheckedProgram, CostModel};
use fhec_ir::Verified;
use serde::Serialize;

use crate::cluster::{self, ClusterOptions, Clustering, Order};
use crate::emit::Labels;
use crate::layout::Placed;
use crate::lower;
use crate::schedule::{self, ChainError, Positions, Schedule, ScheduleError, Stats};
use front::Front;

pub use crate::schedule::given::ParamsChoice;
pub use error::BuildError;

/// Inputs made up where no calibration images are given.
pub const MADE_UP_INPUTS: usize = 8;

/// What the user asks of a build.
#[derive(Clone, Debug)]
pub struct BuildOptions {
    /// How channels share ciphertexts.
    pub layout: LayoutChoice,
    /// Multiplications per level.
    pub sublevels: u32,
    /// Bits between the largest result and the deviation of its error: the least, and what is tried first.
    pub precision: std::ops::RangeInclusive<f64>,
    /// Where the parameters come from.
    pub params: ParamsChoice,
    /// Ring degrees that may be used, as log2.
    pub log_n: std::ops::RangeInclusive<u32>,
    /// Accept a modulus beyond the security bound.
    pub insecure: bool,
    /// Bytes that an evaluation may take.
    pub memory: u64,
    /// Model inputs that values and errors are measured on.
    pub calibration: Vec<Vec<f64>>,
    /// Calibrated cost constants.
    pub costs: CostModel,
    /// Codebooks for the convolutions; only the order after all passes concerns a build.
    pub cluster: Option<ClusterOptions>,
}

impl Default for BuildOptions {
    fn default() -> Self {
        Self {
            layout: LayoutChoice::Packed,
            sublevels: 2,
            precision: 6.0..=9.0,
            params: ParamsChoice::Search,
            log_n: LOG_N_RANGE,
            insecure: false,
            memory: u64::MAX,
            calibration: Vec::new(),
            costs: CostModel::default(),
            cluster: None,
        }
    }
}

/// How channels share ciphertexts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum LayoutChoice {
    /// One channel per ciphertext (paper §5.1)
    Hw,
    /// Several channels per ciphertext
    Packed,
    /// Whichever is predicted to be faster within the memory
    Auto,
}

/// A prime that a level needs and that does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MissingPrime {
    /// The level.
    pub level: usize,
    /// Bits it needs.
    pub bits: f64,
}

/// A program with the stages it came from.
#[derive(Clone, Debug)]
pub struct Built {
    /// The circuit in slots.
    pub placed: Placed,
    /// Where everything is computed.
    pub positions: Positions,
    /// Sizes and gains of the values.
    pub stats: Stats,
    /// Parameters, scales and predictions.
    pub schedule: Schedule,
    /// The checked program.
    pub program: CheckedProgram,
    /// What clustering did, if it was asked for.
    pub clustering: Option<Clustering>,
    /// Why rescales do not follow the last multiplication and every l-th before it, if they do not.
    pub shifted_for: Option<MissingPrime>,
}

/// Compiles an optimized graph.
///
/// # Errors
/// When the graph does not fit the request; says why and by how much.
pub fn build(graph: Verified<'_>, options: &BuildOptions, labels: Labels) -> Result<Built, BuildError> {
    let (inputs, outputs) = (graph.inputs().len(), graph.outputs().len());
    if (inputs, outputs) != (1, 1) {
        return Err(BuildError::Arity { inputs, outputs });
    }
    let original = schedule::with_lifted_factors(lower::lower(graph));
    let mut circuit = original.clone();
    let clustering = options
        .cluster
        .filter(|options| options.order == Order::After)
        .map(|options| cluster::cluster(&mut circuit, options));
    if circuit.n_members > 1 && !circuit.merged {
        return Err(BuildError::NotMerged);
    }
    let positions = Positions::new(&circuit, options.sublevels.max(1));
    if positions.depth() == 0 || options.sublevels == 0 {
        return Err(BuildError::Empty { depth: positions.depth(), sublevels: options.sublevels });
    }
    let stats = if options.calibration.is_empty() {
        let shape = circuit.value(circuit.inputs()[0]).shape;
        let inputs = schedule::made_up_inputs(shape, &labels.preprocessing, MADE_UP_INPUTS);
        Stats::measure_typical(&circuit, &inputs)
    } else {
        Stats::measure(&circuit, &options.calibration)
    };
    let stats = stats.map_err(|overflow| BuildError::Overflow {
        layer: circuit.value(overflow.value).name.clone(),
        size: overflow.size,
    })?;
    if let Some(size) = stats.vanishing_result(&circuit) {
        return Err(BuildError::Vanish { size });
    }
    let mut shift = 0;
    let mut shifted_for = None;
    loop {
        let shifted = positions.shifted(shift);
        let clustering = clustering.as_ref().map(|clustering| (clustering, &original));
        let front = Front { circuit: &circuit, positions: &shifted, stats: &stats, options, clustering };
        shift += 1;
        match front.build_any(labels.clone()) {
            // Products at the end of a stretch square its weight scale; another level is the price of avoiding that.
            Err(BuildError::Schedule(ScheduleError::Chain(ChainError::PrimeTooLarge { level, bits })))
                if shift < options.sublevels =>
            {
                shifted_for.get_or_insert(MissingPrime { level, bits });
            }
            other => return other.map(|built| Built { shifted_for, ..built }),
        }
    }
}

impl Built {
    /// Levels beyond those that the multiplications fill, which are what `fhec levels` counts.
    #[must_use]
    pub fn extra_levels(&self) -> u32 {
        self.positions.n_levels() - self.positions.shifted(0).n_levels()
    }

    /// Predicted seconds on one core, plaintexts cached.
    fn seconds(&self) -> f64 {
        self.program.spec().prediction.seconds
    }
}
