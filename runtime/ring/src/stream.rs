//! Words of the ChaCha20 stream, where vectors make them faster than a library does.

use super::kernels::Instructions;
use super::simd;

/// The stream of one key, without a nonce, from its beginning on.
#[derive(Clone, Debug)]
pub struct Stream {
    width: simd::Width,
    key: [u32; 8],
    /// The next block.
    block: u64,
}

impl Stream {
    /// Words of a block.
    const BLOCK: usize = 8;
    /// What the words that are asked for at a time are a multiple of.
    pub const STEP: usize = 32 * Self::BLOCK;

    /// The stream of a key; none where no vectors may be used.
    pub fn new(instructions: Instructions, key: &[u8; 32]) -> Option<Self> {
        let width = instructions.vectors()?;
        let key = std::array::from_fn(|i| u32::from_le_bytes(std::array::from_fn(|k| key[4 * i + k])));
        Some(Self { width, key, block: 0 })
    }

    /// The next words.
    ///
    /// # Panics
    /// When their number is no multiple of [`Stream::STEP`].
    pub fn fill(&mut self, words: &mut [u64]) {
        assert!(words.len().is_multiple_of(Self::STEP), "whole steps only");
        #[cfg(target_arch = "x86_64")]
        simd::with_width!(self.width, s => simd::chacha20(s, &self.key, self.block, words));
        self.block += (words.len() / Self::BLOCK) as u64;
    }
}

#[cfg(test)]
mod tests {
    use rand_chacha::ChaCha20Rng;
    use rand_core::{RngCore, SeedableRng};

    use super::*;

    #[test]
    fn the_stream_is_that_of_the_library() {
        let key: [u8; 32] = std::array::from_fn(|i| (i * 37 + 11) as u8);
        for instructions in [Instructions::Best, Instructions::Avx512, Instructions::Avx2] {
            let Some(mut stream) = Stream::new(instructions, &key) else { continue };
            let mut library = ChaCha20Rng::from_seed(key);
            for n_steps in [1, 3, 8] {
                let mut words = vec![0; n_steps * Stream::STEP];
                stream.fill(&mut words);
                let expected: Vec<u64> = words.iter().map(|_| library.next_u64()).collect();
                assert_eq!(words, expected, "{instructions:?}, {n_steps} steps");
            }
        }
    }

    #[test]
    fn the_block_counter_has_64_bits() {
        let key = [7; 32];
        for instructions in [Instructions::Best, Instructions::Avx2] {
            let Some(mut stream) = Stream::new(instructions, &key) else { continue };
            let mut library = ChaCha20Rng::from_seed(key);
            stream.block = (1 << 32) - 5;
            library.set_word_pos(16 * u128::from(stream.block));
            let mut words = vec![0; Stream::STEP];
            stream.fill(&mut words);
            assert!(words.iter().all(|&word| word == library.next_u64()), "{instructions:?}");
        }
    }

    #[test]
    fn nothing_is_promised_without_vectors() {
        assert!(Stream::new(Instructions::Scalar, &[0; 32]).is_none());
    }
}
