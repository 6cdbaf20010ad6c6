//! Seeds that repeat, for tests, benches and golden files. What they protect is public.
//!
//! A crate of its own, so that no tool has this code: `tests/tests/layers.rs` holds that none of them links it, and
//! `runtime/tests/cli.rs` that the built command does not contain it.
#![forbid(unsafe_code)]

use fhe_secret::SeedSource;
use rand_core::{CryptoRng, RngCore, impls};

const CONTEXT: &str = "fhec 1 deterministic seeds for tests";
const BLOCK: usize = 32;

/// The same seeds every time.
pub fn fixed_seeds(seed: u64) -> SeedSource {
    let key = blake3::derive_key(CONTEXT, &seed.to_le_bytes());
    SeedSource::from_rng(Blocks { key, next: 0 })
}

/// Hashes of a counter.
struct Blocks {
    key: [u8; BLOCK],
    next: u64,
}

impl RngCore for Blocks {
    fn next_u32(&mut self) -> u32 {
        impls::next_u32_via_fill(self)
    }

    fn next_u64(&mut self) -> u64 {
        impls::next_u64_via_fill(self)
    }

    fn fill_bytes(&mut self, bytes: &mut [u8]) {
        for block in bytes.chunks_mut(BLOCK) {
            let hash = blake3::keyed_hash(&self.key, &self.next.to_le_bytes());
            block.copy_from_slice(&hash.as_bytes()[..block.len()]);
            self.next += 1;
        }
    }
}

// Unpredictable to whoever does not know the number, which everybody does.
impl CryptoRng for Blocks {}
