//! Values measured: how large they are, how far they reach, and how much an error in them moves the result.

mod extent;
mod moments;
mod rows;
mod samples;
mod stats;
mod strays;
mod wide;

pub use extent::Extent;
pub use moments::Moments;
pub use samples::made_up_inputs;
pub use stats::{LARGEST, Overflow, Stats};
