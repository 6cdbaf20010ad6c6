//! The virtual machine: evaluates checked programs on ciphertexts. Knows no modular arithmetic.
//!
//! [`Machine`] holds a program with its evaluation keys and its plaintexts and runs it on any number of inputs;
//! [`Client`] holds a secret key and makes inputs and reads results.

mod cache;
mod client;
mod error;
mod keys;
mod linear;
mod machine;
mod prepare;
mod profile;
mod progress;
mod registers;
#[cfg(test)]
mod tests;
mod trial;

pub use client::Client;
pub use error::VmError;
pub use keys::{EvaluationKeys, KeyRequest, KeyUse, generate_key};
pub use machine::{Machine, MemoryPlan, Options};
pub use prepare::{check_memory, key_request};
pub use profile::{Event, Profile, Recorder, Share};
pub use progress::{Observer, Progress, Silent};
pub use trial::{Outcome, Trial, clear_output};
