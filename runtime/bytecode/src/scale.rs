//! The factor between a real value and the integer that stores it.
//!
//! Scales are products and quotients of primes and plaintext scales, kept as `f64`. Each step rounds once,
//! so two ways to compute one scale differ by a few units in the last place. One policy decides equality:
//! [`Scale::agrees`] accepts a relative difference of 2^-40, far above the rounding of any chain and far
//! below the precision of any ciphertext.

use serde::{Deserialize, Serialize};

/// Relative difference up to which two scales are the same.
const TOLERANCE: f64 = 1.0 / (1u64 << 40) as f64;

/// A positive, finite scale. `==` compares bits; use [`Scale::agrees`] to ask whether operands may meet.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Scale(f64);

/// A scale that is zero, negative, infinite or not a number.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("{0} is not a scale")]
pub struct ScaleError(pub f64);

impl Scale {
    /// The scale of plain integers.
    pub const ONE: Scale = Scale(1.0);

    /// Accepts any positive normal number.
    ///
    /// # Errors
    /// Zero, negative, subnormal, infinite or not a number.
    pub fn new(value: f64) -> Result<Self, ScaleError> {
        if value.is_normal() && value > 0.0 { Ok(Self(value)) } else { Err(ScaleError(value)) }
    }

    /// The scale 2^`bits`, clamped to what a scale can be.
    pub fn from_log2(bits: f64) -> Self {
        Self(bits.exp2()).clamped()
    }

    /// The factor itself.
    pub fn value(self) -> f64 {
        self.0
    }

    /// The factor in bits.
    pub fn log2(self) -> f64 {
        self.0.log2()
    }

    /// Scale of a product.
    #[must_use]
    pub fn times(self, other: Scale) -> Scale {
        Self(self.0 * other.0).clamped()
    }

    /// Scale that times `other` gives `self`.
    #[must_use]
    pub fn over(self, other: Scale) -> Scale {
        Self(self.0 / other.0).clamped()
    }

    /// Scale of a square.
    #[must_use]
    pub fn squared(self) -> Scale {
        self.times(self)
    }

    /// Half the scale.
    #[must_use]
    pub fn halved(self) -> Scale {
        Self(self.0 / 2.0).clamped()
    }

    /// Scale after a rescale by `prime`.
    #[must_use]
    pub fn rescaled(self, prime: u64) -> Scale {
        Self(self.0 / prime as f64).clamped()
    }

    /// Whether two values may be added: the one equality policy.
    pub fn agrees(self, other: Scale) -> bool {
        (self.0 - other.0).abs() <= TOLERANCE * self.0.max(other.0)
    }

    /// Keeps extreme products inside the type; the checker refuses such scales long before.
    fn clamped(self) -> Self {
        Self(self.0.clamp(f64::MIN_POSITIVE, f64::MAX))
    }
}

impl TryFrom<f64> for Scale {
    type Error = ScaleError;

    fn try_from(value: f64) -> Result<Self, ScaleError> {
        Self::new(value)
    }
}

impl From<Scale> for f64 {
    fn from(scale: Scale) -> f64 {
        scale.0
    }
}

impl std::fmt::Display for Scale {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "2^{:.4}", self.log2())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_values_are_not_scales() {
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-310] {
            assert!(Scale::new(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn two_ways_to_one_scale_agree() {
        let (x, w, q) = (Scale::from_log2(22.3), Scale::from_log2(16.1), 274_877_908_993);
        let one = x.squared().times(w).rescaled(q);
        let other = x.times(w.rescaled(q)).times(x);
        assert!(one.agrees(other));
    }

    #[test]
    fn a_part_in_a_billion_disagrees() {
        let scale = Scale::from_log2(40.0);
        assert!(!scale.agrees(Scale::new(scale.value() * (1.0 + 1e-9)).unwrap()));
    }

    #[test]
    fn the_weight_scale_lands_on_the_canonical_one() {
        let (x, q) = (Scale::from_log2(22.0), 274_877_908_993);
        let canonical = Scale::from_log2(21.7);
        let weight = canonical.times(Scale::new(q as f64).unwrap()).over(x.squared());
        assert!(x.squared().times(weight).rescaled(q).agrees(canonical));
    }
}
