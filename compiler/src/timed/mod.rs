//! When values are computed.

mod positions;

pub use positions::{Positions, Rung, Step, with_lifted_factors};

#[cfg(test)]
pub(crate) use positions::tests::chain as positions_of;
