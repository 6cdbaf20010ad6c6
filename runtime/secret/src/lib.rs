//! Everything that touches a secret key: its generation, evaluation keys made from it, encryption and decryption.
//!
//! A server links none of this: it computes with what [`fhe_ckks`] knows. Randomness enters through a [`SeedSource`] only.
//!
//! ```
//! use fhe_bytecode::{ParamsSpec, Params, Scale, params::ntt_primes_below};
//! use fhe_ckks::{Context, Evaluator, Rotation};
//! use fhe_secret::{SecretKey, SeedSource};
//!
//! let towers = ntt_primes_below(40, 10, 3, &[])?;
//! let special_primes = ntt_primes_below(42, 10, 1, &towers)?;
//! let (digit_size, pool) = (1, None);
//! let spec = ParamsSpec { log_n: 10, towers, special_primes, digit_size, pool, lower: Vec::new(), insecure: false, toy: true };
//! let params = Params::new(spec)?;
//! let context = Context::new(params.clone())?;
//! let mut seeds = SeedSource::os();
//! let key = SecretKey::generate(&context, &mut seeds)?;
//! let keys = key.rotation_keys(&context, &[(Rotation::new(1, &context), params.max_level())], &mut seeds)?;
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
#![forbid(unsafe_code)]

mod digits;
mod encrypt;
mod keys;
mod random;
mod secret_key;

pub use digits::KeyDigits;
pub use random::SeedSource;
pub use secret_key::SecretKey;

#[cfg(test)]
mod tests;
