//! What both commands ask of the operating system: files that are there completely or not at all, bounded reading,
//! memory and sizes, standard output and Ctrl-C.
//!
//! Without the feature `files` only what needs no other crate is there: sizes, memory and standard output.
#![forbid(unsafe_code)]

mod bytes;
mod disk;
mod dumps;
pub mod memory;
mod output;
mod read;
#[cfg(feature = "files")]
mod write;

pub use bytes::{parse_bytes, show_bytes};
pub use disk::free_disk_bytes;
pub use dumps::forbid_core_dumps;
pub use output::print;
pub use read::read_bounded;
#[cfg(feature = "files")]
pub use write::{Content, Left, Resumable, Text, WriteError, check_target, exit_on_interrupt, write_whole};
