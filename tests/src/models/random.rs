//! Seeded normal and uniform numbers.

use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};

/// A seeded source of the few distributions the generator needs.
#[derive(Debug)]
pub struct Random(ChaCha8Rng);

impl Random {
    /// Equal seeds give equal numbers on every machine.
    pub fn new(seed: u64) -> Self {
        Random(ChaCha8Rng::seed_from_u64(seed))
    }

    /// Uniform in [low, high).
    pub fn uniform(&mut self, low: f32, high: f32) -> f32 {
        let unit = (self.0.next_u32() >> 8) as f32 / (1u32 << 24) as f32;
        low + (high - low) * unit
    }

    /// Uniform in 0..n.
    ///
    /// # Panics
    /// Panics if `n` is zero.
    pub fn below(&mut self, n: usize) -> usize {
        (self.0.next_u64() % n as u64) as usize
    }

    /// Normal with mean zero and the given standard deviation (Box-Muller).
    pub fn normal(&mut self, deviation: f32) -> f32 {
        let radius = (-2.0 * f64::from(1.0 - self.uniform(0.0, 1.0)).ln()).sqrt();
        let angle = std::f64::consts::TAU * f64::from(self.uniform(0.0, 1.0));
        deviation * (radius * angle.cos()) as f32
    }

    /// `n` normal numbers.
    pub fn normals(&mut self, n: usize, deviation: f32) -> Vec<f32> {
        (0..n).map(|_| self.normal(deviation)).collect()
    }
}
