//! Noise whose slots are real, and noise whose slots are complex.
//!
//! Slots are complex and numbers real, so only the real part of noise is in a number. The imaginary part is nothing to it until
//! a complex sum lets it in. Rescales, key switches and fresh encryptions add noise with both parts, of one variance; what
//! rounds in real weights is real, and so is all that complex sums leave when they are taken apart.

use std::ops::{Add, Mul};

/// Variance of the real part of a slot, by whether there is an imaginary part of the same variance.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Noise {
    /// Of noise that has none.
    pub real: f64,
    /// Of noise that has one.
    pub complex: f64,
}

/// Factors on the variance of what noise in a value becomes, beside those of its real part.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reach {
    /// Of real noise.
    pub real: f64,
    /// Of complex noise.
    pub complex: f64,
}

impl Noise {
    /// Noise without an imaginary part.
    pub fn real(variance: f64) -> Self {
        Self { real: variance, complex: 0.0 }
    }

    /// Noise with one.
    pub fn complex(variance: f64) -> Self {
        Self { real: 0.0, complex: variance }
    }

    /// Variance of the real part of a slot.
    pub fn total(self) -> f64 {
        self.real + self.complex
    }

    /// What it becomes.
    pub fn reaching(self, reach: Reach) -> f64 {
        self.real * reach.real + self.complex * reach.complex
    }
}

impl Reach {
    /// Nothing but the real part.
    pub const PLAIN: Self = Self { real: 1.0, complex: 1.0 };

    /// The larger factors of both.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        Self { real: self.real.max(other.real), complex: self.complex.max(other.complex) }
    }
}

impl Add for Noise {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { real: self.real + other.real, complex: self.complex + other.complex }
    }
}

impl Mul<f64> for Noise {
    type Output = Self;

    fn mul(self, factor: f64) -> Self {
        Self { real: self.real * factor, complex: self.complex * factor }
    }
}
