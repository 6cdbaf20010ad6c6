//! Leveled RNS-CKKS without a secret: encoding, ciphertexts, evaluation keys and evaluation.
//!
//! A ciphertext decrypts to a polynomial whose N/2 slots hold real numbers times a [`Scale`]. Operations work
//! on towers in NTT form; a rescale divides by the top tower and lowers the [`Level`] by one. Operands
//! that disagree in level or scale are an error, never repaired silently. Nothing here is random, needs a secret or
//! could decrypt: that is the crate `fhe-secret`. Results have the same bits for any thread count.
#![forbid(unsafe_code)]

mod ciphertext;
mod circle;
mod context;
mod encoder;
mod error;
mod evaluator;
mod fft;
mod galois;
mod key_set;
mod key_switch;
mod keys;
pub mod linear;
mod seed;
mod segments;

pub use ciphertext::{Ciphertext, Encoding, Plaintext, SeededCiphertext};
pub use context::Context;
pub use encoder::Encoder;
pub use error::CkksError;
pub use evaluator::Evaluator;
pub use fhe_bytecode::{Level, Params, Scale};
pub use galois::{Galois, Rotation};
pub use key_set::{EvaluationKeys, KeyRequest, KeyUse, SegmentKeys, key_request};
pub use keys::{GaloisKeys, KeyId, KeySwitchKey, RelinKey, UncheckedKey};
pub use seed::PublicSeed;
pub use segments::{Segment, descend};
