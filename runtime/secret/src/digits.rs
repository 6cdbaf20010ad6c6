//! The digits of an evaluation key, made one at a time.
//!
//! A key-switching key from s' to s at level l has one pair (bⱼ, aⱼ) per digit: bⱼ = eⱼ - aⱼ·s + P·gⱼ·s'; see
//! [`fhe_ckks::KeySwitchKey`] for what it is. The key for an automorphism σ switches from s to σ⁻¹(s), so that the permutation is
//! applied once, after the key switch, instead of to every digit before it.

use fhe_bytecode::Level;
use fhe_ckks::{CkksError, Context, KeyUse, PublicSeed};
use fhe_ring::{Automorphism, NttForm, Poly};
use zeroize::Zeroize;

use super::random::{PrivateSeed, SeedSource, small_poly};
use super::secret_key::{SecretKey, SecretPoly};

/// The halves bⱼ of one key, digit by digit: with the seed, all that a file holds of it.
pub struct KeyDigits<'k> {
    context: &'k Context,
    secret: &'k SecretKey,
    level: Level,
    /// What is not the secret itself: s² to switch from, or σ⁻¹(s) to switch to.
    other: Other<'k>,
    public: PublicSeed,
    private: PrivateSeed,
    rest: std::vec::IntoIter<usize>,
}

enum Other<'k> {
    From(SecretPoly),
    To(SecretPoly),
    /// The secrets of two rings.
    Both(&'k [SecretPoly; 2]),
}

impl<'k> KeyDigits<'k> {
    pub(super) fn new(
        secret: &'k SecretKey,
        context: &'k Context,
        (key_use, level): (KeyUse, Level),
        seeds: &mut SeedSource,
    ) -> Result<Self, CkksError> {
        context.check_level(level)?;
        let entry = secret.entry(context, level);
        let (whole, (_, secret)) = (context, secret.at(context, level));
        let context = whole.of_key(key_use, level);
        let other = match key_use {
            KeyUse::Enter => Other::Both(entry.ok_or(CkksError::MissingEntry)?),
            KeyUse::Relinearize => Other::From(secret.squared(context)),
            KeyUse::Move(galois) => {
                let n = context.ring().n();
                // Used once, so not one of those that the context keeps.
                let inverse = Automorphism::new(n, galois.inverse_galois_element(n));
                Other::To(secret.permuted(context, &inverse))
            }
        };
        let (public, private) = (seeds.public()?, seeds.private()?);
        let rest = context.params().key_digits(level).to_vec().into_iter();
        Ok(Self { context, secret, level, other, public, private, rest })
    }

    /// The seed that the halves aⱼ grow from.
    pub fn seed(&self) -> PublicSeed {
        self.public
    }

    /// The highest level that the key serves.
    pub fn level(&self) -> Level {
        self.level
    }

    /// Both halves of the next digit.
    pub(super) fn next_pair(&mut self) -> Option<(Poly<NttForm>, Poly<NttForm>)> {
        let digit = self.rest.next()?;
        let (context, ring, params) = (self.context, self.context.ring(), self.context.params());
        let (from, to) = match &self.other {
            Other::From(squared) => (&squared.0, self.secret.ntt()),
            Other::To(permuted) => (self.secret.ntt(), &permuted.0),
            Other::Both([from, to]) => (&from.0, &to.0),
        };
        let (basis, held) = (context.held_basis(self.level), params.held(self.level));
        let a = self.public.uniform_poly(context, basis, digit as u64);
        let mut b = small_poly(context, basis, &self.private.error(ring.n(), digit as u64));
        ring.for_each_tower(&mut b, |tower, i, b| {
            // Secrets span all primes, keys only those of their levels.
            let all = ring.tower_index(basis, i);
            let mut product = vec![0; ring.n()];
            tower.kernels.mul_into(&mut product, a.tower(i), to.tower(all));
            tower.kernels.sub_assign(b, &product);
            if held.get(i).is_some_and(|&tower| params.digit_of(tower) == digit) {
                product.copy_from_slice(from.tower(all));
                tower.kernels.mul_scalar_assign(&mut product, context.p(all));
                tower.kernels.add_assign(b, &product);
            }
            product.zeroize();
        });
        Some((b, a))
    }
}

impl Iterator for KeyDigits<'_> {
    type Item = Poly<NttForm>;

    fn next(&mut self) -> Option<Poly<NttForm>> {
        self.next_pair().map(|(b, _)| b)
    }
}
