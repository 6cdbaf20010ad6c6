//! The compiler from ONNX to leveled homomorphic programs, as a library behind the `fhec` command.

#![forbid(unsafe_code)]
// A library says what it has to say through its observer.
#![cfg_attr(not(test), deny(clippy::dbg_macro, clippy::print_stderr, clippy::print_stdout))]

pub mod approximate;
mod carried;
#[allow(clippy::print_stderr, clippy::print_stdout)]
pub mod cli;
pub mod cluster;
mod compile;
pub mod diagnostics;
pub mod emit;
pub mod fit;
pub mod import;
pub mod layout;
pub mod levels;
pub mod lower;
pub mod measure;
pub mod pipeline;
pub mod predict;
pub mod report;
pub mod schedule;
pub mod search;
pub mod simulate;
pub mod stages;
pub mod timed;

pub use compile::{
    Calibration, CompileError, Compiled, ImageFile, Model, Observer, Rehearsal, RehearsalError, Rehearse,
    Request, SelfCheck, Source, Stage, Statistic, compile,
};
