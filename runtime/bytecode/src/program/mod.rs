//! Programs: everything a runtime needs to evaluate a model, and nothing about how it was found.
//!
//! [`ProgramSpec`] is plain data, in RON or in the binary format; [`crate::check`] turns it into a
//! [`crate::CheckedProgram`], the only form that a runtime accepts.

mod classes;
mod instruction;
mod meaning;
mod port;
mod preprocessing;

use crate::constants::Constants;
use crate::ids::LayoutId;
use crate::layout::LayoutSpec;
use crate::linear::{LinearTerm, Pairing};
use crate::params::{Level, ParamsSpec};
use crate::plan::Plan;
use crate::rotation::Rotation;
use crate::scale::Scale;
use serde::{Deserialize, Serialize};

pub use classes::Classes;
pub use instruction::{Instruction, Op};
pub use meaning::{Kind, Numbers, Pair};
pub(crate) use port::batch;
pub use port::{MAX_PORTS, Port, Tail, TailStep, batch_ports};
pub use preprocessing::{Preprocessing, Raw};

/// A program as written by a compiler or read from a file; not yet checked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProgramSpec {
    /// Scheme parameters.
    pub params: ParamsSpec,
    /// Where the program comes from.
    pub origin: Origin,
    /// What it reads.
    pub input: InputSpec,
    /// What it computes.
    pub output: OutputSpec,
    /// Layouts by [`LayoutId`].
    pub layouts: Vec<LayoutSpec>,
    /// Weights and biases.
    pub constants: Constants,
    /// Linear maps by [`crate::MapId`].
    pub maps: Vec<LinearMap>,
    /// Layers by [`crate::LayerId`].
    pub layers: Vec<LayerSpec>,
    /// The instructions in order.
    pub instructions: Vec<Instruction>,
    /// Rotation keys that are used, sorted by rotation.
    pub rotation_keys: Vec<RotationKey>,
    /// Highest level of a relinearization, if there is one.
    pub relin_level: Option<Level>,
    /// Highest level of a conjugation, if there is one.
    #[serde(default)]
    pub conjugation_level: Option<Level>,
    /// Keys of the segments below the first, as many as there are.
    #[serde(default)]
    pub lower_keys: Vec<SegmentKeys>,
    /// What the compiler expects.
    pub prediction: Prediction,
}

/// The keys that are used in a segment below the first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SegmentKeys {
    /// Highest level at which a smaller ring is entered, if one is.
    pub entry: Option<Level>,
    /// Rotation keys, sorted by rotation.
    pub rotations: Vec<RotationKey>,
    /// Highest level of a relinearization, if there is one.
    pub relin: Option<Level>,
    /// Highest level of a conjugation, if there is one.
    pub conjugation: Option<Level>,
}

/// Where a program comes from; for people only.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Origin {
    /// Name of the model.
    pub model: String,
    /// Compiler and version.
    pub producer: String,
    /// Name of the packing, for reports.
    pub packing: String,
}

/// The encrypted input: one tensor, fresh, repeated for every member of an ensemble. Ports that reach beyond it make it a
/// batch: so many tensors, one after the other, members and lanes apart ([`crate::Layout::scatter_batch`]).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InputSpec {
    /// Name in the model.
    pub name: String,
    /// Where its coordinates go.
    pub layout: LayoutId,
    /// Level of the fresh ciphertexts.
    pub level: Level,
    /// Scale of the fresh ciphertexts.
    pub scale: Scale,
    /// Preprocessing of raw images.
    #[serde(default)]
    pub preprocessing: Preprocessing,
    /// What the model was calibrated on, after preprocessing; nothing if unknown.
    #[serde(default)]
    pub range: Option<Interval>,
    /// The model's inputs; empty: one of the layout's shape.
    #[serde(default)]
    pub ports: Vec<Port>,
}

impl InputSpec {
    /// An input of the layout's shape, of which nothing else is known.
    pub fn new(name: &str, layout: LayoutId, level: Level, scale: Scale) -> Self {
        let (name, preprocessing) = (name.to_owned(), Preprocessing::default());
        Self { name, layout, level, scale, preprocessing, range: None, ports: Vec::new() }
    }

    /// Whether the model's only input has channels last.
    pub fn is_channels_last(&self) -> bool {
        matches!(&self.ports[..], [only] if only.channels_last)
    }
}

/// Numbers from `low` to `high`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interval {
    /// Smallest number.
    pub low: f64,
    /// Largest number.
    pub high: f64,
}

impl Interval {
    /// Whether both ends are finite and in order.
    pub fn is_ordered(&self) -> bool {
        self.low.is_finite() && self.high.is_finite() && self.low <= self.high
    }

    /// Whether a number lies inside.
    pub fn contains(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }
}

impl std::fmt::Display for Interval {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Five digits tell where a number lies; the shortest form of a rounded number has no more.
        let rounded = |x: f64| format!("{x:.4e}").parse().unwrap_or(x);
        let (low, high): (f64, f64) = (rounded(self.low), rounded(self.high));
        write!(f, "[{low}, {high}]")
    }
}

/// The encrypted output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutputSpec {
    /// Name in the model.
    pub name: String,
    /// Where its coordinates are.
    pub layout: LayoutId,
    /// Names of the classes; empty if unknown.
    pub labels: Vec<String>,
    /// Scores seen in calibration; nothing if unknown.
    #[serde(default)]
    pub range: Option<Interval>,
    /// The model's outputs as far as they are computed under encryption; empty: one of the layout's shape.
    #[serde(default)]
    pub ports: Vec<Port>,
    /// The model's outputs that a client computes from those.
    #[serde(default)]
    pub tails: Vec<Tail>,
}

impl OutputSpec {
    /// An output of the layout's shape, of which nothing else is known.
    pub fn new(name: &str, layout: LayoutId) -> Self {
        let (ports, tails) = (Vec::new(), Vec::new());
        Self { name: name.to_owned(), layout, labels: Vec::new(), range: None, ports, tails }
    }
}

/// A linear map with its plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinearMap {
    /// The summands.
    pub terms: Vec<LinearTerm>,
    /// Layout of the result.
    pub output: LayoutId,
    /// What the imaginary parts of its sums are.
    #[serde(default)]
    pub pairing: Pairing,
    /// How its rotations are split.
    pub plan: Plan,
}

/// A layer of the model, for progress and profiles.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LayerSpec {
    /// Name in the model.
    pub name: String,
    /// Predicted seconds on one core.
    #[serde(default)]
    pub seconds: f64,
    /// Predicted error of the layer's result, as standard deviation of a value; zero if unknown.
    #[serde(default)]
    pub error: f64,
    /// Largest magnitude of any value of the layer in calibration, also before its rescale; zero if unknown.
    #[serde(default)]
    pub peak: f64,
}

/// A rotation key that the program needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RotationKey {
    /// The rotation.
    pub rotation: Rotation,
    /// Highest level it is used at.
    pub level: Level,
}

/// What the compiler expects of an evaluation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prediction {
    /// Seconds on one core, plaintexts cached.
    pub seconds: f64,
    /// Seconds to encode all plaintexts once, on one core.
    pub encode_seconds: f64,
    /// Bytes of the evaluation keys in memory.
    pub key_bytes: u64,
    /// Bytes of all plaintexts, cached.
    pub plaintext_bytes: u64,
    /// Most bytes of ciphertexts, and of rotated inputs and sums inside an instruction, at one time.
    pub ciphertext_bytes: u64,
    /// Error of an output value that is not expected to be exceeded.
    pub max_abs_error: f64,
}

impl ProgramSpec {
    /// The program as RON text.
    ///
    /// # Errors
    /// When a value has no RON form.
    pub fn to_ron(&self) -> Result<String, ron::Error> {
        ron::ser::to_string_pretty(self, ron::ser::PrettyConfig::new().depth_limit(4))
    }

    /// A program from RON text; checking it is the next step.
    ///
    /// # Errors
    /// When the text is not a program.
    pub fn from_ron(text: &str) -> Result<Self, ron::error::SpannedError> {
        ron::from_str(text)
    }
}
