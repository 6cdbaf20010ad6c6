//! Permutation of aligned blocks of four entries.

use std::arch::x86_64::*;

use super::FmaToken;
use super::lanes::{load, store};

/// out\[b\] ← x\[blocks\[b\]\], reordered inside by `orders\[b\]` (two bits per entry).
///
/// # Panics
/// When the lengths do not fit or a block is out of range.
pub fn permute_blocks(_: FmaToken, out: &mut [u64], x: &[u64], blocks: &[u32], orders: &[u8]) {
    assert!(out.len() == 4 * blocks.len() && orders.len() == blocks.len());
    // SAFETY: the token proves that the CPU has AVX2.
    unsafe { permute(out, x, blocks, orders) }
}

#[target_feature(enable = "avx2,fma")]
fn permute(out: &mut [u64], x: &[u64], blocks: &[u32], orders: &[u8]) {
    let x = x.as_chunks::<4>().0;
    for ((out, &block), &order) in out.as_chunks_mut::<4>().0.iter_mut().zip(blocks).zip(orders) {
        let from = _mm256_castpd_si256(load(&x[block as usize]));
        let lanes = _mm256_castpd_si256(load(&LANES[usize::from(order)]));
        store(out, _mm256_castsi256_pd(_mm256_permutevar8x32_epi32(from, lanes)));
    }
}

/// For each order, the indices of the eight 32-bit halves, packed in pairs.
static LANES: [[u64; 4]; 256] = lane_table();

const fn lane_table() -> [[u64; 4]; 256] {
    let mut table = [[0; 4]; 256];
    let mut i = 0;
    while i < 1024 {
        let (order, k) = (i / 4, i % 4);
        let entry = (order as u64 >> (2 * k)) & 3;
        table[order][k] = (2 * entry) | (2 * entry + 1) << 32;
        i += 1;
    }
    table
}
