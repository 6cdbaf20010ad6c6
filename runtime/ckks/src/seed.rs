//! The seed expander: uniform polynomials that anyone can grow again from a published seed.

use rand_chacha::ChaCha20Rng;
use rand_core::{RngCore, SeedableRng};

use super::Context;
use fhe_ring::kernels::Instructions;
use fhe_ring::{Basis, NttForm, PackedPoly, Poly, Stream};

const UNIFORM: &str = "fhec 1 uniform half of keys and ciphertexts";

/// The seed of a uniform half; published with the object it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublicSeed(pub [u8; 32]);

impl PublicSeed {
    /// The `index`-th uniform polynomial of this seed. Each tower has its own stream, so a polynomial over
    /// fewer towers is a part of the one over more.
    pub fn uniform_poly(&self, context: &Context, basis: Basis, index: u64) -> Poly<NttForm> {
        let ring = context.ring();
        let mut poly = ring.unset(basis);
        ring.for_each_tower(&mut poly, |tower, i, residues| {
            let seed = self.of_tower(index, ring.tower_index(basis, i));
            fill_uniform(ring.instructions(), seed, tower.modulus.value(), residues);
        });
        poly
    }

    /// The same, packed tower by tower, each while it is at hand.
    pub(super) fn uniform_packed(&self, context: &Context, basis: Basis, index: u64) -> PackedPoly {
        let ring = context.ring();
        PackedPoly::filled(ring, basis, |tower, i, residues| {
            let seed = self.of_tower(index, ring.tower_index(basis, i));
            fill_uniform(ring.instructions(), seed, tower.modulus.value(), residues);
        })
    }

    fn of_tower(&self, index: u64, tower: usize) -> [u8; 32] {
        let mut material = [0; 48];
        material[..32].copy_from_slice(&self.0);
        material[32..40].copy_from_slice(&index.to_le_bytes());
        material[40..].copy_from_slice(&(tower as u64).to_le_bytes());
        blake3::derive_key(UNIFORM, &material)
    }
}

/// Words of a stream that are looked at together.
const WORDS: usize = 2 * Stream::STEP;

/// Uniform residues by rejection: every word of the stream is one candidate, however many are taken at a time. The values are
/// public, so the time may depend on them.
fn fill_uniform(instructions: Instructions, seed: [u8; 32], q: u64, out: &mut [u64]) {
    match Stream::new(instructions, &seed) {
        Some(mut stream) => accept(q, out, |words| stream.fill(words)),
        None => {
            let mut rng = ChaCha20Rng::from_seed(seed);
            accept(q, out, |words| words.iter_mut().for_each(|word| *word = rng.next_u64()));
        }
    }
}

/// Fills `out` with what is below q of the lowest bits of the words that `next` gives.
fn accept(q: u64, out: &mut [u64], mut next: impl FnMut(&mut [u64])) {
    let mask = u64::MAX >> q.leading_zeros();
    // Whether it is rare that one of eight is none.
    let is_dense = q > mask - mask / 256;
    let mut words = [0; WORDS];
    let mut filled = 0;
    while filled < out.len() {
        let left = &mut out[filled..];
        let words = &mut words[..WORDS.min(left.len().next_multiple_of(Stream::STEP))];
        next(words);
        if words.len() < WORDS || left.len() < WORDS {
            let residues = words.iter().map(|word| word & mask).filter(|&residue| residue < q);
            for (left, residue) in left.iter_mut().zip(residues) {
                *left = residue;
                filled += 1;
            }
            continue;
        }
        let mut n = 0;
        for group in words.as_chunks::<8>().0 {
            let residues = group.map(|word| word & mask);
            if is_dense && residues.iter().all(|&residue| residue < q) {
                left[n..n + 8].copy_from_slice(&residues);
                n += 8;
                continue;
            }
            // Every candidate is written, and the next one over it if it is none.
            for residue in residues {
                left[n.min(WORDS - 1)] = residue;
                n += usize::from(residue < q);
            }
        }
        filled += n;
    }
}
