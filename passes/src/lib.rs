//! Rewrites of the tensor graph that lower its multiplicative depth and make it fit small scales.
//!
//! [`pipeline()`] is the order, [`Manager`] runs it; every rewrite has a module of its own.

#![forbid(unsafe_code)]

mod complete_square;
mod egraph;
mod equalize;
mod factor_quadratics;
mod fuse;
mod manager;
mod merge_linear;
mod move_constants;
mod multiple;
mod pass;
mod passage;
mod pipeline;
mod prune_channels;
mod ranges;
mod redistribute;
pub mod rules;
mod scale_flow;
mod small;

pub use complete_square::CompleteSquare;
pub use equalize::EqualizeChannels;
pub use factor_quadratics::FactorQuadratics;
pub use fuse::Fuse;
pub use manager::{Manager, ManagerOptions, PassRun, SAME_OUTPUT};
pub use merge_linear::MergeLinear;
pub use move_constants::MoveConstants;
pub use pass::{Changed, Pass, PassCx, PassError, Report, Saturation, Stop};
pub use pipeline::{Config, pipeline};
pub use prune_channels::PruneChannels;
pub use ranges::{RecordRanges, measure};
pub use redistribute::Redistribute;
