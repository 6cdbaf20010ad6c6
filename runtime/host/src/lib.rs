//! What both commands ask of the operating system: files that are there completely or not at all, bounded reading,
//! memory and sizes, standard output and Ctrl-C.
#![forbid(unsafe_code)]

mod bytes;
pub mod memory;
mod output;
mod read;
mod write;

pub use bytes::{parse_bytes, show_bytes};
pub use output::print;
pub use read::read_bounded;
pub use write::{Content, WriteError, exit_on_interrupt, write_whole};
