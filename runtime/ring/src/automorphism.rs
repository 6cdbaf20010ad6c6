//! The automorphisms X → X^g as permutations of a transform.
//!
//! Entry i of a transform is the value at ψ^(2·rev(i)+1), so σ_g moves entry j to i where
//! 2·rev(j)+1 = g·(2·rev(i)+1) mod 2N. Low bits of an exponent are high bits of an index, and odd
//! multiplication maps low bits to low bits: aligned blocks of four entries move to aligned blocks of four.

use super::shared::{Places, STRIP, Strip};
#[cfg(target_arch = "x86_64")]
use super::simd;

/// The permutation of one automorphism.
#[derive(Clone, Debug)]
pub struct Automorphism {
    element: usize,
    /// For each block of four entries, the block it comes from.
    blocks: Vec<u32>,
    /// For each block, where its four entries come from inside the source block, two bits each.
    orders: Vec<u8>,
    #[cfg(target_arch = "x86_64")]
    token: Option<simd::Avx2>,
}

impl Automorphism {
    /// σ_g for an odd `element` g, on transforms of size `n` (a power of two, at least four).
    ///
    /// # Panics
    /// When g is even or n is no such size.
    pub fn new(n: usize, element: usize) -> Self {
        assert!(n.is_power_of_two() && n >= 4 && element % 2 == 1, "no automorphism");
        let bits = n.trailing_zeros();
        let rev = |i: usize| i.reverse_bits() >> (usize::BITS - bits);
        let source = |i: usize| {
            let exponent = (2 * rev(i) + 1).wrapping_mul(element) & (2 * n - 1);
            rev(exponent >> 1)
        };
        let (blocks, orders) = (0..n / 4)
            .map(|block| {
                let from: [usize; 4] = std::array::from_fn(|k| source(4 * block + k));
                debug_assert!(from.iter().all(|f| f / 4 == from[0] / 4));
                let order = (0..4).fold(0, |order, k| order | ((from[k] % 4) as u8) << (2 * k));
                ((from[0] / 4) as u32, order)
            })
            .unzip();
        Self {
            element,
            blocks,
            orders,
            #[cfg(target_arch = "x86_64")]
            token: simd::Avx2::detect(),
        }
    }

    /// The exponent g.
    pub fn element(&self) -> usize {
        self.element
    }

    /// The piece of a transform that a piece of its image comes from; pieces are aligned, and their size is a power of two
    /// of at least four.
    pub fn source_piece(&self, piece: usize, size: usize) -> usize {
        self.blocks[piece * (size / 4)] as usize / (size / 4)
    }

    /// As [`Automorphism::apply`] on one piece of the image; `x` is the piece that it comes from.
    ///
    /// # Panics
    /// When the lengths differ or `x` is no such piece.
    pub fn apply_piece(&self, piece: usize, out: &mut [u64], x: &[u64]) {
        assert_eq!(out.len(), x.len());
        self.permute(out, x, self.moves(piece, x.len()));
    }

    /// As [`Automorphism::apply_piece`], into strips at some places of `out`.
    ///
    /// # Panics
    /// When `x` is no such piece, has no whole number of strips, or a place lies outside `out`.
    pub fn apply_strips(&self, piece: usize, out: &mut [Strip], places: Places, x: &[u64]) {
        assert!(x.len().is_multiple_of(STRIP));
        let moves = self.moves(piece, x.len());
        #[cfg(target_arch = "x86_64")]
        if let Some(token) = self.token {
            return simd::permute_strips(token, out, places, x, moves);
        }
        let strips = moves.blocks.chunks_exact(STRIP / 4).zip(moves.orders.chunks_exact(STRIP / 4));
        for (at, (blocks, orders)) in strips.enumerate() {
            let moves = Moves { first: moves.first, blocks, orders };
            permute_blocks(&mut out[places.first + at * places.step].0, x, moves);
        }
    }

    /// out ← σ_g(x), both transforms of one tower.
    ///
    /// # Panics
    /// When a length differs from the ring degree.
    pub fn apply(&self, out: &mut [u64], x: &[u64]) {
        assert!(out.len() == 4 * self.blocks.len() && x.len() == out.len());
        self.permute(out, x, self.moves(0, x.len()));
    }

    /// How a piece of so many entries is moved.
    fn moves(&self, piece: usize, len: usize) -> Moves<'_> {
        let n_blocks = len / 4;
        let range = piece * n_blocks..(piece + 1) * n_blocks;
        let first = (self.source_piece(piece, len) * n_blocks) as u32;
        Moves { first, blocks: &self.blocks[range.clone()], orders: &self.orders[range] }
    }

    fn permute(&self, out: &mut [u64], x: &[u64], moves: Moves<'_>) {
        #[cfg(target_arch = "x86_64")]
        if let Some(token) = self.token {
            return simd::permute_blocks(token, out, x, moves);
        }
        permute_blocks(out, x, moves);
    }
}

/// How aligned blocks of four entries move.
#[derive(Clone, Copy, Debug)]
pub struct Moves<'a> {
    /// The block that the source starts with.
    pub first: u32,
    /// For each block, the block it comes from.
    pub blocks: &'a [u32],
    /// For each block, where its four entries come from inside the source block, two bits each.
    pub orders: &'a [u8],
}

/// The scalar twin of the SIMD permutation.
pub(super) fn permute_blocks(out: &mut [u64], x: &[u64], moves: Moves<'_>) {
    let x = x.as_chunks::<4>().0;
    let sources = moves.blocks.iter().zip(moves.orders);
    for (out, (&block, &order)) in out.as_chunks_mut::<4>().0.iter_mut().zip(sources) {
        let from = &x[(block - moves.first) as usize];
        *out = std::array::from_fn(|k| from[usize::from(order >> (2 * k)) % 4]);
    }
}
