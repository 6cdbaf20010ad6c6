//! Why there is no program: a code, and the facts that front ends put words and remedies to.

use fhe_input::InputErrorKind;
use fhec_ir::{EnsembleError, VerifyErrors};
use fhec_passes::PassError;

use crate::approximate::NoValue;
use crate::import::ImportError;
use crate::pipeline::BuildError;
use crate::search::ScheduleError;

/// Why a request does not lead to a program.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompileError {
    /// No model was given.
    #[error("there is no model to compile")]
    NoModel,
    /// A model cannot be read.
    #[error("{model}: {source}")]
    Import {
        /// Its name.
        model: String,
        /// Why.
        source: Box<ImportError>,
    },
    /// The models are no ensemble.
    #[error("these models are no ensemble: {0}")]
    Ensemble(#[from] EnsembleError),
    /// Mean or deviation for another number of channels.
    #[error("{given} numbers for the {what} of {channels} channels")]
    Preprocessing {
        /// What was given.
        what: Statistic,
        /// How many numbers.
        given: usize,
        /// Channels of the model.
        channels: usize,
    },
    /// Mean or deviation that no pixels have.
    #[error("{value} is no {what} of pixels")]
    Statistic {
        /// What was given.
        what: Statistic,
        /// The number.
        value: f64,
    },
    /// Names for another number of scores.
    #[error("{given} labels for {scores} scores")]
    Classes {
        /// How many names.
        given: usize,
        /// Scores of the model.
        scores: usize,
    },
    /// A ring that protects nothing, and nobody asked for one.
    #[error("ring degree 2^{log_n} protects nothing")]
    Toy {
        /// The ring degree, as log2.
        log_n: u32,
    },
    /// Calibration inputs cannot be used.
    #[error("{name}: {kind}")]
    Calibration {
        /// Name of the file.
        name: String,
        /// Why.
        kind: InputErrorKind,
    },
    /// There are no calibration inputs in what was given.
    #[error("there is no calibration input")]
    NoCalibration,
    /// Keys of another program do not serve.
    #[error("the keys of the other program do not serve: {what}")]
    Unlike {
        /// What is different.
        what: String,
    },
    /// A batch that nothing is placed for.
    #[error("a batch of {batch} inputs {what}")]
    Batch {
        /// Inputs of the batch.
        batch: usize,
        /// What is wrong with it.
        what: &'static str,
    },
    /// Functions of an ensemble's members would need one polynomial each.
    #[error("functions of an ensemble are not approximated")]
    ApproximateEnsemble,
    /// Functions cannot be fitted to numbers that nobody vouches for.
    #[error("there are no inputs to fit polynomials to")]
    ApproximateBlindly,
    /// A function has no value where it is used.
    #[error(transparent)]
    NoValue(#[from] NoValue),
    /// Noise is as large as the scores.
    #[error(
        "noise of encryption leaves nothing of the scores: simulated errors are up to {error:.1e} where scores are up to {score:.1e}; it is largest at layer {layer}"
    )]
    Drowned {
        /// The layer whose result has the least precision.
        layer: String,
        /// The largest error of a score in simulation.
        error: f64,
        /// The largest score.
        score: f64,
    },
    /// A pass failed: a bug.
    #[error(transparent)]
    Pass(#[from] PassError),
    /// The passes left a broken graph: a bug.
    #[error(transparent)]
    Verify(#[from] VerifyErrors),
    /// The program takes other inputs than its model: a bug.
    #[error(transparent)]
    Simulation(#[from] fhe_bytecode::clear::InputError),
    /// There is no program of the optimized graph.
    #[error(transparent)]
    Build(#[from] BuildError),
}

/// A number that pixels are normalized by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statistic {
    /// The mean.
    Mean,
    /// The deviation.
    Deviation,
}

impl std::fmt::Display for Statistic {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Mean => "mean",
            Self::Deviation => "deviation",
        })
    }
}

impl CompileError {
    /// Whether neither the model nor the request is to blame, but the compiler.
    #[must_use]
    pub fn is_bug(&self) -> bool {
        match self {
            Self::Pass(_) | Self::Verify(_) | Self::Simulation(_) => true,
            Self::Import { source, .. } => matches!(**source, ImportError::Verify(_)),
            Self::Build(error) => matches!(error, BuildError::Linear(_) | BuildError::Check(_)),
            Self::NoModel
            | Self::Ensemble(_)
            | Self::Preprocessing { .. }
            | Self::Statistic { .. }
            | Self::Classes { .. }
            | Self::Toy { .. }
            | Self::Unlike { .. }
            | Self::Batch { .. }
            | Self::ApproximateEnsemble
            | Self::ApproximateBlindly
            | Self::NoValue(_)
            | Self::Drowned { .. }
            | Self::Calibration { .. }
            | Self::NoCalibration => false,
        }
    }

    /// A short name that stays the same whatever the words are.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoModel => "no-model",
            Self::Import { source, .. } => match **source {
                ImportError::Io { .. } => "model-unreadable",
                ImportError::Malformed(_) => "model-malformed",
                ImportError::Refused(_) => "model-refused",
                ImportError::NoSuchOutput { .. } => "no-such-output",
                ImportError::Verify(_) => "import-bug",
            },
            Self::Ensemble(_) => "no-ensemble",
            Self::Preprocessing { .. } => "preprocessing-channels",
            Self::Statistic { .. } => "preprocessing-value",
            Self::Classes { .. } => "label-count",
            Self::Toy { .. } => "toy-ring",
            Self::Calibration { .. } => "calibration-unreadable",
            Self::NoCalibration => "no-calibration",
            Self::Unlike { .. } => "unlike",
            Self::Batch { .. } => "batch",
            Self::ApproximateEnsemble => "approximate-ensemble",
            Self::ApproximateBlindly => "approximate-blindly",
            Self::NoValue(_) => "no-value",
            Self::Drowned { .. } => "drowned",
            Self::Pass(_) => "pass-bug",
            Self::Verify(_) => "graph-bug",
            Self::Simulation(_) => "simulation-bug",
            Self::Build(error) => match error {
                BuildError::Arity { .. } => "arity",
                BuildError::NotMerged => "ensemble-not-merged",
                BuildError::Empty { .. } => "nothing-to-schedule",
                BuildError::Layout(_) => "no-layout",
                BuildError::Schedule(ScheduleError::NotInPaper { .. }) => "not-in-paper",
                BuildError::Schedule(_) | BuildError::Deep { .. } => "no-schedule",
                BuildError::Overflow { .. } => "overflow",
                BuildError::Vanish { .. } => "vanish",
                BuildError::Memory { .. } => "memory",
                BuildError::Linear(_) => "map-bug",
                BuildError::Stage(_) => "stage-bug",
                BuildError::Check(_) => "program-bug",
            },
        }
    }
}
