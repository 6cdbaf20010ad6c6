//! Rotation amounts, with one normalization.

use serde::{Deserialize, Serialize};

/// A rotation to the left: `rot(x, r)[s] = x[s + r]`, indices modulo the number of slots.
///
/// A normalized amount lies in (-slots/2, slots/2].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Rotation(i32);

impl Rotation {
    /// No rotation.
    pub const ZERO: Rotation = Rotation(0);

    /// The normalized rotation by `amount` among `slots` (a power of two).
    pub fn new(amount: i64, slots: usize) -> Self {
        let residue = amount.rem_euclid(slots as i64);
        let centered = if residue > slots as i64 / 2 { residue - slots as i64 } else { residue };
        Self(centered as i32)
    }

    /// The signed amount as it is stored.
    pub(crate) fn small(self) -> i32 {
        self.0
    }

    /// The signed amount.
    pub fn amount(self) -> i64 {
        i64::from(self.0)
    }

    /// The amount in [0, slots).
    pub fn left(self, slots: usize) -> usize {
        self.amount().rem_euclid(slots as i64) as usize
    }

    /// Whether nothing moves.
    pub fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// Whether the amount is the normalized one among `slots`.
    pub fn is_normalized(self, slots: usize) -> bool {
        Self::new(self.amount(), slots) == self
    }
}

impl std::fmt::Display for Rotation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:+}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::Rotation;

    #[test]
    fn amounts_are_centered() {
        let normalized = [-9, -8, -7, 0, 7, 8, 9, 24].map(|r| Rotation::new(r, 16).amount());
        assert_eq!(normalized, [7, 8, -7, 0, 7, 8, -7, 8]);
    }

    #[test]
    fn left_amount_inverts_the_centering() {
        assert!((0..32).all(|r| Rotation::new(r, 32).left(32) == r as usize));
    }
}
