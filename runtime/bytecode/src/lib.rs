//! The contract between the compiler and the runtime.
//!
//! Everything that both sides must agree on lives here and nowhere else: checked parameters and prime
//! search, scales and the noise estimates, layouts, linear maps and their rotation plans, instructions,
//! the file codec, the checker that every program passes before it runs, and a clear interpreter.
//! This crate knows neither networks nor ring arithmetic.
#![forbid(unsafe_code)]

pub mod noise;
pub mod params;
pub mod scale;

pub use params::{Fingerprint, Level, Params, ParamsError, ParamsSpec, TowerIdx};
pub use scale::Scale;
