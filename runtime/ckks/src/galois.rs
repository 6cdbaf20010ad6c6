//! Automorphisms of the ring as the slots see them: rotations and the conjugation.

use std::fmt::{self, Display, Formatter};

use super::Context;

/// A cyclic rotation to the left: slot s of the result is slot s + steps of the operand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rotation(usize);

/// An automorphism: what is done to the slots, with a key of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Galois {
    /// They move.
    Rotation(Rotation),
    /// Every number becomes its conjugate.
    Conjugation,
}

impl Rotation {
    /// No rotation.
    pub const ZERO: Rotation = Rotation(0);

    /// A rotation by any number of steps, negative ones to the right; kept in [0, slots).
    pub fn new(steps: i64, context: &Context) -> Self {
        Self(steps.rem_euclid(context.slots() as i64) as usize)
    }

    /// Steps to the left, in [0, slots).
    pub fn steps(self) -> usize {
        self.0
    }

    /// Whether nothing moves.
    pub fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// The exponent g = 5^steps mod 2N of the automorphism X → X^g that rotates.
    pub(super) fn galois_element(self, n: usize) -> usize {
        power_of_five(self.0, n)
    }
}

impl Galois {
    /// Whether nothing happens.
    pub fn is_identity(self) -> bool {
        self == Self::Rotation(Rotation::ZERO)
    }

    /// The exponent g of X → X^g, modulo 2N.
    pub(super) fn galois_element(self, n: usize) -> usize {
        match self {
            Self::Rotation(rotation) => rotation.galois_element(n),
            Self::Conjugation => 2 * n - 1,
        }
    }

    /// The inverse of the exponent modulo 2N.
    pub fn inverse_galois_element(self, n: usize) -> usize {
        match self {
            Self::Rotation(Rotation(steps)) => power_of_five(n / 2 - steps % (n / 2), n),
            // A conjugation undoes itself.
            Self::Conjugation => 2 * n - 1,
        }
    }
}

impl From<Rotation> for Galois {
    fn from(rotation: Rotation) -> Self {
        Self::Rotation(rotation)
    }
}

impl Display for Galois {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rotation(rotation) => write!(f, "rotation by {}", rotation.steps()),
            Self::Conjugation => f.write_str("conjugation"),
        }
    }
}

fn power_of_five(mut exponent: usize, n: usize) -> usize {
    let mask = 2 * n - 1;
    let (mut base, mut result) = (5, 1);
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = (result * base) & mask;
        }
        base = (base * base) & mask;
        exponent >>= 1;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_automorphism_and_its_inverse_are_the_identity() {
        let n = 64;
        let all = (0..n / 2).map(|steps| Galois::Rotation(Rotation(steps)));
        for automorphism in all.chain([Galois::Conjugation]) {
            let product = automorphism.galois_element(n) * automorphism.inverse_galois_element(n);
            assert_eq!(product % (2 * n), 1, "{automorphism}");
        }
    }
}
