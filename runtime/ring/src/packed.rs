//! Residues in as many bits as their prime has. Keys are read from memory for every product, so their bytes count.
//!
//! Residue k of a tower with b bits starts at bit b·k. Eight residues fill b bytes, so groups of eight start at bytes.

use crate::parallel::*;
use aligned_vec::{AVec, ConstAlign};

use super::modulus::Modulus;
use super::poly::{NttForm, Poly};
use super::simd::FMA_PRIME_BOUND;
use super::tower::Ring;

/// Bytes that may be read past the last residue.
const PAD: usize = 128;

/// Bits of a residue; primes that no kernel unpacks have whole words.
fn bits(q: Modulus) -> usize {
    if q.value() < FMA_PRIME_BOUND { (u64::BITS - q.value().leading_zeros()) as usize } else { 64 }
}

/// A polynomial in NTT form, packed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackedPoly {
    n: usize,
    /// For each tower its bits and where it starts.
    towers: Vec<(usize, usize)>,
    bytes: AVec<u8, ConstAlign<64>>,
}

impl PackedPoly {
    /// Packs a polynomial of `ring`.
    pub fn new(ring: &Ring, poly: &Poly<NttForm>) -> Self {
        let n = poly.n();
        let mut towers = Vec::with_capacity(poly.basis().len());
        let mut len = 0;
        for i in 0..poly.basis().len() {
            let bits = bits(ring.tower(poly.basis(), i).modulus);
            towers.push((bits, len));
            len += (bits * n).div_ceil(8);
        }
        let mut bytes = AVec::with_capacity(64, len + PAD);
        bytes.resize(len + PAD, 0);
        let mut parts: Vec<(usize, &[u64], &mut [u8])> = Vec::with_capacity(towers.len());
        let mut rest: &mut [u8] = &mut bytes;
        for (i, &(bits, _)) in towers.iter().enumerate() {
            let (part, after) = std::mem::take(&mut rest).split_at_mut((bits * n).div_ceil(8));
            parts.push((bits, poly.tower(i), part));
            rest = after;
        }
        parts.into_par_iter().for_each(|(bits, residues, out)| pack(out, residues, bits));
        Self { n, towers, bytes }
    }

    /// The tower at position `i`.
    pub fn tower(&self, i: usize) -> Packed<'_> {
        let (bits, start) = self.towers[i];
        Packed { bits, bytes: &self.bytes[start..], len: self.n }
    }

    /// All residues, tower by tower.
    pub fn residues(&self) -> Vec<u64> {
        (0..self.towers.len()).flat_map(|i| self.tower(i).residues()).collect()
    }

    /// Bytes of the residues.
    pub fn bytes(&self) -> usize {
        self.bytes.len() - PAD
    }
}

/// Residues of one tower, or a range of them.
#[derive(Clone, Copy, Debug)]
pub struct Packed<'a> {
    bits: usize,
    /// From the first residue to 128 bytes past the last one, at least.
    bytes: &'a [u8],
    len: usize,
}

impl<'a> Packed<'a> {
    /// Bits of a residue.
    pub fn bits(&self) -> usize {
        self.bits
    }

    /// Number of residues.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// From the first byte on, at least 128 bytes more than there are.
    pub(super) fn padded(&self) -> &'a [u8] {
        self.bytes
    }

    /// The bytes of the residues.
    pub fn bytes(&self) -> &'a [u8] {
        &self.bytes[..(self.bits * self.len).div_ceil(8)]
    }

    /// Some of the residues.
    ///
    /// # Panics
    /// When the range does not start at a multiple of eight or is too long.
    pub fn piece(&self, range: std::ops::Range<usize>) -> Self {
        assert!(range.start.is_multiple_of(8) && range.end <= self.len, "no such piece");
        Self { bits: self.bits, bytes: &self.bytes[range.start / 8 * self.bits..], len: range.len() }
    }

    /// The residues as words.
    pub fn residues(self) -> impl Iterator<Item = u64> + 'a {
        let Self { bits, bytes, len } = self;
        (0..len).map(move |k| {
            let at = bits * k / 8;
            let word = u64::from_le_bytes(*bytes[at..].first_chunk().expect("there is a pad"));
            word >> (bits * k % 8) & (u64::MAX >> (64 - bits))
        })
    }
}

/// Writes residues of so many bits each, lowest bit first; the last byte ends with zero bits.
///
/// # Panics
/// When `out` has not as many bytes as that takes.
pub fn pack(out: &mut [u8], residues: &[u64], bits: usize) {
    assert_eq!(out.len(), (bits * residues.len()).div_ceil(8));
    let (mut held, mut n_held, mut rest) = (0u128, 0, out);
    for &residue in residues {
        held |= u128::from(residue) << n_held;
        n_held += bits;
        if n_held >= 64 {
            let (word, after) = rest.split_at_mut(8);
            word.copy_from_slice(&(held as u64).to_le_bytes());
            (held, n_held, rest) = (held >> 64, n_held - 64, after);
        }
    }
    rest.copy_from_slice(&(held as u64).to_le_bytes()[..rest.len()]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn residues_of_any_size_survive() {
        for bits in (1..=50).chain([64]) {
            let largest = u64::MAX >> (64 - bits);
            let residues: Vec<u64> = (0..40u64)
                .map(|k| k.wrapping_mul(0x9E37_79B9_7F4A_7C15) & largest)
                .chain([largest])
                .collect();
            let len = (bits * residues.len()).div_ceil(8);
            let mut bytes = vec![0; len + PAD];
            pack(&mut bytes[..len], &residues, bits);
            let packed = Packed { bits, bytes: &bytes, len: residues.len() };
            assert_eq!(packed.residues().collect::<Vec<_>>(), residues, "{bits} bits");
            assert_eq!(packed.piece(16..41).residues().collect::<Vec<_>>(), residues[16..], "{bits} bits");
        }
    }
}
