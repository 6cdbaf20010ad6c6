//! The virtual machine: evaluates checked programs on ciphertexts. Knows no modular arithmetic and no secret.
//!
//! [`Machine`] holds a program with its evaluation keys and its plaintexts and runs it on any number of inputs.
#![forbid(unsafe_code)]

mod cache;
mod error;
mod linear;
mod machine;
mod prepare;
mod profile;
mod progress;
mod registers;

pub use error::VmError;
pub use machine::{Machine, MemoryPlan, Options};
pub use prepare::check_memory;
pub use profile::{Event, Profile, Recorder, Share};
pub use progress::{Observer, Progress, Silent};
