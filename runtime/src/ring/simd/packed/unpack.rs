//! Packed residues to words or doubles.

use std::arch::x86_64::*;

use crate::ring::packed::Packed;
use crate::ring::simd::lanes::{Avx2, Lanes};
use crate::ring::simd::prime::from_int;

/// How four residues of a group of eight are brought into place.
struct Quad {
    /// Bytes from the group to the 16 bytes with the first two of them, and to those with the others.
    starts: [usize; 2],
    /// For each byte of the four words, where among the 16 it comes from.
    bytes: [u64; 4],
    /// Bits before each residue.
    shifts: [u64; 4],
}

impl Quad {
    fn new(bits: usize, first: usize) -> Self {
        let starts = [bits * first / 8, bits * (first + 2) / 8];
        let bytes = std::array::from_fn(|k| {
            let at = bits * (first + k) / 8 - starts[k / 2];
            u64::from_le_bytes(std::array::from_fn(|byte| (at + byte) as u8))
        });
        Self { starts, bytes, shifts: std::array::from_fn(|k| (bits * (first + k) % 8) as u64) }
    }
}

/// out ← the residues, as words or as the bits of doubles; as many as there are, of at most 50 bits.
///
/// # Panics
/// When the lengths differ or there are more bits.
pub(in crate::ring::simd) fn unpack(s: Avx2, out: &mut [u64], packed: Packed<'_>, doubles: bool) {
    let bits = packed.bits();
    assert!(out.len() == packed.len() && bits <= 50, "nothing to unpack");
    let quads = [Quad::new(bits, 0), Quad::new(bits, 4)];
    let mask = (1u64 << bits) - 1;
    let (groups, tail) = out.as_chunks_mut::<8>();
    let bytes = packed.padded();
    s.run(
        #[inline(always)]
        || {
            for (i, group) in groups.iter_mut().enumerate() {
                let group = group.as_chunks_mut::<4>().0;
                for (quad, out) in quads.iter().zip(group) {
                    let [low, high] = quad.starts.map(|start| {
                        bytes[i * bits + start..].first_chunk::<16>().expect("packed residues are padded")
                    });
                    // SAFETY: the token proves that the CPU has AVX2.
                    let words = unsafe { words(low, high, quad, mask) };
                    s.store(out, if doubles { from_int(s, words) } else { words });
                }
            }
        },
    );
    let done = 8 * groups.len();
    let rest = packed.piece(done..packed.len()).residues();
    tail.iter_mut()
        .zip(rest)
        .for_each(|(out, residue)| *out = if doubles { (residue as f64).to_bits() } else { residue });
}

/// Four residues.
#[inline]
#[target_feature(enable = "avx2")]
fn words(low: &[u8; 16], high: &[u8; 16], quad: &Quad, mask: u64) -> __m256d {
    // SAFETY: the references cover what is read.
    let (low, high, bytes, shifts) = unsafe {
        (
            _mm_loadu_si128(low.as_ptr().cast()),
            _mm_loadu_si128(high.as_ptr().cast()),
            _mm256_loadu_si256(quad.bytes.as_ptr().cast()),
            _mm256_loadu_si256(quad.shifts.as_ptr().cast()),
        )
    };
    let pairs = _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(low), high);
    let shifted = _mm256_srlv_epi64(_mm256_shuffle_epi8(pairs, bytes), shifts);
    _mm256_castsi256_pd(_mm256_and_si256(shifted, _mm256_set1_epi64x(mask as i64)))
}
