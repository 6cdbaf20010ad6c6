//! What the cross-crate tests and `cargo xtask` share: an ONNX writer, generated networks (those of the level
//! tables and random ones), the built binaries, a browser, hostile programs.
//!
//! Nothing here is part of the product: the compiler reads ONNX, it never writes it.

#![forbid(unsafe_code)]

pub mod binaries;
pub mod browser;
pub mod differential;
pub mod layers;
pub mod models;
pub mod onnx;
pub mod sections;
