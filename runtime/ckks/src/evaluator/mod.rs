//! Operations on ciphertexts. They need no secret and use no randomness.

mod product;
mod rescale;
mod rotate;

use fhe_bytecode::{Level, Scale};

use super::ciphertext::{Ciphertext, Plaintext};
use super::{CkksError, Context};

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
        check_same(a, b)?;
        let (more, fewer) = if a.polys.len() < b.polys.len() { (b, a) } else { (a, b) };
        let both = more.polys.iter().zip(&fewer.polys).map(|(a, b)| self.context.ring().add(a, b));
        let polys = both.chain(more.polys[fewer.polys.len()..].iter().cloned()).collect();
        Ok(Ciphertext { polys, level: a.level, scale: a.scale })
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
        let (ring, basis, own) = (self.context.ring(), self.context.basis(a.level), b.basis());
        ring.for_each_tower(&mut sum.polys[0], |tower, i, sum| {
            let i = own.q.rank(basis.q.nth(i));
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
        let polys = self.context.ring().mul_each(&a.polys, &b.poly);
        Ok(Ciphertext { polys, level: a.level, scale: a.scale.times(b.scale) })
    }

    /// a ← a·b for a plaintext; the scales multiply. Reads and writes less memory than [`Evaluator::mul_plain`].
    ///
    /// # Errors
    /// When the plaintext lacks towers.
    pub fn mul_plain_assign(&self, a: &mut Ciphertext, b: &Plaintext) -> Result<(), CkksError> {
        self.check_plain(a, b)?;
        self.context.ring().mul_each_assign(&mut a.polys, &b.poly);
        a.scale = a.scale.times(b.scale);
        Ok(())
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

    fn check_plain(&self, a: &Ciphertext, b: &Plaintext) -> Result<(), CkksError> {
        let (expected, found) = (self.context.basis(a.level), b.basis());
        if expected.q.is_subset(found.q) {
            return Ok(());
        }
        Err(CkksError::PlaintextBasis { expected: expected.n_q(), found: found.n_q() })
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
