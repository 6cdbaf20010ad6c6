//! The client's side: what to encrypt, what a decrypted result means, and the secret key on disk.
//!
//! [`Client`] holds a secret key and makes inputs and reads results of one program, of which it knows the
//! [`Interface`](fhe_bytecode::Interface) alone.
#![forbid(unsafe_code)]
// Numbers come from files: none may lose a part of itself.
#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)
)]

mod answer;
mod client;
mod error;
mod inputs;
mod resolution;
mod secret_key_file;
mod security;
mod tail;
#[cfg(test)]
#[path = "../../files/src/testing.rs"]
mod testing;
mod told;

pub use answer::{Answer, Doubt, DoubtKind, label, largest_value};
pub use client::{Client, average_members, joined};
pub use error::ClientError;
pub use inputs::{Outside, check_range, prepare, prepare_part, prepare_unchecked};
pub use resolution::{DEVIATIONS, Resolution, noise_floor};
pub use secret_key_file::{decode_secret_key, encode_secret_key, secret_key_len};
pub use security::insecurity;
pub use tail::{Content, Named};
pub use told::{SCORES_WARNING, Told};
