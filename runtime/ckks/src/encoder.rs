//! Real vectors to polynomials and back.

use std::borrow::Cow;

use fhe_bytecode::{Level, Scale};
use fhe_ring::parallel::*;

use super::ciphertext::{Encoding, Plaintext};
use super::fft::Complex;
use super::{CkksError, Context};
use fhe_ring::{Basis, Coeff, Coefficients, Held, Modulus, NttForm, Poly, Tower};
use zeroize::{Zeroize, Zeroizing};

/// Shorter periods are repeated up to this many slots; smaller transforms gain nothing.
const MIN_PERIOD: usize = 32;

/// Encodes and decodes for one parameter set.
#[derive(Clone, Copy, Debug)]
pub struct Encoder<'a> {
    context: &'a Context,
}

impl<'a> Encoder<'a> {
    pub(super) fn new(context: &'a Context) -> Self {
        Self { context }
    }

    /// Encodes a vector for a ciphertext at `level`.
    ///
    /// A vector shorter than the slots (a power of two) repeats; it costs and stores a fraction. It may be what a client
    /// encrypts: everything on the way is erased.
    ///
    /// # Errors
    /// When the length is no power of two or too long, the level does not exist, or a value cannot be encoded.
    pub fn encode(&self, values: &[f64], scale: Scale, level: Level) -> Result<Plaintext, CkksError> {
        self.context.check_level(level)?;
        let encoding = Zeroizing::new(self.round(values, scale)?);
        Ok(self.transform(&encoding, self.context.basis(level)))
    }

    /// Encodes a vector over the towers of `level` and the special primes, as linear maps take it.
    ///
    /// # Errors
    /// As [`Encoder::encode`].
    pub fn encode_for_linear(
        &self,
        values: &[f64],
        scale: Scale,
        level: Level,
    ) -> Result<Plaintext, CkksError> {
        self.context.check_level(level)?;
        Ok(self.transform(&self.round(values, scale)?, self.context.key_basis(level)))
    }

    /// The half of encoding that no modulus takes part in: coefficients, rounded to integers.
    ///
    /// # Errors
    /// As [`Encoder::encode`].
    pub fn round(&self, values: &[f64], scale: Scale) -> Result<Encoding, CkksError> {
        self.round_complex(values, &vec![0.0; values.len()], scale)
    }

    /// [`Encoder::round`] of a complex vector, given by its real parts and as many imaginary ones.
    ///
    /// # Errors
    /// As [`Encoder::encode`].
    pub fn round_complex(
        &self,
        values: &[f64],
        imaginary: &[f64],
        scale: Scale,
    ) -> Result<Encoding, CkksError> {
        let slots = self.context.slots();
        if !values.len().is_power_of_two() || values.len() > slots || imaginary.len() != values.len() {
            return Err(CkksError::VectorLength { len: values.len(), slots });
        }
        let period = values.len().max(MIN_PERIOD.min(slots));
        let repeated = |part: &[f64]| {
            let mut out = Vec::with_capacity(period);
            while out.len() < period {
                out.extend_from_slice(part);
            }
            out
        };
        let slots_in = Complex { re: repeated(values), im: repeated(imaginary) };
        let integers = self.context.fft().slots_to_integers(slots_in, scale.value() / period as f64);
        match Coefficients::new(integers) {
            Some(coeffs) => Ok(Encoding { coeffs, scale }),
            None => {
                let worst = values.iter().position(|v| !(v * scale.value()).is_finite()).unwrap_or(0);
                Err(CkksError::Unencodable { slot: worst, value: values[worst], scale })
            }
        }
    }

    /// The other half of encoding: residues in NTT form over `basis`.
    pub fn transform(&self, encoding: &Encoding, basis: Basis) -> Plaintext {
        let n = encoding.coeffs.len();
        let ring = self.context.ring();
        let mut poly = Poly::<NttForm>::zero(n, basis);
        poly.data_mut().par_chunks_exact_mut(n).enumerate().for_each(|(i, residues)| {
            encoding.transform_tower(ring.tower(basis, i), residues);
        });
        Plaintext { poly, scale: encoding.scale }
    }

    /// The slots of a plaintext.
    ///
    /// # Errors
    /// When the plaintext has special primes.
    pub fn decode(&self, plain: &Plaintext) -> Result<Vec<f64>, CkksError> {
        let basis = plain.basis();
        if basis.n_special != 0 {
            return Err(CkksError::PlaintextBasis { expected: basis.n_q(), found: basis.len() });
        }
        let mut full = self.context.ring().zero(basis);
        let n = full.n();
        self.context.ring().for_each_tower(&mut full, |_, i, out| {
            out.copy_from_slice(&plain.expanded_tower(n, i));
        });
        Ok(self.decode_poly(full, plain.scale()))
    }

    /// The slots of a polynomial without special primes. It may be a decrypted one: everything on the way is erased.
    pub fn decode_poly(&self, poly: Poly<NttForm>, scale: Scale) -> Vec<f64> {
        let coeffs = Zeroizing::new(self.centered(poly));
        let (re, im) = coeffs.split_at(coeffs.len() / 2);
        let (re, im) = (re.to_vec(), im.to_vec());
        let mut slots = self.context.fft().coeffs_to_slots(Complex { re, im });
        slots.iter_mut().for_each(|x| *x /= scale.value());
        slots
    }

    /// The coefficients of a polynomial without special primes, centered and rounded to doubles. Its residues are erased.
    pub fn centered(&self, poly: Poly<NttForm>) -> Vec<f64> {
        let ring = self.context.ring();
        let mut poly: Poly<Coeff> = ring.inverse(poly);
        let moduli: Vec<Modulus> =
            (0..poly.basis().n_q()).map(|i| ring.tower(poly.basis(), i).modulus).collect();
        let crt = MixedRadix::new(&moduli);
        let coeffs = (0..ring.n())
            .into_par_iter()
            .with_min_len(1 << 10)
            .map_init(
                || Zeroizing::new(Vec::with_capacity(moduli.len())),
                |residues, i| {
                    residues.clear();
                    residues.extend((0..moduli.len()).map(|t| poly.tower(t)[i]));
                    crt.centered(residues)
                },
            )
            .collect();
        poly.zeroize();
        coeffs
    }
}

impl Encoding {
    /// Residues of one tower in NTT form.
    pub(super) fn transform_tower(&self, tower: &Tower, out: &mut [u64]) {
        tower.ntt.forward_integers(&tower.kernels, out, &self.coeffs);
    }

    /// As [`Encoding::transform_tower`], but only for inner products, in the form that this gives.
    pub(super) fn transform_for_products(&self, tower: &Tower, out: &mut [u64]) -> Held {
        tower.ntt.forward_for_products(&tower.kernels, out, &self.coeffs)
    }
}

impl Plaintext {
    /// The residues of tower `i`, with every run of equal ones written out.
    pub fn expanded_tower(&self, n: usize, i: usize) -> Cow<'_, [u64]> {
        let tower = self.poly.tower(i);
        let run = n / tower.len();
        if run == 1 {
            tower.into()
        } else {
            tower.iter().flat_map(|&x| std::iter::repeat_n(x, run)).collect()
        }
    }
}

/// Residues to a centered number, by mixed-radix digits: x = v₀ + v₁·q₀ + v₂·q₀q₁ + …, each vᵢ centered.
struct MixedRadix<'a> {
    moduli: &'a [Modulus],
    /// `inverses[i][j - i - 1]` is qᵢ⁻¹ mod qⱼ.
    inverses: Vec<Vec<u64>>,
}

impl<'a> MixedRadix<'a> {
    fn new(moduli: &'a [Modulus]) -> Self {
        let inverses = moduli
            .iter()
            .enumerate()
            .map(|(i, q)| moduli[i + 1..].iter().map(|r| r.inv(r.reduce(q.value()))).collect())
            .collect();
        Self { moduli, inverses }
    }

    /// Small numbers take as long as large ones: the time does not tell what was decrypted.
    fn centered(&self, residues: &mut [u64]) -> f64 {
        let (mut value, mut radix) = (0.0, 1.0);
        for i in 0..residues.len() {
            let digit = self.moduli[i].center(residues[i]);
            value += digit as f64 * radix;
            // A radix that a double cannot hold has digits of zero, and zero times infinity is no number.
            radix = f64::min(radix * self.moduli[i].value() as f64, f64::MAX);
            for (j, &inverse) in (i + 1..).zip(&self.inverses[i]) {
                let q = self.moduli[j];
                residues[j] = q.mul(q.sub(residues[j], q.reduce_i64(digit)), inverse);
            }
        }
        value
    }
}
