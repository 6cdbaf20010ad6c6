//! The seed expander: uniform polynomials that anyone can grow again from a published seed.

use rand_chacha::ChaCha20Rng;
use rand_core::{RngCore, SeedableRng};

use super::Context;
use fhe_ring::{Basis, NttForm, Poly};

const UNIFORM: &str = "fhec 1 uniform half of keys and ciphertexts";

/// The seed of a uniform half; published with the object it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublicSeed(pub [u8; 32]);

impl PublicSeed {
    /// The `index`-th uniform polynomial of this seed. Each tower has its own stream, so a polynomial over
    /// fewer towers is a part of the one over more.
    pub fn uniform_poly(&self, context: &Context, basis: Basis, index: u64) -> Poly<NttForm> {
        let ring = context.ring();
        let mut poly = ring.zero(basis);
        ring.for_each_tower(&mut poly, |tower, i, residues| {
            let mut material = [0; 48];
            material[..32].copy_from_slice(&self.0);
            material[32..40].copy_from_slice(&index.to_le_bytes());
            material[40..].copy_from_slice(&(ring.tower_index(basis, i) as u64).to_le_bytes());
            let mut rng = ChaCha20Rng::from_seed(blake3::derive_key(UNIFORM, &material));
            fill_uniform(&mut rng, tower.modulus.value(), residues);
        });
        poly
    }
}

/// Uniform residues by rejection; the values are public, so the time may depend on them.
fn fill_uniform(rng: &mut impl RngCore, q: u64, out: &mut [u64]) {
    let mask = u64::MAX >> q.leading_zeros();
    let mut words = [[0; 8]; 512];
    let mut filled = 0;
    while filled < out.len() {
        // No more than may still be needed: every word of the stream is one candidate, however many are taken at a time.
        let n_words = words.len().min(out.len() - filled);
        rng.fill_bytes(words[..n_words].as_flattened_mut());
        for word in &words[..n_words] {
            let candidate = u64::from_le_bytes(*word) & mask;
            if candidate < q {
                out[filled] = candidate;
                filled += 1;
            }
        }
    }
}
