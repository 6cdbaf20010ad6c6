//! The scheduled circuit, and what it is made of: the chain of moduli with exact scales, the room that values need, and the
//! predicted error (paper §4.3).
//!
//! What holds ([`Scheduled::judge`]):
//!
//! 1. a value is at the level it is computed at, or one rescale below;
//! 2. the scale of a value is that before its rescale divided as the parameters say; that of a product is the product of its
//!    factors', which have the level it is computed at;
//! 3. a summand that is added as it is has level and scale of its sum; one that is multiplied has at least the level that
//!    its sum is computed at, and no plaintext has a scale below one;
//! 4. the plan of a map splits exactly the rotations of its diagonals;
//! 5. every value lies below half its modulus, with bits to spare.
//!
//! Decisions are searched in [`crate::search`]; the proof that the program does what they say is `fhe_bytecode::check`,
//! which shares no code with either.

pub mod chain;
mod judge;
mod moduli;
pub mod noise;
mod problem;
mod room;
mod scheduled;
mod text;

pub use chain::{Chain, ChainError, Sizes};
pub use moduli::Moduli;
pub use problem::Problem;
pub(crate) use problem::covering;
pub use room::{LEAST_HEADROOM, Room, WANTED_HEADROOM};
pub use scheduled::{PlannedMap, PlannedParts, Schedule, Scheduled, ScheduledValue};
