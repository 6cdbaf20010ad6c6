//! The formats of keys and ciphertexts: one magic per kind, one header, a hash over everything (see `docs/FILES.md`).
//!
//! Everything is written to [`std::io::Write`] and read from [`std::io::Read`]: files, sockets or memory. Reading trusts
//! nothing: counts are bounded by the bytes left before anything is allocated, residues are below their prime, levels and
//! scales are checked, no byte may follow the end, and any change of any byte is refused.
#![forbid(unsafe_code)]
// Numbers come from files: none may lose a part of itself.
#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)
)]

mod ciphertexts;
pub mod codec;
mod contents;
#[cfg(test)]
mod edges_tests;
mod error;
mod evaluation_keys;
mod header;
mod names;
#[cfg(test)]
mod testing;

pub use ciphertexts::{
    Ciphertexts, Expected, Form, Request, Role, Stored, ciphertexts_len, decode_ciphertexts, decode_request,
    encode_ciphertexts, names_len, read_request, read_role,
};
pub use contents::{Contents, count_evaluation_keys, read_contents};
pub use error::FormatError;
pub use evaluation_keys::{
    EvaluationKeysWriter, decode_evaluation_keys, decode_requested_keys, encode_evaluation_keys,
    evaluation_keys_len,
};
pub use header::{HEADER_LEN, Header, Kind, VERSION, decode_header};
