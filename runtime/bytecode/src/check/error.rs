//! What the checker reports.

use crate::ids::{CtRange, LayerId};
use crate::params::Level;
use crate::program::Interval;
use crate::rotation::Rotation;
use crate::scale::Scale;

/// Where an error is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Parameters, input or output description.
    Header,
    /// A layout.
    Layout(usize),
    /// Tensors and codebooks.
    Constants,
    /// A linear map.
    Map(usize),
    /// An instruction.
    Instruction(usize),
    /// The list of keys.
    Keys,
    /// After the last instruction.
    End,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Place::Header => write!(f, "header"),
            Place::Layout(i) => write!(f, "layout l{i}"),
            Place::Constants => write!(f, "constants"),
            Place::Map(i) => write!(f, "map m{i}"),
            Place::Instruction(i) => write!(f, "instruction {i}"),
            Place::Keys => write!(f, "keys"),
            Place::End => write!(f, "end"),
        }
    }
}

/// One thing that does not hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {message}")]
pub struct CheckError {
    /// Where.
    pub place: Place,
    /// What.
    pub message: String,
}

impl CheckError {
    pub(super) fn at(place: Place, error: impl std::fmt::Display) -> Self {
        Self { place, message: error.to_string() }
    }
}

/// Everything that does not hold; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckErrors(Vec<CheckError>);

impl CheckErrors {
    pub(super) fn new(errors: Vec<CheckError>) -> Self {
        debug_assert!(!errors.is_empty());
        Self(errors)
    }

    /// The errors in the order they were found.
    pub fn list(&self) -> &[CheckError] {
        &self.0
    }
}

impl std::fmt::Display for CheckErrors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the program does not pass the checker")?;
        self.0.iter().take(20).try_for_each(|error| write!(f, "\n  {error}"))?;
        match self.0.len() {
            n if n > 20 => write!(f, "\n  and {} more", n - 20),
            _ => Ok(()),
        }
    }
}

impl std::error::Error for CheckErrors {}

/// What can be wrong with an instruction.
#[derive(Clone, Debug, thiserror::Error)]
pub(super) enum Fault {
    #[error("layer {0} does not exist")]
    NoLayer(LayerId),
    #[error("{what} does not exist")]
    Missing { what: String },
    #[error("registers {0} are empty or beyond the limit")]
    Range(CtRange),
    #[error("registers {0} are not one whole tensor")]
    NotATensor(CtRange),
    #[error("registers {0} are already in use")]
    InUse(CtRange),
    #[error("{found} registers for a tensor of {needed} ciphertexts")]
    Length { found: usize, needed: usize },
    #[error("a batch of {inputs} inputs and {results} results")]
    Batch { inputs: usize, results: usize },
    #[error("operands of {0} and {1} lanes")]
    Lanes(u32, u32),
    #[error("operands in different layouts")]
    Layouts,
    #[error("operands at levels {0} and {1}")]
    Levels(Level, Level),
    #[error("operands at scales {0} and {1}")]
    Scales(Scale, Scale),
    #[error("{found} operands for a map of {needed} terms")]
    Terms { found: usize, needed: usize },
    #[error("scale {scale} is smaller than that of the operand, {source_scale}")]
    PlainScale { scale: Scale, source_scale: Scale },
    #[error("scale {scale} does not fit the modulus of 2^{log2_q:.2} at level {level}")]
    Overflow { scale: Scale, log2_q: f64, level: Level },
    #[error("numbers up to {peak:e} at scale {scale} are too large to be encoded")]
    Unencodable { peak: f64, scale: Scale },
    #[error("no tower left to rescale by")]
    NoTower,
    #[error("scale {0} is below one")]
    Underflow(Scale),
    #[error("drop from level {from} up to level {to}")]
    DropUp { from: Level, to: Level },
    #[error("level {level} is above the chain's {max}")]
    AboveChain { level: Level, max: Level },
    #[error("a number that is not finite")]
    NotFinite,
    #[error("{0}")]
    Constant(String),
    #[error("the {what} {text} has a character that a terminal would obey")]
    Text { what: &'static str, text: String },
    #[error("a second input")]
    SecondInput,
    #[error("an instruction after the output")]
    AfterOutput,
    #[error("no {0}")]
    Absent(&'static str),
    #[error("registers {0} are never freed")]
    Leaked(String),
    #[error("no key for rotation {0} at {1}")]
    NoRotationKey(Rotation, Level),
    #[error("no {0} key at {1}")]
    NoKey(&'static str, Level),
    #[error("the key for {0} is out of order, not normalized, above its use, or of no use")]
    UselessKey(String),
    #[error("keys of {found} segments below the first, there are {needed}")]
    SegmentKeys { found: usize, needed: usize },
    #[error("content that repeats every {period} slots in a ring of {slots} at level {level}")]
    Period { period: usize, slots: usize, level: Level },
    #[error("{field} has {found} values for {needed} channels")]
    PerChannel { field: &'static str, found: usize, needed: usize },
    #[error("range {0} is not two finite numbers in order")]
    Interval(Interval),
    /// A tensor of the model that does not lie within the program's.
    #[error("port {0} does not lie within the tensor, or overlaps another")]
    Port(String),
    /// A tail that does not fit its scores.
    #[error("tail {0} does not fit the scores it starts from")]
    Tail(String),
    #[error("prediction {0} is negative or not finite")]
    Prediction(f64),
    #[error("peak {0} is negative or not finite")]
    Peak(f64),
    #[error(
        "layer {layer} {name:?}: values up to {peak} at scale {scale} need {missing:.2} bits more than the modulus of 2^{log2_q:.2} at level {level}"
    )]
    Headroom {
        layer: LayerId,
        name: String,
        peak: f64,
        scale: Scale,
        log2_q: f64,
        level: Level,
        missing: f64,
    },
    #[error("standard deviation {0} is not positive")]
    Deviation(f64),
}
