//! The client as a WebAssembly module: what a browser needs to make keys, encrypt and decrypt.
//!
//! It decides nothing that [`fhe_client`] does not decide, and knows neither network nor storage: bytes come in, bytes go out.
//! What fetches, keeps and shows them is JavaScript beside it (`runtime/web/module`).
#![forbid(unsafe_code)]

#[cfg(target_arch = "wasm32")]
mod bindings;
mod client;
mod error;
mod facts;
mod keys;

pub use client::Client;
pub use error::Refusal;
pub use facts::Facts;
pub use keys::KeyStream;
