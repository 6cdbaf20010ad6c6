//! Rotations of the slots, and their conjugation.

use std::cell::OnceCell;

use super::Evaluator;
use crate::ciphertext::Ciphertext;
use crate::key_switch::{Digits, First, Halves, KeySwitch, Switch, decompose};
use crate::{CkksError, Galois, GaloisKeys, Rotation};

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
        keys: &GaloisKeys,
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
        keys: &GaloisKeys,
    ) -> Result<Vec<Ciphertext>, CkksError> {
        a.check_degree(2)?;
        for rotation in rotations.iter().filter(|rotation| !rotation.is_zero()) {
            keys.get(*rotation, a.level)?;
        }
        let digits = OnceCell::new();
        let mut rotated = Vec::with_capacity(rotations.len());
        for rotations in rotations.chunks(SHARED) {
            let moving = rotations.iter().filter(|rotation| !rotation.is_zero());
            let moving: Vec<Galois> = moving.map(|&rotation| rotation.into()).collect();
            let mut moved = Vec::new();
            if !moving.is_empty() {
                let digits = digits.get_or_init(|| decompose(self.context, a.level, &a.polys[1]));
                moved = self.move_digits(a, digits, &moving, keys)?;
            }
            let mut moved = moved.into_iter();
            let next = |r: &Rotation| if r.is_zero() { None } else { moved.next() };
            rotated.extend(rotations.iter().map(next).map(|moved| moved.unwrap_or_else(|| a.clone())));
        }
        Ok(rotated)
    }

    /// Every slot of the result is the conjugate of the operand's.
    ///
    /// # Errors
    /// As [`Evaluator::rotate`].
    pub fn conjugate(&self, a: &Ciphertext, keys: &GaloisKeys) -> Result<Ciphertext, CkksError> {
        a.check_degree(2)?;
        let digits = decompose(self.context, a.level, &a.polys[1]);
        let mut moved = self.move_digits(a, &digits, &[Galois::Conjugation], keys)?;
        Ok(moved.pop().expect("one automorphism gives one result"))
    }

    /// Automorphisms, none of them the identity, of a decomposed ciphertext.
    fn move_digits(
        &self,
        a: &Ciphertext,
        digits: &Digits<'_>,
        automorphisms: &[Galois],
        keys: &GaloisKeys,
    ) -> Result<Vec<Ciphertext>, CkksError> {
        let n = self.context.ring().n();
        let switches = automorphisms
            .iter()
            .map(|&automorphism| {
                let permute = Some(self.context.automorphism(automorphism.galois_element(n)));
                Ok(Switch { key: keys.get(automorphism, a.level)?, permute })
            })
            .collect::<Result<Vec<_>, CkksError>>()?;
        let first = First::TimesP(&a.polys[0]);
        let switch = KeySwitch { context: self.context, digits, first, switches: &switches };
        let ciphertext = |halves: Halves| Ciphertext { polys: halves.into(), level: a.level, scale: a.scale };
        Ok(switch.divided().into_iter().map(ciphertext).collect())
    }
}
