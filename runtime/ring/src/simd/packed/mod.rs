//! Inner products with packed factors.

mod integer;
mod unpack;

pub(super) use integer::IntegerDot;
pub(super) use unpack::{is_reduced, unpack};
