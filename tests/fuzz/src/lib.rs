//! A mutation harness for everything that reads bytes from outside.
//!
//! Sound files are made once, then changed at random and read again: half of the changes keep checksums right, so that
//! the parsers behind them are reached. An execution fails when it panics, takes more than a second of processor time,
//! holds more memory than a small multiple of its input, or when a reader accepts something that later breaks.
//! Execution `i` of a seed is the same on every machine, whatever ran before it.

#![deny(unsafe_code)]

pub mod memory;
pub mod mutate;
pub mod run;
pub mod targets;
pub mod tree;
mod watch;

pub use run::{Config, Finding, Kind, Outcome, Target, run};
