//! The tensor graph between import and scheduling: typed ids, operations, facts, shape inference, printer, verifier,
//! costs, and a clear evaluator in f64 that says what a graph means.

#![forbid(unsafe_code)]

pub mod cost;
mod edit;
mod ensemble;
pub mod eval;
mod graph;
mod ids;
mod infer;
mod nature;
pub mod op;
mod print;
mod shape;
pub mod spec;
mod tensor;
mod verify;
mod weights;

pub use ensemble::{EnsembleError, ensemble};
pub use eval::{EvalError, Value, evaluate};
pub use graph::{Graph, Node, ValueRange};
pub use ids::{MemberIdx, NodeId, TensorId};
pub use infer::{ShapeError, infer};
pub use nature::{Channels, Kind, attributes, channels};
pub use op::{Conv2d, Divisor, Linear, Op, Pad, Pads, Pool, Slice};
pub use print::{PrintOptions, number, print, print_node};
pub use shape::Shape;
pub use tensor::{Scaled, Tensor, TensorData, TensorSizeError};
pub use verify::{Fault, Verified, VerifyError, VerifyErrors, verify};
pub use weights::Weights;
