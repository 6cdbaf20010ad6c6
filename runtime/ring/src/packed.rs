//! Residues in as many bits as their prime has. Keys are read from memory for every product, so their bytes count.
//!
//! Residue k of a tower with b bits starts at bit b·k. Eight residues fill b bytes, so groups of eight start at bytes.

use crate::parallel::*;
use aligned_vec::{AVec, ConstAlign};

use super::buffer::Buffer;
use super::modulus::Modulus;
use super::poly::{Basis, NttForm, Poly};
use super::simd::FMA_PRIME_BOUND;
use super::tower::{Ring, Tower};

/// Bytes that may be read past the last residue.
const PAD: usize = 128;

/// Bits of a residue; primes that no kernel unpacks have whole words.
fn bits(q: Modulus) -> usize {
    if q.value() < FMA_PRIME_BOUND { (u64::BITS - q.value().leading_zeros()) as usize } else { 64 }
}

/// Bytes that are read at a time: few enough to be in the second cache when they are hashed.
const READ: usize = 1 << 18;

type Bytes = AVec<u8, ConstAlign<64>>;

/// A polynomial in NTT form, packed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackedPoly {
    n: usize,
    /// For each tower its bits and where it starts.
    towers: Vec<(usize, usize)>,
    bytes: Bytes,
}

impl PackedPoly {
    /// Packs a polynomial of `ring`.
    pub fn new(ring: &Ring, poly: &Poly<NttForm>) -> Self {
        let n = poly.n();
        let (towers, len) = places(ring, poly.basis());
        let mut bytes = room(len);
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

    /// Packs what `fill` writes, tower by tower: the prime, the position in `basis`, and room for the residues.
    pub fn filled(ring: &Ring, basis: Basis, mut fill: impl FnMut(&Tower, usize, &mut [u64])) -> Self {
        let n = ring.n();
        let (towers, len) = places(ring, basis);
        let mut bytes = room(len);
        let mut residues = Buffer::unset(n);
        for (i, &(bits, start)) in towers.iter().enumerate() {
            fill(ring.tower(basis, i), i, &mut residues);
            bytes.resize(start + (bits * n).div_ceil(8), 0);
            pack(&mut bytes[start..], &residues, bits);
        }
        bytes.resize(len + PAD, 0);
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

/// Bits and start of every tower, and the bytes of all.
fn places(ring: &Ring, basis: Basis) -> (Vec<(usize, usize)>, usize) {
    let mut len = 0;
    let place = |i| {
        let (bits, start) = (bits(ring.tower(basis, i).modulus), len);
        len += (bits * ring.n()).div_ceil(8);
        (bits, start)
    };
    ((0..basis.len()).map(place).collect(), len)
}

fn room(len: usize) -> Bytes {
    AVec::with_capacity(64, len + PAD)
}

/// A packed polynomial from outside, whose residues may be anything.
#[derive(Debug)]
pub struct Unchecked {
    basis: Basis,
    poly: PackedPoly,
}

impl Unchecked {
    /// Whether polynomials over `basis` are the same bytes in memory as they are where every residue has the bits of its prime.
    pub fn is_possible(ring: &Ring, basis: Basis) -> bool {
        (0..basis.len()).all(|i| ring.tower(basis, i).modulus.value() < FMA_PRIME_BOUND)
    }

    /// Takes the bytes that `read` fills in, piece by piece in their order.
    ///
    /// # Errors
    /// Those of `read`.
    ///
    /// # Panics
    /// When it is not possible.
    pub fn read<E>(
        ring: &Ring,
        basis: Basis,
        mut read: impl FnMut(&mut [u8]) -> Result<(), E>,
    ) -> Result<Self, E> {
        assert!(Self::is_possible(ring, basis), "large primes have whole words in memory");
        let (towers, len) = places(ring, basis);
        let mut bytes = room(len);
        while bytes.len() < len {
            let start = bytes.len();
            bytes.resize(len.min(start + READ), 0);
            read(&mut bytes[start..])?;
        }
        bytes.resize(len + PAD, 0);
        Ok(Self { basis, poly: PackedPoly { n: ring.n(), towers, bytes } })
    }

    /// The primes that it has residues for.
    pub fn basis(&self) -> Basis {
        self.basis
    }

    /// The polynomial, if every residue is below its prime and the bits behind the last of each tower are zero.
    pub fn checked(self, ring: &Ring) -> Option<PackedPoly> {
        let Self { basis, poly } = self;
        let is_sound = |i: usize| {
            let (tower, packed) = (ring.tower(basis, i), poly.tower(i));
            let n_last = (packed.bits * packed.len) % 8;
            let is_filled = n_last == 0 || packed.bytes().last().is_none_or(|last| last >> n_last == 0);
            is_filled && tower.kernels.is_reduced(packed)
        };
        (poly.n == ring.n() && (0..basis.len()).all(is_sound)).then_some(poly)
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
    let (residues, rest) = pack_groups(out, residues, bits);
    let (mut held, mut n_held, mut rest) = (0u128, 0, rest);
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

/// Packs groups of eight residues, each with one store of a word that the next one completes. Gives what is left.
fn pack_groups<'r, 'o>(out: &'o mut [u8], residues: &'r [u64], bits: usize) -> (&'r [u64], &'o mut [u8]) {
    // What is begun in a byte and a residue fit a word, and words are not written past the end.
    let n_groups = match bits {
        8..=56 => (residues.len() / 8).min(out.len().saturating_sub(8) / bits),
        _ => 0,
    };
    let starts: [usize; 8] = std::array::from_fn(|k| bits * k / 8);
    let shifts: [usize; 8] = std::array::from_fn(|k| bits * k % 8);
    // From the byte in which a residue starts to that of the next one.
    let steps: [usize; 8] = std::array::from_fn(|k| 8 * (bits * (k + 1) / 8 - starts[k]));
    let (groups, rest) = residues.split_at(8 * n_groups);
    for (i, group) in groups.as_chunks::<8>().0.iter().enumerate() {
        let out = &mut out[i * bits..][..bits + 8];
        let mut begun = 0;
        for k in 0..8 {
            let word = begun | group[k] << shifts[k];
            out[starts[k]..][..8].copy_from_slice(&word.to_le_bytes());
            begun = word >> steps[k];
        }
    }
    (rest, &mut out[n_groups * bits..])
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
