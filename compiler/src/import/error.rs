//! Why a model cannot be imported: it cannot be read, or some of its nodes cannot be encrypted.

use std::fmt;
use std::path::PathBuf;

use super::reason::Reason;

/// Why there is no imported model.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The file cannot be read.
    #[error("{} cannot be read", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The bytes are not a usable ONNX model: truncated, inconsistent or hostile.
    #[error("this is not a usable ONNX model: {0}")]
    Malformed(#[from] Malformed),
    /// The model is sound, but parts of it cannot be evaluated on encrypted data.
    #[error("{0}")]
    Refused(Refusals),
    /// An output that was asked for and is not there.
    #[error("the model has no output `{name}`; it has {has}")]
    NoSuchOutput {
        /// What was asked for.
        name: String,
        /// What there is.
        has: String,
    },
    /// The translation broke its own rules.
    #[error("the import made an invalid graph: {0}")]
    Verify(fhec_ir::VerifyErrors),
}

/// What is wrong with the bytes of a model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Malformed {
    /// The protobuf does not decode.
    #[error("the protobuf does not decode ({0})")]
    Decode(String),
    /// Too many short messages; decoding them would exhaust memory.
    #[error("its protobuf holds so many empty records that they would take more than {limit} bytes")]
    TooManyRecords {
        /// The limit of a file of this length.
        limit: usize,
    },
    /// Larger than a protobuf may be.
    #[error("it is larger than the {limit} bytes that a protobuf may have")]
    TooLarge {
        /// The limit.
        limit: u64,
    },
    /// No graph in the model.
    #[error("it has no graph")]
    NoGraph,
    /// A graph without outputs or inputs.
    #[error("its graph has no {0}")]
    NoSuchEnd(&'static str),
    /// A tensor whose data does not match its extents.
    #[error("tensor `{tensor}` {problem}")]
    Tensor {
        /// Name of the tensor.
        tensor: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A node reads a value nobody makes.
    #[error("node `{node}` reads `{value}`, which nothing makes")]
    Dangling {
        /// The node.
        node: String,
        /// The value.
        value: String,
    },
    /// Two nodes make one value.
    #[error("value `{0}` is made twice")]
    MadeTwice(String),
    /// The graph has a cycle.
    #[error("its graph has a cycle through node `{0}`")]
    Cycle(String),
    /// A node with inputs, attributes or shapes the operator does not allow.
    #[error("node `{node}` ({op}) {problem}")]
    Node {
        /// The node.
        node: String,
        /// Its operator.
        op: String,
        /// What is wrong with it.
        problem: String,
    },
}

/// Every node that cannot be encrypted.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusals {
    /// The nodes.
    pub nodes: Vec<Refusal>,
    /// Outputs of the model that need none of them.
    pub spared: Vec<String>,
}

/// One node that cannot be encrypted.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// ONNX name of the node.
    pub node: String,
    /// Its operator.
    pub op: String,
    /// Extents of its result, batch first, if known.
    pub shape: Option<Vec<usize>>,
    /// Why, and what to do.
    pub reason: Reason,
}

impl fmt::Display for Refusals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.nodes.len() {
            1 => f.write_str("1 node of the model cannot be evaluated on encrypted data"),
            n => write!(f, "{n} nodes of the model cannot be evaluated on encrypted data"),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}", self.node, self.op)?;
        if let Some(shape) = &self.shape {
            write!(f, ", {shape:?}")?;
        }
        f.write_str(")")
    }
}
