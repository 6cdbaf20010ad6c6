//! Reads an ONNX model of any trainer into a tensor graph.
//!
//! The file is checked before it is decoded and translated (wire, proto, model, tensor), walked once in topological order
//! (translate, ops), and element-wise arithmetic is carried as polynomials until something needs a node (polynomial, emit).
//! The messages of the file stay inside this module.
//!
//! What cannot be encrypted is refused, all of it at once; nothing is replaced unless the caller asks for it.

mod clean;
mod coefficient;
mod constant;
mod contain;
mod emit;
mod error;
mod external;
mod fold;
mod function;
mod gap;
mod input;
mod limits;
mod metadata;
mod model;
mod named;
mod node;
mod note;
mod ops;
mod output;
mod polynomial;
mod proto;
mod readers;
mod reason;
mod region;
mod tail;
mod tensor;
mod translate;
mod value;
mod view;
mod wire;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use fhe_bytecode::{Classes, Port, Shape, Tail};
use fhec_ir::Graph;

pub use contain::{contain, is_contained};
pub use error::{ImportError, Malformed, Refusal, Refusals};
pub use function::Function;
pub use gap::{Functions, Gap};
pub use input::InputInfo;
pub use metadata::Preprocessing;
pub use note::{Note, Replacement};
pub use proto::decode;
pub use reason::Reason;

use crate::fit::FitSpec;
use external::ExternalData;
use limits::Budget;

/// Polynomials in place of a function, one for every channel of what it is applied to.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Fitted {
    /// The polynomials, all of one degree.
    pub channels: Vec<Fit>,
}

/// A polynomial of (x - center) / half_width, lowest degree first.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Fit {
    /// Middle of the range that it was fitted on.
    pub center: f64,
    /// Half of that range.
    pub half_width: f64,
    /// Coefficients.
    pub coefficients: Vec<f64>,
}

impl Fit {
    /// Its value.
    #[must_use]
    pub fn eval(&self, x: f64) -> f64 {
        let u = (x - self.center) / self.half_width;
        self.coefficients.iter().rev().fold(0.0, |sum, c| sum * u + c)
    }
}

impl Fitted {
    /// Its value in a channel.
    ///
    /// # Panics
    /// If there is no such channel.
    #[must_use]
    pub fn eval(&self, channel: usize, x: f64) -> f64 {
        self.channels[channel].eval(x)
    }

    /// Its degree.
    #[must_use]
    pub fn degree(&self) -> usize {
        self.channels.first().map_or(0, |fit| fit.coefficients.len().saturating_sub(1))
    }

    /// From the smallest to the largest number that any channel was fitted on.
    #[must_use]
    pub fn range(&self) -> (f64, f64) {
        let low = self.channels.iter().map(|fit| fit.center - fit.half_width).fold(f64::INFINITY, f64::min);
        let high =
            self.channels.iter().map(|fit| fit.center + fit.half_width).fold(f64::NEG_INFINITY, f64::max);
        (low, high)
    }
}

/// What the caller allows.
#[derive(Clone, Debug, Default)]
pub struct ImportOptions {
    /// Replaces ReLU and its relatives by the best polynomial of this specification.
    pub relu: Option<FitSpec>,
    /// What becomes of other functions that are no polynomials.
    pub functions: Functions,
    /// Names of the outputs to compute; empty: all of them.
    pub outputs: Vec<String>,
}

/// A model as a verified tensor graph, with what its file says about using it.
#[derive(Clone, Debug)]
pub struct Imported {
    /// The network, for one input at a time.
    pub graph: Graph,
    /// Inputs, in the order of the graph's input nodes.
    pub inputs: Vec<InputInfo>,
    /// ONNX names of the values behind the graph's outputs, in order.
    pub outputs: Vec<String>,
    /// How the model sees the numbers of the graph's output.
    pub ports: Vec<Port>,
    /// The model's outputs that a client computes from those.
    pub tails: Vec<Tail>,
    /// Class names, if the file has one for every score.
    pub labels: Option<Vec<String>>,
    /// How a client prepares an image, if the file says so.
    pub preprocessing: Option<Preprocessing>,
    /// Functions that the graph leaves open, where that was asked for.
    pub gaps: Vec<Gap>,
    /// What the user should know about the import.
    pub notes: Vec<Note>,
    /// The exporter, as it calls itself.
    pub producer: String,
    /// Version of the ONNX operator set.
    pub opset: i64,
}

impl Imported {
    /// Whether the graph computes something else than the model, because activations were replaced.
    pub fn has_replacements(&self) -> bool {
        self.notes.iter().any(|note| matches!(note, Note::Replaced(_) | Note::Approximated { .. }))
    }

    /// Which numbers of the graph's output are scores of classes.
    pub fn classes(&self) -> Classes {
        let Some(&id) = self.graph.outputs().first() else { return Classes::None };
        let shape = self.graph.shape(id);
        let shape = Shape::new(shape.c as u32, shape.h as u32, shape.w as u32);
        Classes::new(shape, &self.ports, &self.tails)
    }
}

/// Imports a model from a file; tensors may lie in files beside it.
///
/// # Errors
/// When the file cannot be read, is no usable model, or holds nodes that cannot be encrypted.
pub fn import_file(path: &Path, options: &ImportOptions) -> Result<Imported, ImportError> {
    import(read_file(path)?, Some(&folder_of(path)), options)
}

/// Imports a model from memory.
///
/// # Errors
/// When the bytes are no usable model or hold nodes that cannot be encrypted.
pub fn import_bytes(bytes: Vec<u8>, options: &ImportOptions) -> Result<Imported, ImportError> {
    import(bytes, None, options)
}

/// The bytes of a model file.
pub(crate) fn read_file(path: &Path) -> Result<Vec<u8>, ImportError> {
    let unreadable = |source| ImportError::Io { path: path.to_owned(), source };
    let bytes = fhe_host::read_bounded(path, limits::MAX_FILE_LEN).map_err(unreadable)?;
    match bytes.len() as u64 > limits::MAX_FILE_LEN {
        true => Err(Malformed::TooLarge { limit: limits::MAX_FILE_LEN }.into()),
        false => Ok(bytes),
    }
}

/// The folder of a model file, where its external tensors may be.
pub(crate) fn folder_of(model: &Path) -> PathBuf {
    model.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new(".")).to_owned()
}

/// Imports a model whose external tensors are in a folder.
pub(crate) fn import(
    bytes: Vec<u8>,
    folder: Option<&Path>,
    options: &ImportOptions,
) -> Result<Imported, ImportError> {
    let mut budget = Budget::of_file(bytes.len());
    let mut model = model::read(bytes, &mut ExternalData::new(folder), &mut budget)?;
    let has = model.outputs.join(", ");
    model.keep(&options.outputs).map_err(|name| ImportError::NoSuchOutput { name, has })?;
    let translated = translate::translate(&model, budget, options)?;
    if !translated.refusals.is_empty() {
        let refused: HashSet<&str> = translated.refusals.iter().map(|r| r.node.as_str()).collect();
        let spared = model.outputs_without(|node| refused.contains(node.name.as_str()), &refused);
        return Err(ImportError::Refused(Refusals { nodes: translated.refusals, spared }));
    }
    let graph = translated.graph;
    if graph.outputs().is_empty() {
        return Err(Malformed::NoSuchEnd("output that depends on its input").into());
    }
    fhec_ir::verify(&graph).map_err(ImportError::Verify)?;
    let n_scores = graph.outputs().first().map_or(0, |&id| graph.shape(id).len());
    let channels = translated.inputs.first().map_or(0, |i| i.shape.c);
    // A model that takes bytes does to them itself what it wants to.
    let takes_bytes = matches!(&model.inputs[..], [only] if !only.is_float);
    let bytes = takes_bytes.then(|| Preprocessing { mean: vec![0.0], std: vec![1.0 / 255.0] });
    Ok(Imported {
        labels: metadata::labels(&model.metadata, n_scores),
        preprocessing: metadata::preprocessing(&model.metadata, channels).or(bytes),
        graph,
        inputs: translated.inputs,
        outputs: translated.outputs,
        ports: translated.ports,
        tails: translated.tails,
        gaps: translated.gaps,
        notes: translated.notes,
        producer: model.producer,
        opset: model.opset,
    })
}
