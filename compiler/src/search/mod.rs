//! Everything that is searched.

mod balance;
mod candidate;
mod facts;
pub mod given;
mod key_budget;
pub mod key_switching;
mod placement;
mod raise;
mod rescales;

pub use given::ParamsChoice;
pub use key_switching::ScheduleError;
pub(crate) use placement::Front;
pub(crate) use rescales::cheapest;
