//! Arithmetic in Z_q[X]/(X^N + 1) for many word-sized primes q at once. Knows no encryption.
//!
//! A polynomial is a list of towers, one residue polynomial per prime, each of N words in [0, q). Polynomials
//! in coefficient form and in NTT form are different types. Every operation has one scalar definition
//! ([`scalar`]); the kernels in [`simd`] are chosen per prime when the ring is built, and give the same bits.
#![deny(unsafe_code)]
// Where there are no kernels but the scalar ones, what only the others use is idle.
#![cfg_attr(not(target_arch = "x86_64"), allow(dead_code, unreachable_code, unused_variables))]

pub mod ahead;
#[allow(unsafe_code)]
mod allocator;
pub mod automorphism;
pub mod buffer;
mod coefficients;
pub mod complex;
pub mod convert;
mod engine;
pub mod kernels;
pub mod modulus;
pub mod ntt;
pub mod packed;
pub mod parallel;
mod plain_ntt;
pub mod poly;
mod root;
pub mod scalar;
pub mod shared;
#[allow(unsafe_code)]
pub mod simd;
mod stream;
mod tower;
mod tower_set;
mod words;

pub use ahead::Ahead;
pub use allocator::keep_freed_memory;
pub use automorphism::Automorphism;
pub use buffer::Buffer;
pub use coefficients::Coefficients;
pub use complex::{Butterflies, Twiddles};
pub use convert::{BaseConverter, Lifted};
pub use kernels::Kernels;
pub use modulus::Modulus;
pub use ntt::{Begun, Ntt};
pub use packed::{Packed, PackedPoly, Unchecked};
pub use poly::{Basis, Coeff, Form, NttForm, Poly};
pub use stream::Stream;
pub use tower::{Ring, RingError, Tower};
pub use tower_set::TowerSet;
pub use words::{Held, Words};

#[cfg(test)]
mod tests;
