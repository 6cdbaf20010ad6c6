//! Why a graph cannot be built.

use fhe_bytecode::{CheckErrors, LayoutError, LinearError};
use fhe_host::show_bytes;

use crate::search::ScheduleError;
use crate::stages::StageErrors;

/// Why a graph cannot be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// A program has one encrypted input and one output.
    #[error("the model has {inputs} inputs and {outputs} outputs, a program has one of each")]
    Arity {
        /// Inputs of the model.
        inputs: usize,
        /// Outputs of the model.
        outputs: usize,
    },
    /// The members of an ensemble cannot be averaged.
    #[error("an ensemble needs a dense last layer to average its members in")]
    NotMerged,
    /// No multiplication at all, or no sublevel.
    #[error("{}", empty(*depth, *sublevels))]
    Empty {
        /// Multiplications on the longest path.
        depth: u32,
        /// Multiplications per level asked for.
        sublevels: u32,
    },
    /// Layouts do not exist.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// Moduli or scales do not exist.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
    /// There is no schedule for so many multiplications one after the other.
    #[error("{source}; {depth} multiplications follow each other, {own} of them in layer {layer} alone")]
    Deep {
        /// Why.
        #[source]
        source: ScheduleError,
        /// Multiplications on the longest path.
        depth: u32,
        /// The layer with most of them.
        layer: String,
        /// How many it has.
        own: u32,
    },
    /// A map does not fit its layouts: a bug.
    #[error("a linear map does not fit its layouts")]
    Linear(#[from] LinearError),
    /// Numbers grow beyond all bounds.
    #[error("values overflow at layer {layer}: numbers of {size:.1e}; the activations leave their range")]
    Overflow {
        /// The first layer whose numbers are too large.
        layer: String,
        /// Its largest number.
        size: f64,
    },
    /// Results are too small to be told from nothing.
    #[error("values vanish: {}; the last layer is {layer}", vanished(*size))]
    Vanish {
        /// The layer of the results.
        layer: String,
        /// The largest number of the results.
        size: f64,
    },
    /// Keys and ciphertexts alone take too much.
    #[error(
        "an evaluation needs {}: {} for keys and {} for ciphertexts and sums, {} more than the {} allowed; layer {layer} needs most: {}",
        show_bytes(*keys + *working), show_bytes(*keys), show_bytes(*working), show_bytes((*keys + *working).saturating_sub(*budget)), show_bytes(*budget), show_bytes(*layer_bytes)
    )]
    Memory {
        /// Bytes of the evaluation keys.
        keys: u64,
        /// Bytes of ciphertexts and intermediate sums.
        working: u64,
        /// Bytes allowed.
        budget: u64,
        /// The layer that needs most.
        layer: String,
        /// Bytes of that layer's keys, ciphertexts and sums.
        layer_bytes: u64,
    },
    /// The judge of a stage refused it: a bug.
    #[error(transparent)]
    Stage(#[from] StageErrors),
    /// The checker refused the program: a bug.
    #[error("the emitted program is faulty")]
    Check(#[from] CheckErrors),
}

impl BuildError {
    /// Whether less may have a schedule: fewer multiplications, less precision, another ring.
    pub(crate) fn is_schedule(&self) -> bool {
        matches!(self, Self::Schedule(_) | Self::Deep { .. })
    }

    /// The one that needs less memory, if memory is what both are short of; else the first.
    pub(crate) fn smaller(self, other: Self) -> Self {
        match (&self, &other) {
            (Self::Memory { keys: a, working: b, .. }, Self::Memory { keys: c, working: d, .. })
                if c + d < a + b =>
            {
                other
            }
            _ => self,
        }
    }
}

/// Words for a program without multiplications.
fn empty(depth: u32, sublevels: u32) -> String {
    match depth {
        0 => "nothing is left to evaluate on encrypted data: no layer with weights lies between the model's input and what clients \
              compute themselves"
            .to_owned(),
        _ => format!("nothing to schedule: depth {depth} with {sublevels} sublevels"),
    }
}

/// Words for results that are too small.
fn vanished(size: f64) -> String {
    match size {
        0.0 => "every score is zero on every input tried".to_owned(),
        _ => format!("the largest score is {size:.1e}, too small for any scale"),
    }
}
