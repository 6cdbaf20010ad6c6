//! Permutation of aligned blocks of four entries.

use std::arch::x86_64::*;

use super::lanes::{Avx2, Lanes};
use crate::automorphism::Moves;
use crate::shared::{Places, STRIP, Strip};

/// out\[b\] ← x\[blocks\[b\] - first\], reordered inside by `orders\[b\]` (two bits per entry).
///
/// # Panics
/// When the lengths do not fit or a block is out of range.
pub fn permute_blocks(s: Avx2, out: &mut [u64], x: &[u64], moves: Moves<'_>) {
    let Moves { first, blocks, orders } = moves;
    assert!(out.len() == 4 * blocks.len() && orders.len() == blocks.len());
    s.run(
        #[inline(always)]
        || move_blocks(s, out.as_chunks_mut().0, x.as_chunks().0, first, blocks, orders),
    );
}

/// As [`permute_blocks`], into strips at some places.
///
/// # Panics
/// When a block or a place is out of range.
pub fn permute_strips(s: Avx2, out: &mut [Strip], places: Places, x: &[u64], moves: Moves<'_>) {
    const BLOCKS: usize = STRIP / 4;
    let strips = moves.blocks.as_chunks::<BLOCKS>().0.iter().zip(moves.orders.as_chunks::<BLOCKS>().0);
    s.run(
        #[inline(always)]
        || {
            for (at, (blocks, orders)) in strips.enumerate() {
                let strip = out[places.first + at * places.step].0.as_chunks_mut().0;
                move_blocks(s, strip, x.as_chunks().0, moves.first, blocks, orders);
            }
        },
    );
}

#[inline(always)]
fn move_blocks(s: Avx2, out: &mut [[u64; 4]], x: &[[u64; 4]], first: u32, blocks: &[u32], orders: &[u8]) {
    for ((out, &block), &order) in out.iter_mut().zip(blocks).zip(orders) {
        let (from, lanes) = (s.load(&x[(block - first) as usize]), s.load(&LANES[usize::from(order)]));
        // SAFETY: the token proves that the CPU has AVX2.
        s.store(out, unsafe { permute(from, lanes) });
    }
}

/// The four doubles of `from` in the order of `lanes`, given as pairs of 32-bit indices.
#[inline]
#[target_feature(enable = "avx2")]
fn permute(from: __m256d, lanes: __m256d) -> __m256d {
    _mm256_castsi256_pd(_mm256_permutevar8x32_epi32(_mm256_castpd_si256(from), _mm256_castpd_si256(lanes)))
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
