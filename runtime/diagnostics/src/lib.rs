//! How both commands speak to people: messages with remedies, colors, bars, exit codes, and what Ctrl-C leaves.
//!
//! Libraries return codes and facts. What a front end says about them, and how it looks, is here where the front ends share
//! it, and in the front end itself where it does not.
#![forbid(unsafe_code)]

mod bar;
mod csv;
mod interrupt;
mod message;
pub mod remedy;
mod say;

use fhe_bytecode::codec;
use fhe_host::{Content, Text};

pub use bar::Bar;
pub use csv::csv_row;
pub use interrupt::catch_interrupts;
pub use message::{Diagnostic, Kind, Place, chain};
pub use say::complain;

/// How the binary files of this project begin: programs, interfaces, keys and ciphertexts.
pub const OUR_FILES: &[&[u8]] = &[&codec::MAGIC, &codec::INTERFACE_MAGIC, b"fhe-"];

/// A text of some kind, for people or other programs. It never replaces a file that took minutes to make.
pub const fn text(kind: Text) -> Content {
    Content::Text { kind, spares: OUR_FILES }
}

/// The exit code after Ctrl-C.
pub const INTERRUPTED: u8 = 130;
