//! What the user should know about an import that went well.

use std::fmt;

use super::Fitted;
use crate::fit::{Fit, FitSpec};

/// One remark.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Note {
    /// An operator behind the network's scores is left to the client.
    Dropped {
        /// Name of the model's output.
        output: String,
        /// The operator.
        op: String,
        /// Name of the scores that are returned instead.
        scores: String,
    },
    /// An output is computed by the client from the scores.
    Tail {
        /// Name of the model's output.
        output: String,
        /// The first operator of the client.
        op: String,
        /// Name of the scores.
        scores: String,
    },
    /// An output that does not depend on the input is left out.
    ConstantOutput(String),
    /// An activation was replaced, as requested.
    Replaced(Replacement),
    /// A function was replaced by a polynomial that was fitted to it.
    Approximated {
        /// ONNX node.
        node: String,
        /// Name of the function it was.
        function: String,
        /// The polynomial.
        fitted: Fitted,
    },
}

/// An activation and the polynomial in its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Replacement {
    /// ONNX node.
    pub node: String,
    /// Name of the function it was.
    pub function: &'static str,
    /// The request.
    pub spec: FitSpec,
    /// The polynomial.
    pub fit: Fit,
}

impl Note {
    /// Whether it is about a function that was replaced by a fitted polynomial.
    #[must_use]
    pub fn is_approximation(&self) -> bool {
        matches!(self, Self::Approximated { .. })
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Note::Dropped { output, op, scores } => {
                write!(
                    f,
                    "{op} behind `{scores}` is left to the client: output `{output}` returns the scores"
                )
            }
            Note::Tail { output, op, scores } => {
                write!(
                    f,
                    "output `{output}` is computed at decryption: {op} of `{scores}` and what follows it"
                )
            }
            Note::ConstantOutput(name) => {
                write!(f, "output `{name}` does not depend on the input and is left out")
            }
            Note::Approximated { node, function, fitted } => {
                let (low, high) = fitted.range();
                write!(
                    f,
                    "{node}: {function} on [{low:.3}, {high:.3}] replaced by degree {}",
                    fitted.degree()
                )
            }
            Note::Replaced(Replacement { node, function, spec, fit }) => {
                write!(f, "{node}: {function} on [-{c}, {c}] replaced by", c = spec.c)?;
                for (i, a) in fit.integers.iter().enumerate().rev() {
                    let sign = if *a < 0 { " -" } else { " +" };
                    write!(f, "{sign} {}/{}", a.abs(), 1_u64 << fit.bits)?;
                    match i {
                        0 => {}
                        1 => f.write_str("·x")?,
                        _ => write!(f, "·x^{i}")?,
                    }
                }
                write!(
                    f,
                    " (error: {:.4} at most, {:.4} rms; retraining is expected)",
                    fit.max_error, fit.rms_error
                )
            }
        }
    }
}
