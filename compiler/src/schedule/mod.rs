//! Scheduling: level, sublevel and scale of every value, and the moduli that make them possible (paper §4.3).
//!
//! Decisions live here; the proof that they fit each other is `fhe_bytecode::check`, which shares no code with this.

mod balance;
mod candidate;
pub mod chain;
mod extent;
pub mod given;
mod moments;
pub mod noise;
mod positions;
mod problem;
mod raise;
mod room;
mod samples;
pub mod search;
mod stats;

pub use chain::{Chain, ChainError, Sizes};
pub use extent::Extent;
pub use moments::Moments;
pub use positions::{Positions, Rung, Step, with_lifted_factors};
pub use problem::Problem;
pub use room::{LEAST_HEADROOM, Room, WANTED_HEADROOM};
pub use samples::made_up_inputs;
pub use search::{Request, Schedule, ScheduleError, schedule};
pub use stats::{LARGEST, Overflow, Stats};
