//! Kernels that do modular arithmetic in double precision, and some in 52-bit integers, for primes below 2^50.
//!
//! A product a·b is split exactly into h = fl(a·b) and l = fma(a, b, -h). With k = round(a·b / q), the value
//! (h - k·q) + l is exact, because every intermediate is an integer below 2^53. So a vector of products costs four
//! multiply-add slots and two additions, where 64-bit integer code needs a dozen instructions.
//!
//! Every kernel is written once for any vector width and gives the bits of its scalar twin. All unsafe code of the
//! crate is in this folder: loads and stores through references, and calls that need a CPU feature, made with
//! a capability token in hand.

#[cfg(target_arch = "x86_64")]
mod center;
#[cfg(target_arch = "x86_64")]
mod chacha;
#[cfg(target_arch = "x86_64")]
mod complex;
#[cfg(target_arch = "x86_64")]
mod dot;
#[cfg(any(target_arch = "x86_64", target_feature = "relaxed-simd"))]
mod elementwise;
#[cfg(target_arch = "x86_64")]
mod factors;
#[cfg(any(target_arch = "x86_64", target_feature = "relaxed-simd"))]
mod lanes;
#[cfg(any(target_arch = "x86_64", target_feature = "relaxed-simd"))]
mod ntt;
#[cfg(target_arch = "x86_64")]
mod packed;
#[cfg(target_arch = "x86_64")]
mod permute;
#[cfg(target_arch = "x86_64")]
mod pointwise;
#[cfg(any(target_arch = "x86_64", target_feature = "relaxed-simd"))]
mod prime;
#[cfg(target_arch = "x86_64")]
mod shared;
mod width;

#[cfg(target_arch = "x86_64")]
pub use center::center;
#[cfg(target_arch = "x86_64")]
pub(crate) use chacha::chacha20;
#[cfg(target_arch = "x86_64")]
pub(crate) use complex::{MIN_COMPLEX, integers};
#[cfg(target_feature = "relaxed-simd")]
pub(crate) use elementwise::{mul_into, mul_scalar_assign, reduce_f64};
#[cfg(target_feature = "relaxed-simd")]
pub use lanes::Relaxed;
#[cfg(target_arch = "x86_64")]
pub use lanes::{Avx2, Avx512, Ifma};
#[cfg(any(target_arch = "x86_64", target_feature = "relaxed-simd"))]
pub use ntt::FmaNtt;
#[cfg(target_arch = "x86_64")]
pub use permute::{permute_blocks, permute_strips};
#[cfg(target_arch = "x86_64")]
pub use pointwise::FmaPointwise;
#[cfg(target_arch = "x86_64")]
pub use shared::{DoubleShared, IntegerShared};
pub use width::Width;
#[cfg(target_arch = "x86_64")]
pub(crate) use width::with_width;

/// Primes below this bound may use the kernels of this module.
pub const FMA_PRIME_BOUND: u64 = 1 << 50;
