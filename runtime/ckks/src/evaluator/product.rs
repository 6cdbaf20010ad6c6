//! Products of ciphertexts and relinearization.

use fhe_ring::parallel::*;

use super::{Evaluator, check_levels};
use crate::ciphertext::Ciphertext;
use crate::key_switch::{First, KeySwitch, Switch, decompose};
use crate::{CkksError, RelinKey};
use fhe_ring::{NttForm, Poly};

impl Evaluator<'_> {
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
        let basis = a.polys[0].basis();
        let mut polys: [Poly<NttForm>; 3] = std::array::from_fn(|_| ring.unset(basis));
        let [c0, c1, c2] = polys.each_mut().map(|poly| poly.data_mut().par_chunks_exact_mut(ring.n()));
        c0.zip(c1).zip(c2).enumerate().for_each(|(i, ((c0, c1), c2))| {
            let operands = [a.polys[0].tower(i), a.polys[1].tower(i)];
            ring.tower(basis, i).kernels.square_into([c0, c1, c2], operands);
        });
        Ok(Ciphertext { polys: polys.into(), level: a.level, scale: a.scale.squared() })
    }

    /// Back to two polynomials.
    ///
    /// # Errors
    /// When there are not three, or the key is truncated below the operand's level.
    pub fn relinearize(&self, a: &Ciphertext, key: &RelinKey) -> Result<Ciphertext, CkksError> {
        a.check_degree(3)?;
        key.key().check_level(a.level)?;
        let digits = decompose(self.context, a.level, &a.polys[2]);
        let switch = KeySwitch {
            context: self.context,
            digits: &digits,
            first: First::TimesP(&a.polys[0]),
            switches: &[Switch { key: key.key(), permute: None }],
        };
        let [first, mut second] = switch.divided().pop().expect("one key gives one result");
        self.context.ring().add_assign(&mut second, &a.polys[1]);
        let polys = vec![first, second];
        Ok(Ciphertext { polys, level: a.level, scale: a.scale })
    }
}
