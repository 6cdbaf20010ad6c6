//! Ways down the levels: with and without a division.

use fhe_bytecode::Level;

use super::Evaluator;
use crate::CkksError;
use crate::ciphertext::Ciphertext;
use fhe_ring::scalar::End;
use fhe_ring::{Ahead, BaseConverter, NttForm, Poly};

impl Evaluator<'_> {
    /// Divides by the top tower and drops it.
    ///
    /// # Errors
    /// At level 0.
    pub fn rescale(&self, a: &Ciphertext) -> Result<Ciphertext, CkksError> {
        self.rescale_by(a, 1)
    }

    /// Divides by the top `count` towers at once and drops them: one rounding instead of `count`.
    ///
    /// # Errors
    /// When fewer than `count` towers can be dropped.
    pub fn rescale_by(&self, a: &Ciphertext, count: usize) -> Result<Ciphertext, CkksError> {
        let n_q = a.level.n_towers();
        if count >= n_q {
            return Err(CkksError::LevelsExhausted { needed: count, level: a.level });
        }
        let top = n_q - count;
        let built;
        let converter = match count {
            0 => return Ok(a.clone()),
            1 => self.context.top(top),
            _ => {
                built = BaseConverter::new(self.context.ring(), top..n_q);
                &built
            }
        };
        let polys = a.polys.iter().map(|poly| self.divide(poly, top, converter)).collect();
        let primes = &self.context.params().towers()[top..n_q];
        let scale = primes.iter().fold(a.scale, |scale, &q| scale.rescaled(q));
        Ok(Ciphertext { polys, level: Level(top as u16 - 1), scale })
    }

    /// Divides a polynomial by its towers from `top` on and rounds.
    fn divide(&self, poly: &Poly<NttForm>, top: usize, converter: &BaseConverter) -> Poly<NttForm> {
        let ring = self.context.ring();
        let x: Vec<&[u64]> = (top..poly.basis().n_q).map(|i| poly.tower(i)).collect();
        let lifted = converter.lift(ring, &x);
        let mut out = ring.unset(ring.basis_q(top));
        ring.for_each_tower(&mut out, |tower, i, out| {
            let q = tower.modulus;
            let w = q.shoup(q.inv(converter.product(q)));
            let end = End::Divided { a: poly.tower(i), w };
            converter.forward(ring, &lifted, i, out, end, Ahead::nothing());
        });
        out
    }

    /// Drops towers without dividing, down to `level`.
    ///
    /// # Errors
    /// When `level` is above the operand's.
    pub fn drop_to(&self, a: &Ciphertext, level: Level) -> Result<Ciphertext, CkksError> {
        if level > a.level {
            return Err(CkksError::LevelMismatch { left: a.level, right: level });
        }
        let mut dropped = a.clone();
        dropped.polys.iter_mut().for_each(|poly| poly.truncate(level.n_towers()));
        dropped.level = level;
        Ok(dropped)
    }
}
