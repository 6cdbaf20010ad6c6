//! How many digits of a decrypted score may be seen.
//!
//! The digits below the noise of a ciphertext are a linear function of the secret key: whoever has enough of them and the
//! ciphertexts solves for the key. So the client computes for itself how much noise every evaluation leaves at least, from its
//! own parameters and the level and scale of the output: a fresh encryption has an error in every coefficient, and a
//! rescale rounds both halves of a ciphertext. A score is rounded to a power of ten that is at least
//! [`DEVIATIONS`] standard deviations of that. The error that the program predicts may make the unit
//! coarser, never finer.

use fhe_bytecode::Interface;
use fhe_bytecode::noise::NoiseModel;

/// Standard deviations of the least noise in the finest unit.
pub const DEVIATIONS: f64 = 8.0;
/// Digits after the point of a score at most.
const MAX_DECIMALS: i32 = 6;
/// Digits after the point that decide at most; more would overflow where scores are large.
const MAX_DECIDING_DECIMALS: i32 = 30;
/// A double has no larger power of ten.
const MAX_EXPONENT: i32 = 308;

/// The unit that scores of a program are rounded to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Resolution {
    exponent: i32,
    error: f64,
}

impl Resolution {
    /// The unit for the scores of a program.
    pub fn of(interface: &Interface) -> Self {
        let error = interface.spec().prediction.max_abs_error;
        let least = DEVIATIONS * noise_floor(interface);
        Self::at_least(least.max(error), error, MAX_DECIMALS)
    }

    /// The finest unit that anything may be decided by which is seen, such as the best class: that of the least noise.
    pub fn finest(interface: &Interface) -> Self {
        Self::at_least(DEVIATIONS * noise_floor(interface), 0.0, MAX_DECIDING_DECIMALS)
    }

    /// The unit for numbers that are computed from visible ones and are known to within `error`.
    pub(crate) fn for_error(error: f64) -> Self {
        Self::at_least(error, error, MAX_DECIMALS)
    }

    /// What the program predicts.
    pub(crate) fn error(&self) -> f64 {
        self.error
    }

    /// The smallest power of ten that is not below `unit`.
    fn at_least(unit: f64, error: f64, decimals: i32) -> Self {
        // What is no number hides everything.
        let guess = if unit.is_finite() { unit.log10().ceil() } else { f64::from(MAX_EXPONENT) };
        let guess = guess.clamp(f64::from(-decimals), f64::from(MAX_EXPONENT));
        // A whole number between these two.
        #[cfg_attr(not(test), expect(clippy::cast_possible_truncation))]
        let mut exponent = guess as i32;
        while exponent < MAX_EXPONENT && power(exponent) < unit {
            exponent += 1;
        }
        Self { exponent, error }
    }

    /// The unit itself, a power of ten.
    pub fn unit(&self) -> f64 {
        power(self.exponent)
    }

    /// What two scores may differ by although their exact values are equal: twice the unit, and twice the predicted error.
    pub fn doubt(&self) -> f64 {
        2.0 * self.unit().max(self.error)
    }

    /// A score as it may be seen.
    pub fn round(&self, score: f64) -> f64 {
        let rounded = match self.exponent {
            // Dividing by a whole power of ten gives the nearest double of the decimal number.
            ..=0 => (score * power(-self.exponent)).round() / power(-self.exponent),
            _ => (score / self.unit()).round() * self.unit(),
        };
        // Adding zero turns minus zero into zero.
        rounded + 0.0
    }
}

/// Standard deviation that any evaluation leaves at least in a score, in units of the score.
pub fn noise_floor(interface: &Interface) -> f64 {
    // What the ring of the result leaves at least: keeping some coefficients of a larger one makes noise smaller.
    let model = NoiseModel::new(interface.params().at(interface.output_level()));
    // Which of the two stays alone in a result is the program's choice; the smaller one is certain.
    let variance = model.fresh().min(model.rescale_rounding());
    variance.sqrt() / interface.output_scale().value()
}

fn power(exponent: i32) -> f64 {
    10f64.powi(exponent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unit_is_the_next_power_of_ten() {
        for (unit, exponent) in
            [(0.5, 0), (1.0, 0), (1.1, 1), (0.03, -1), (1e-3, -3), (250.0, 3), (1e-30, -6), (0.0, -6)]
        {
            assert_eq!(Resolution::at_least(unit, 0.0, MAX_DECIMALS).exponent, exponent, "{unit}");
        }
        // Its logarithm is that of a thousand.
        assert_eq!(Resolution::at_least(1000f64.next_up(), 0.0, MAX_DECIMALS).exponent, 4);
        for unit in [f64::NAN, f64::INFINITY, 1e308, 1.7e308] {
            assert_eq!(Resolution::at_least(unit, 0.0, MAX_DECIMALS).exponent, MAX_EXPONENT, "{unit}");
        }
    }

    #[test]
    fn rounding_keeps_no_digit_below_the_unit() {
        let round = |unit, score| Resolution::at_least(unit, 0.0, MAX_DECIMALS).round(score);
        assert_eq!(round(0.01, 0.12345), 0.12);
        // Three times a tenth is no 0.3.
        assert_eq!(round(0.1, 0.31), 0.3);
        assert_eq!(round(1.0, -3.5), -4.0);
        assert_eq!(round(300.0, 1499.9), 1000.0);
        assert_eq!(round(1e9, 4.9e8), 0.0);
        assert!(round(0.1, -0.01).is_sign_positive());
    }
}
