//! Ways down the levels: with and without a division.

use fhe_bytecode::Level;
use fhe_bytecode::params::Division;

use super::Evaluator;
use crate::CkksError;
use crate::ciphertext::Ciphertext;
use crate::context::tower_set;
use fhe_ring::scalar::End;
use fhe_ring::{Ahead, BaseConverter, Modulus, NttForm, Poly};

impl Evaluator<'_> {
    /// Divides by what the level has more than the one below.
    ///
    /// # Errors
    /// At level 0.
    pub fn rescale(&self, a: &Ciphertext) -> Result<Ciphertext, CkksError> {
        self.rescale_by(a, 1)
    }

    /// Goes down `count` levels at once: one rounding instead of `count`.
    ///
    /// # Errors
    /// When there are fewer than `count` levels below.
    pub fn rescale_by(&self, a: &Ciphertext, count: usize) -> Result<Ciphertext, CkksError> {
        let level = usize::from(a.level.0).checked_sub(count).map(|level| Level(level as u16));
        let level = level.ok_or(CkksError::LevelsExhausted { needed: count, level: a.level })?;
        match self.context.params().rescale(a.level, level) {
            Some(division) => Ok(self.divided(a, level, &division)),
            None => Ok(a.clone()),
        }
    }

    /// Goes down to `level` without changing the scale, but for the rounding of a factor where the lower level has towers that
    /// the higher one lacks: such a drop rounds once.
    ///
    /// # Errors
    /// When `level` is above the operand's.
    pub fn drop_to(&self, a: &Ciphertext, level: Level) -> Result<Ciphertext, CkksError> {
        if level > a.level {
            return Err(CkksError::LevelMismatch { left: a.level, right: level });
        }
        if let Some(division) = self.context.params().drop(a.level, level) {
            return Ok(self.divided(a, level, &division));
        }
        let q = self.context.basis(level).q;
        let polys = a.polys.iter().map(|poly| poly.restricted(q)).collect();
        Ok(Ciphertext { polys, level, scale: a.scale })
    }

    fn divided(&self, a: &Ciphertext, level: Level, division: &Division) -> Ciphertext {
        let ring = self.context.ring();
        let factor = |q: Modulus| {
            let added = tower_set(&division.added);
            let product =
                |product, index: usize| q.mul(product, q.reduce(ring.towers()[index].modulus.value()));
            added.iter().fold(q.reduce_f64(division.factor), product)
        };
        let converter = BaseConverter::times(ring, tower_set(&division.divided).iter(), factor);
        let polys =
            a.polys.iter().map(|poly| self.divide(poly, level, division, &converter, factor)).collect();
        Ciphertext { polys, level, scale: division.rescaled(self.context.params().towers(), a.scale) }
    }

    /// round(factor·x/D) over the towers of `level`, where `converter` has the divisors and the factor.
    fn divide(
        &self,
        poly: &Poly<NttForm>,
        level: Level,
        division: &Division,
        converter: &BaseConverter,
        factor: impl Fn(Modulus) -> u64 + Sync,
    ) -> Poly<NttForm> {
        let ring = self.context.ring();
        let x: Vec<&[u64]> =
            tower_set(&division.divided).iter().map(|index| ring.residues(poly, index)).collect();
        let lifted = converter.lift(ring, &x);
        let (from, basis) = (poly.basis().q, self.context.basis(level));
        let is_plain = division.added.is_empty() && division.factor == 1.0;
        let mut out = ring.unset(basis);
        ring.for_each_tower(&mut out, |tower, i, out| {
            let (q, index) = (tower.modulus, basis.q.nth(i));
            let w = q.shoup(q.inv(converter.product(q)));
            let mut scaled;
            let a: &[u64] = if is_plain {
                ring.residues(poly, index)
            } else {
                // A multiple of the new towers is zero modulo them.
                scaled = vec![0; ring.n()];
                if from.contains(index) {
                    scaled.copy_from_slice(ring.residues(poly, index));
                    tower.kernels.mul_scalar_assign(&mut scaled, q.shoup(factor(q)));
                }
                &scaled
            };
            converter.forward(ring, &lifted, index, out, End::Divided { a, w }, Ahead::nothing());
        });
        out
    }
}
