//! Values measured: how large they are, how far they reach, and how much an error in them moves the result.

mod center;
mod extent;
mod moments;
mod rows;
mod samples;
mod stats;
mod strays;
mod wide;

pub(crate) use center::centered;
pub use extent::Extent;
pub use moments::Moments;
pub use samples::made_up_inputs;
pub use stats::{Case, LARGEST, Overflow, Stats};
