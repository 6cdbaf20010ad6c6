//! The client's side: what to encrypt, what a decrypted result means, and the secret key on disk.
//!
//! [`Client`] holds a secret key and makes inputs and reads results of one program, of which it knows the
//! [`Interface`](fhe_bytecode::Interface) alone.
#![forbid(unsafe_code)]

mod client;
mod error;
mod secret_key_file;
#[cfg(test)]
#[path = "../../files/src/testing.rs"]
mod testing;

pub use client::{Client, average_members, prepare};
pub use error::ClientError;
pub use secret_key_file::{decode_secret_key, encode_secret_key, secret_key_len};
