//! The command `fhe-run`: client and server of encrypted inference over files.
#![forbid(unsafe_code)]

pub mod cli;
pub mod join;
pub mod partial;
pub mod store;
mod trial;

pub use trial::{Deviation, Outcome, Trial, TrialError, clear_output};
