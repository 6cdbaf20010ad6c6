//! What the cross-crate tests and `cargo xtask` share: an ONNX writer, generated networks, the built binaries.
//!
//! Nothing here is part of the product: the compiler reads ONNX, it never writes it.

#![forbid(unsafe_code)]

pub mod binaries;
pub mod models;
pub mod onnx;
