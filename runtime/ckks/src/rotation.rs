//! Rotations of the slots.

use super::Context;

/// A cyclic rotation to the left: slot s of the result is slot s + steps of the operand. One value beyond the
/// rotations, with as many steps as there are slots, stands for the conjugation of every slot: the other
/// automorphism that needs a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rotation(usize);

impl Rotation {
    /// No rotation.
    pub const ZERO: Rotation = Rotation(0);

    /// A rotation by any number of steps, negative ones to the right; kept in [0, slots).
    pub fn new(steps: i64, context: &Context) -> Self {
        Self(steps.rem_euclid(context.slots() as i64) as usize)
    }

    /// The conjugation of every slot.
    pub fn conjugation(context: &Context) -> Self {
        Self(context.slots())
    }

    /// Steps to the left, in [0, slots); the number of slots for the conjugation.
    pub fn steps(self) -> usize {
        self.0
    }

    /// Whether nothing moves.
    pub fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// The exponent g = 5^steps mod 2N of the automorphism X → X^g that rotates.
    pub(super) fn galois_element(self, n: usize) -> usize {
        if self.0 == n / 2 { 2 * n - 1 } else { power_of_five(self.0, n) }
    }

    /// The inverse of [`Rotation::galois_element`] modulo 2N.
    pub fn inverse_galois_element(self, n: usize) -> usize {
        if self.0 == n / 2 { 2 * n - 1 } else { power_of_five(n / 2 - self.0 % (n / 2), n) }
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
