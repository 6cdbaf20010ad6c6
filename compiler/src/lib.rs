//! The compiler: from an ONNX model to a leveled circuit.
#![forbid(unsafe_code)]

pub mod emit;
pub mod layout;
pub mod lower;
pub mod pipeline;
pub mod schedule;
