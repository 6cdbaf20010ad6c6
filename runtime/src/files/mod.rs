//! Key and ciphertext files: one magic per kind, one header, a hash over everything (see `docs/FILES.md`).
//!
//! Reading trusts nothing: counts are bounded by the bytes left before anything is allocated, residues are below
//! their prime, levels and scales are checked, no byte may follow the end, and any change of any byte is refused.

mod ciphertexts;
mod codec;
mod error;
mod evaluation_keys;
mod header;
mod secret_key;
mod store;
#[cfg(test)]
mod testing;

pub use ciphertexts::{
    Ciphertexts, Expected, Role, Stored, decode_ciphertexts, read_ciphertexts, write_ciphertexts,
};
pub use error::{FileError, FileErrorKind};
pub use evaluation_keys::{
    decode_evaluation_keys, generate_evaluation_keys, read_evaluation_keys, write_evaluation_keys,
};
pub(crate) use header::VERSION;
pub use header::{Header, Kind, read_header};
pub use secret_key::{decode_secret_key, read_secret_key, write_secret_key};
pub use store::{kind_of, write_atomically};
