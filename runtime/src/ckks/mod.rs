//! Leveled RNS-CKKS: encoding, keys, encryption and evaluation.
//!
//! A ciphertext decrypts to a polynomial whose N/2 slots hold real numbers times a [`Scale`]. Operations work
//! on towers in NTT form; a rescale divides by the top tower and lowers the [`Level`] by one. Operands
//! that disagree in level or scale are an error, never repaired silently. Nothing here is random except
//! what takes a [`SeedSource`]; the evaluator needs no secret and gives the same bits for any thread count.
//!
//! ```
//! use fhe_bytecode::{ParamsSpec, Params, Scale, params::ntt_primes_below};
//! use fhe_runtime::ckks::*;
//!
//! let towers = ntt_primes_below(40, 10, 3, &[])?;
//! let special_primes = ntt_primes_below(42, 10, 1, &towers)?;
//! let params = Params::new(ParamsSpec { log_n: 10, towers, special_primes, digit_size: 1, insecure: false, toy: true })?;
//! let context = Context::new(params.clone())?;
//! let mut seeds = SeedSource::os();
//! let key = SecretKey::generate(&context, &mut seeds)?;
//! let keys = RotationKeys::generate(&context, &key, &[(Rotation::new(1, &context), params.max_level())], &mut seeds)?;
//!
//! let x: Vec<f64> = (0..params.slots()).map(|i| i as f64).collect();
//! let plain = context.encoder().encode(&x, Scale::from_log2(30.0), params.max_level())?;
//! let x = key.encrypt(&context, &plain, &mut seeds)?.expand(&context);
//!
//! let evaluator = Evaluator::new(&context);
//! let rotated = evaluator.rotate(&x, Rotation::new(1, &context), &keys)?;
//! let sum = evaluator.add(&x, &rotated)?;
//! let slots = key.decrypt(&context, &sum)?;
//! assert!((slots[3] - 7.0).abs() < 1e-3);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod ciphertext;
mod context;
mod encoder;
mod encrypt;
mod error;
mod evaluator;
mod fft;
mod key_switch;
mod keys;
pub mod linear;
mod random;
mod rotation;
mod secret_key;

pub use ciphertext::{Ciphertext, Encoding, Plaintext, SeededCiphertext};
pub use context::Context;
pub use encoder::Encoder;
pub use error::CkksError;
pub use evaluator::Evaluator;
pub use fhe_bytecode::{Level, Params, Scale};
pub use keys::{KeySwitchKey, RelinKey, RotationKeys};
pub use random::{PublicSeed, SeedSource};
pub use rotation::Rotation;
pub use secret_key::{KeyId, SecretKey};

#[cfg(test)]
mod tests;
