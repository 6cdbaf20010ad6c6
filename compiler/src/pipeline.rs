//! The back end in order: optimized graph, circuit, layouts, schedule, program.

mod error;
mod facts;
mod front;
mod memory;

use fhe_bytecode::{CheckedProgram, CostModel};
use fhec_ir::Verified;
use serde::Serialize;

use crate::cluster::{self, ClusterOptions, Clustering, Order};
use crate::emit::Labels;
use crate::layout::Placed;
use crate::lower::{self, Circuit};
use crate::schedule::{self, ChainError, Positions, Schedule, ScheduleError, Stats};
use crate::simulate::Inputs;
use front::Front;

pub use crate::schedule::given::ParamsChoice;
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
    /// Accept a modulus beyond the security bound.
    pub(crate) insecure: bool,
    /// Bytes that an evaluation may take.
    pub(crate) memory: u64,
    /// Calibrated cost constants.
    pub(crate) costs: CostModel,
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

/// What the values of a circuit are measured on.
#[derive(Clone, Copy)]
pub(crate) enum Measured<'a> {
    /// Inputs that nobody vouches for: those that lead far away from the others do not count.
    MadeUp(&'a [Vec<f64>]),
    /// The user's inputs: every one counts.
    Real {
        /// Some of them, for what is a mean.
        probes: &'a [Vec<f64>],
        /// All of them, for what is a maximum.
        all: &'a dyn Inputs,
    },
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

/// A circuit with the sizes of its values: what every schedule of it starts from.
#[derive(Clone, Debug)]
pub(crate) struct Prepared {
    /// The circuit with the weights of the graph.
    original: Circuit,
    /// The circuit that is built, whose weights may be clustered.
    circuit: Circuit,
    clustering: Option<Clustering>,
    positions: Positions,
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
        let original = schedule::with_lifted_factors(lower::lower(graph));
        let mut circuit = original.clone();
        let clustering = cluster
            .filter(|options| options.order == Order::After)
            .map(|options| cluster::cluster(&mut circuit, options));
        if circuit.n_members > 1 && !circuit.merged {
            return Err(BuildError::NotMerged);
        }
        let positions = Positions::new(&circuit, sublevels.max(1));
        if positions.depth() == 0 || sublevels == 0 {
            return Err(BuildError::Empty { depth: positions.depth(), sublevels });
        }
        let stats = match measured {
            Measured::MadeUp(inputs) => Stats::measure_typical(&circuit, inputs),
            Measured::Real { probes, all } => {
                Stats::measure(&circuit, probes).and_then(|stats| stats.widened(&circuit, all, progress))
            }
        };
        let stats = stats.map_err(|overflow| BuildError::Overflow {
            layer: circuit.value(overflow.value).name.clone(),
            size: overflow.size,
        })?;
        if let Some(size) = stats.vanishing_result(&circuit) {
            return Err(BuildError::Vanish { size });
        }
        Ok(Self { original, circuit, clustering, positions, stats })
    }

    /// Places, schedules and emits the circuit.
    ///
    /// # Errors
    /// When it does not fit the request; says why and by how much.
    pub(crate) fn build(&self, options: &BuildOptions, labels: Labels) -> Result<Built, BuildError> {
        let mut shift = 0;
        let mut shifted_for = None;
        loop {
            let shifted = self.positions.shifted(shift);
            let clustering = self.clustering.as_ref().map(|clustering| (clustering, &self.original));
            let (circuit, stats) = (&self.circuit, &self.stats);
            let front = Front { circuit, positions: &shifted, stats, options, clustering };
            shift += 1;
            match front.build_any(labels.clone()) {
                // Products at the end of a stretch square its weight scale; another level is the price of avoiding that.
                Err(BuildError::Schedule(ScheduleError::Chain(ChainError::PrimeTooLarge {
                    level,
                    bits,
                }))) if shift < self.positions.sublevels() => {
                    shifted_for.get_or_insert(MissingPrime { level, bits });
                }
                other => return other.map(|built| Built { shifted_for, ..built }),
            }
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
