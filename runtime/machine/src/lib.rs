//! The virtual machine: evaluates checked programs on ciphertexts. Knows no modular arithmetic and no secret.
//!
//! [`Model`] holds a program and its plaintexts, for all clients; [`Session`] holds one client's evaluation keys and evaluates.
#![forbid(unsafe_code)]

mod cache;
mod cancel;
mod error;
mod linear;
mod model;
mod prepare;
mod profile;
mod progress;
mod registers;
mod session;

pub use cancel::Cancel;
pub use error::VmError;
pub use fhe_ring::keep_freed_memory;
pub use model::{Model, Options};
pub use prepare::check_memory;
pub use profile::{Event, Profile, Recorder, Share};
pub use progress::{Observer, Progress, Silent};
pub use session::{Input, MemoryPlan, Session};
