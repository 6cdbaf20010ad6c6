//! Rotations of the slots.

use std::cell::OnceCell;

use super::Evaluator;
use crate::ciphertext::Ciphertext;
use crate::key_switch::{Digits, First, Halves, KeySwitch, Switch, decompose};
use crate::{CkksError, Rotation, RotationKeys};

/// Rotations that share the transforms of digits; more would hold too many sums at once.
const SHARED: usize = 16;

impl Evaluator<'_> {
    /// Slot s of the result is slot s + steps of the operand.
    ///
    /// # Errors
    /// When there is no key for the rotation at this level or the operand was not relinearized.
    pub fn rotate(
        &self,
        a: &Ciphertext,
        rotation: Rotation,
        keys: &RotationKeys,
    ) -> Result<Ciphertext, CkksError> {
        let mut rotated = self.rotate_hoisted(a, &[rotation], keys)?;
        Ok(rotated.pop().expect("one rotation gives one result"))
    }

    /// Several rotations of one ciphertext, which share its decomposition.
    ///
    /// # Errors
    /// As [`Evaluator::rotate`].
    pub fn rotate_hoisted(
        &self,
        a: &Ciphertext,
        rotations: &[Rotation],
        keys: &RotationKeys,
    ) -> Result<Vec<Ciphertext>, CkksError> {
        a.check_degree(2)?;
        for rotation in rotations.iter().filter(|rotation| !rotation.is_zero()) {
            keys.get(*rotation, a.level)?;
        }
        let digits = OnceCell::new();
        let mut rotated = Vec::with_capacity(rotations.len());
        for rotations in rotations.chunks(SHARED) {
            let moving: Vec<Rotation> = rotations.iter().copied().filter(|r| !r.is_zero()).collect();
            let mut moved = Vec::new();
            if !moving.is_empty() {
                let digits = digits.get_or_init(|| decompose(self.context, a.level, &a.polys[1]));
                moved = self.rotate_digits(a, digits, &moving, keys)?;
            }
            let mut moved = moved.into_iter();
            let next = |r: &Rotation| if r.is_zero() { None } else { moved.next() };
            rotated.extend(rotations.iter().map(next).map(|moved| moved.unwrap_or_else(|| a.clone())));
        }
        Ok(rotated)
    }

    /// Rotations by anything but zero of a decomposed ciphertext.
    fn rotate_digits(
        &self,
        a: &Ciphertext,
        digits: &Digits<'_>,
        rotations: &[Rotation],
        keys: &RotationKeys,
    ) -> Result<Vec<Ciphertext>, CkksError> {
        let n = self.context.ring().n();
        let switches = rotations
            .iter()
            .map(|&rotation| {
                let permute = Some(self.context.automorphism(rotation.galois_element(n)));
                Ok(Switch { key: keys.get(rotation, a.level)?, permute })
            })
            .collect::<Result<Vec<_>, CkksError>>()?;
        let first = First::TimesP(&a.polys[0]);
        let switch = KeySwitch { context: self.context, digits, first, switches: &switches };
        let ciphertext = |halves: Halves| Ciphertext { polys: halves.into(), level: a.level, scale: a.scale };
        Ok(switch.divided().into_iter().map(ciphertext).collect())
    }
}
