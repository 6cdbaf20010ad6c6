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
pub mod memory;
mod prepare;
mod profile;
mod progress;
mod registers;
#[cfg(test)]
mod tests;

pub use client::{Client, input_slots, output_tensor};
pub use error::VmError;
pub use keys::{EvaluationKeys, KeyRequest, KeyUse, generate_key};
pub use machine::{Machine, MemoryPlan, Options};
pub use prepare::key_request;
pub use profile::{Event, Profile, Recorder, Share};
pub use progress::{Observer, Progress, Silent};
