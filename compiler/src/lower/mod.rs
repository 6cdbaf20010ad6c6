//! Lowering: from the optimized tensor graph to a circuit of sums of linear maps and products.
//!
//! Before: a verified tensor graph. After: a [`Circuit`] that computes the same outputs with the same number of
//! multiplications on the longest path. Concatenation, slicing, padding and flattening become views and then weights of
//! the maps around them; sums are gathered into the maps they add.

mod build;
pub mod circuit;
mod constant;
mod conv;
pub mod eval;
mod fuse;
mod judge;
mod layers;
mod members;
mod piece;
mod poly;
mod text;
mod transposed;
mod view;
mod windows;

pub use build::lower;
pub use circuit::{Affine, Circuit, CircuitOp, Map, Term, Value, ValueId};
pub use constant::{Codes, Constant};
pub use conv::{Conv, Run};

#[cfg(test)]
mod tests;
