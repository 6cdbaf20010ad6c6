//! What a schedule is made of: the chain of moduli with exact scales, the room that values need, and the predicted error
//! (paper §4.3).
//!
//! Decisions are searched in [`crate::search`]; the proof that they fit each other is `fhe_bytecode::check`, which shares no
//! code with either.

pub mod chain;
pub mod noise;
mod problem;
mod room;

pub use chain::{Chain, ChainError, Sizes};
pub use problem::Problem;
pub use room::{LEAST_HEADROOM, Room, WANTED_HEADROOM};
