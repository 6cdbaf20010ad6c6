//! What a name of the model stands for while it is translated.

use std::sync::Arc;

use fhe_bytecode::TailStep;

use super::constant::Constant;
use super::error::Malformed;
use super::polynomial::Polynomial;
use super::reason::Reason;
use super::view::View;

/// What a name stands for.
#[derive(Clone, Debug)]
pub(super) enum Value {
    /// Known now.
    Constant(Constant),
    /// Constant strings; only operators behind the network's result may read them.
    Text(Arc<[String]>),
    /// Depends on the input.
    Encrypted(Encrypted),
    /// Something the client computes from the network's scores, such as a softmax.
    Postprocessed(Scores),
    /// The result of a node that was refused.
    Unknown,
}

/// A value that depends on the input.
#[derive(Clone, Debug)]
pub(super) struct Encrypted {
    /// The value as a polynomial of nodes of the graph.
    pub(super) polynomial: Arc<Polynomial>,
    /// How ONNX sees it.
    pub(super) view: View,
    /// Whether ONNX computes with it in floating point.
    pub(super) is_float: bool,
    /// Whether nobody else reads the node it comes from, so that the node may still take up a bias.
    pub(super) is_exclusive: bool,
    /// ONNX node that made it.
    pub(super) origin: String,
}

impl Encrypted {
    /// A value seen through `view`, in floating point.
    pub(super) fn new(polynomial: Polynomial, view: View, origin: &str) -> Self {
        Encrypted {
            polynomial: Arc::new(polynomial),
            view,
            is_float: true,
            is_exclusive: false,
            origin: origin.into(),
        }
    }

    /// The same with another polynomial.
    pub(super) fn with_polynomial(&self, polynomial: Polynomial) -> Self {
        Encrypted { polynomial: Arc::new(polynomial), is_exclusive: false, ..self.clone() }
    }

    /// The same seen through another view.
    pub(super) fn with_view(&self, view: View) -> Self {
        Encrypted { view, ..self.clone() }
    }
}

/// The last encrypted value before what the client computes itself.
#[derive(Clone, Debug)]
pub(super) struct Scores {
    /// The value.
    pub(super) value: Encrypted,
    /// Its ONNX name.
    pub(super) name: String,
    /// The node the client computes first.
    pub(super) node: String,
    /// Its operator.
    pub(super) op: String,
    /// What the client computes so far; nothing if there are no words for it.
    pub(super) steps: Option<Vec<TailStep>>,
    /// Extents of what it has then.
    pub(super) dims: Vec<usize>,
    /// Names of the classes, if it is about classes.
    pub(super) classes: Vec<String>,
}

/// Why a node has no translation.
#[derive(Debug)]
pub(super) enum OpError {
    /// It cannot be encrypted; the translation goes on to find the others.
    Refused(Reason),
    /// It is not valid ONNX; nothing can be said about the rest.
    Malformed(Malformed),
}

impl From<Reason> for OpError {
    fn from(reason: Reason) -> Self {
        OpError::Refused(reason)
    }
}

impl From<Malformed> for OpError {
    fn from(error: Malformed) -> Self {
        OpError::Malformed(error)
    }
}
