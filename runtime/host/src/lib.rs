//! What both commands ask of the operating system: files that are there completely or not at all, bounded reading,
//! memory, standard output and Ctrl-C.
#![forbid(unsafe_code)]

pub mod memory;
mod output;
mod read;
mod write;

pub use output::print;
pub use read::read_bounded;
pub use write::{Content, WriteError, exit_on_interrupt, write_whole};
