//! Kernels against their scalar twins and transforms against schoolbook products.

mod convert;
mod coverage;
mod kernels;
mod known;
mod shared;
mod transform;

use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};

use crate::kernels::Instructions;

/// NTT primes for rings up to 2^15, at the sizes where code paths change.
const PRIMES: [u64; 9] = [
    65_537,
    274_876_334_081,
    70_368_743_587_841,
    70_368_744_570_881,
    140_737_487_306_753,
    140_737_488_486_401,
    1_125_899_904_679_937,
    1_125_899_908_022_273,
    1_152_921_504_606_584_833,
];

/// Every choice of kernels; those that the CPU lacks fall back to scalar code.
pub(crate) const INSTRUCTIONS: [Instructions; 4] =
    [Instructions::Scalar, Instructions::Avx2, Instructions::Avx512, Instructions::Best];

pub(crate) fn rng(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

/// Residues with the extremes first.
fn residues(rng: &mut ChaCha8Rng, q: u64, len: usize) -> Vec<u64> {
    let extremes = [0, 1, q - 1, q / 2, q / 2 + 1, q - 2];
    (0..len).map(|i| if i < 6 { extremes[i] } else { rng.next_u64() % q }).collect()
}
