//! Operations on ciphertexts. They need no secret and use no randomness.

use fhe_bytecode::{Level, Scale};
use rayon::prelude::*;

use super::ciphertext::{Ciphertext, Plaintext};
use super::key_switch::{decompose, switch};
use super::keys::{RelinKey, RotationKeys};
use super::{CkksError, Context, Rotation};
use crate::ring::{Automorphism, BaseConverter, Buffer, NttForm, Poly};

/// Evaluates operations for one parameter set.
#[derive(Clone, Copy, Debug)]
pub struct Evaluator<'a> {
    context: &'a Context,
}

impl<'a> Evaluator<'a> {
    /// An evaluator.
    pub fn new(context: &'a Context) -> Self {
        Self { context }
    }

    /// The tables it works with.
    pub fn context(&self) -> &'a Context {
        self.context
    }

    /// a + b.
    ///
    /// # Errors
    /// When level or scale disagree.
    pub fn add(&self, a: &Ciphertext, b: &Ciphertext) -> Result<Ciphertext, CkksError> {
        let mut sum = a.clone();
        self.add_assign(&mut sum, b)?;
        Ok(sum)
    }

    /// a ← a + b.
    ///
    /// # Errors
    /// When level or scale disagree.
    pub fn add_assign(&self, a: &mut Ciphertext, b: &Ciphertext) -> Result<(), CkksError> {
        check_same(a, b)?;
        for (k, poly) in b.polys.iter().enumerate() {
            match a.polys.get_mut(k) {
                Some(sum) => self.context.ring().add_assign(sum, poly),
                None => a.polys.push(poly.clone()),
            }
        }
        Ok(())
    }

    /// a - b.
    ///
    /// # Errors
    /// When level or scale disagree.
    pub fn sub(&self, a: &Ciphertext, b: &Ciphertext) -> Result<Ciphertext, CkksError> {
        check_same(a, b)?;
        let mut negated = self.negate(b);
        // The scales agree by policy; the result carries the first operand's.
        negated.scale = a.scale;
        self.add(a, &negated)
    }

    /// -a.
    pub fn negate(&self, a: &Ciphertext) -> Ciphertext {
        let mut negated = a.clone();
        negated.polys.iter_mut().for_each(|poly| self.context.ring().neg_assign(poly));
        negated
    }

    /// a + b for a plaintext of the same scale.
    ///
    /// # Errors
    /// When the scales disagree or the plaintext lacks towers.
    pub fn add_plain(&self, a: &Ciphertext, b: &Plaintext) -> Result<Ciphertext, CkksError> {
        check_scales(a.scale, b.scale)?;
        self.check_plain(a, b)?;
        let mut sum = a.clone();
        let ring = self.context.ring();
        ring.for_each_tower(&mut sum.polys[0], |tower, i, sum| {
            tower.kernels.add_assign(sum, &b.expanded_tower(ring.n(), i));
        });
        Ok(sum)
    }

    /// a·b for a plaintext; the scales multiply.
    ///
    /// # Errors
    /// When the plaintext lacks towers.
    pub fn mul_plain(&self, a: &Ciphertext, b: &Plaintext) -> Result<Ciphertext, CkksError> {
        self.check_plain(a, b)?;
        let polys = a.polys.iter().map(|poly| self.context.ring().mul(poly, &b.poly)).collect();
        Ok(Ciphertext { polys, level: a.level, scale: a.scale.times(b.scale) })
    }

    /// a·factor for a real factor encoded as one integer at `scale`: exact up to that rounding, no encoding.
    ///
    /// # Errors
    /// When the factor overflows at that scale.
    pub fn mul_scalar(&self, a: &Ciphertext, factor: f64, scale: Scale) -> Result<Ciphertext, CkksError> {
        let integer = (factor * scale.value()).round_ties_even();
        if !integer.is_finite() {
            return Err(CkksError::Unencodable { slot: 0, value: factor, scale });
        }
        let mut product = a.clone();
        for poly in &mut product.polys {
            self.context.ring().for_each_tower(poly, |tower, _, residues| {
                let w = tower.modulus.shoup(tower.modulus.reduce_f64(integer));
                tower.kernels.mul_scalar_assign(residues, w);
            });
        }
        product.scale = a.scale.times(scale);
        Ok(product)
    }

    /// a·b without relinearization: three polynomials.
    ///
    /// # Errors
    /// When the levels disagree or an operand was not relinearized.
    pub fn mul(&self, a: &Ciphertext, b: &Ciphertext) -> Result<Ciphertext, CkksError> {
        check_levels(a.level, b.level)?;
        a.check_degree(2)?;
        b.check_degree(2)?;
        let ring = self.context.ring();
        let c0 = ring.mul(&a.polys[0], &b.polys[0]);
        let c2 = ring.mul(&a.polys[1], &b.polys[1]);
        let mut c1 = ring.mul(&a.polys[0], &b.polys[1]);
        ring.add_assign(&mut c1, &ring.mul(&a.polys[1], &b.polys[0]));
        Ok(Ciphertext { polys: vec![c0, c1, c2], level: a.level, scale: a.scale.times(b.scale) })
    }

    /// a² without relinearization: three polynomials.
    ///
    /// # Errors
    /// When the operand was not relinearized.
    pub fn square(&self, a: &Ciphertext) -> Result<Ciphertext, CkksError> {
        a.check_degree(2)?;
        let ring = self.context.ring();
        let c0 = ring.mul(&a.polys[0], &a.polys[0]);
        let c2 = ring.mul(&a.polys[1], &a.polys[1]);
        let mut c1 = ring.unset(c0.basis());
        ring.for_each_tower(&mut c1, |tower, i, c1| {
            let q = tower.modulus;
            tower.kernels.mul_into(c1, a.polys[0].tower(i), a.polys[1].tower(i));
            tower.kernels.mul_scalar_assign(c1, q.shoup(2));
        });
        Ok(Ciphertext { polys: vec![c0, c1, c2], level: a.level, scale: a.scale.squared() })
    }

    /// Back to two polynomials.
    ///
    /// # Errors
    /// When there are not three, or the key is truncated below the operand's level.
    pub fn relinearize(&self, a: &Ciphertext, key: &RelinKey) -> Result<Ciphertext, CkksError> {
        a.check_degree(3)?;
        key.key().check_level(a.level)?;
        let digits = decompose(self.context, a.level, &a.polys[2]);
        let mut polys = switch(self.context, a.level, &digits, key.key());
        for (sum, poly) in polys.iter_mut().zip(&a.polys) {
            self.context.ring().add_assign(sum, poly);
        }
        Ok(Ciphertext { polys: polys.into(), level: a.level, scale: a.scale })
    }

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
        let n = ring.n();
        let mut dropped = Buffer::copy_of(&poly.data()[top * n..]);
        dropped
            .par_chunks_exact_mut(n)
            .enumerate()
            .for_each(|(k, residues)| ring.towers()[top + k].ntt.inverse(residues));
        let x: Vec<&[u64]> = dropped.chunks_exact(n).collect();
        let weighted = converter.weigh(ring, &x);
        let mut out = ring.unset(ring.basis_q(top));
        ring.for_each_tower(&mut out, |tower, i, out| {
            let q = tower.modulus;
            let product = converter.source_moduli().fold(1, |p, d| q.mul(p, q.reduce(d.value())));
            converter.convert(&weighted, i, out);
            tower.ntt.forward(out);
            tower.kernels.sub_mul_scalar_from(out, poly.tower(i), q.shoup(q.inv(product)));
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
        let mut wanted = Vec::with_capacity(rotations.len());
        for &rotation in rotations {
            wanted
                .push((rotation, if rotation.is_zero() { None } else { Some(keys.get(rotation, a.level)?) }));
        }
        if wanted.iter().all(|(_, key)| key.is_none()) {
            return Ok(vec![a.clone(); rotations.len()]);
        }
        let digits = decompose(self.context, a.level, &a.polys[1]);
        let rotate = |(rotation, key): (Rotation, Option<_>)| {
            let Some(key) = key else { return a.clone() };
            let [mut c0, c1] = switch(self.context, a.level, &digits, key);
            self.context.ring().add_assign(&mut c0, &a.polys[0]);
            let automorphism = self.context.automorphism(rotation.galois_element(self.context.ring().n()));
            let polys = vec![self.permute(&c0, &automorphism), self.permute(&c1, &automorphism)];
            Ciphertext { polys, level: a.level, scale: a.scale }
        };
        Ok(wanted.into_iter().map(rotate).collect())
    }

    /// σ applied to every tower.
    pub(super) fn permute(&self, poly: &Poly<NttForm>, automorphism: &Automorphism) -> Poly<NttForm> {
        let ring = self.context.ring();
        let mut out = ring.unset(poly.basis());
        ring.for_each_tower(&mut out, |_, i, out| automorphism.apply(out, poly.tower(i)));
        out
    }

    fn check_plain(&self, a: &Ciphertext, b: &Plaintext) -> Result<(), CkksError> {
        let (expected, found) = (a.level.n_towers(), b.basis().n_q);
        if found >= expected { Ok(()) } else { Err(CkksError::PlaintextBasis { expected, found }) }
    }
}

fn check_same(a: &Ciphertext, b: &Ciphertext) -> Result<(), CkksError> {
    check_levels(a.level, b.level)?;
    check_scales(a.scale, b.scale)
}

fn check_levels(left: Level, right: Level) -> Result<(), CkksError> {
    if left == right { Ok(()) } else { Err(CkksError::LevelMismatch { left, right }) }
}

fn check_scales(left: Scale, right: Scale) -> Result<(), CkksError> {
    if left.agrees(right) { Ok(()) } else { Err(CkksError::ScaleMismatch { left, right }) }
}
