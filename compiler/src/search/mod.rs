//! Everything that is searched, one inside the other: `docs/ARCHITECTURE.md` has the picture.
//!
//! Where rescales are ([`cheapest`]), how channels share ciphertexts, the ring and the precision ([`placement`]), digits and
//! special primes ([`key_switching`]) with scales in closed form ([`balance`]) that grow where that is not enough
//! ([`candidate`], [`raise`]), the towers that make up the moduli ([`towers`]), what lower levels have of their own
//! ([`segments`]), and rotation keys within the memory ([`key_budget`]). Every choice between schedules that do what is asked is
//! by predicted seconds. What the searches choose from is in the stages; what they cost is in the cost model.

mod balance;
mod candidate;
mod facts;
pub mod given;
mod key_budget;
pub mod key_switching;
mod like;
mod menu;
mod placement;
mod raise;
mod rescales;
mod segments;
mod towers;
mod work;

pub use given::ParamsChoice;
pub use key_switching::ScheduleError;
pub use like::Like;
pub(crate) use placement::Front;
pub(crate) use rescales::cheapest;
pub use segments::{RingChoice, Segmentation, SpecialChoice};
pub use towers::TowerChoice;
