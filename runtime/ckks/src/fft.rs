//! The transform between slots and coefficients, in double precision.
//!
//! Slot j of a real vector is the value of the polynomial at ζ^(5^j), ζ = exp(iπ/N). With z of size p, a power
//! of two, the coefficients k and k + p of a polynomial in X^(slots/p) are the real and imaginary parts
//! of entry k of the inverse transform. Tables come from integers ([`super::circle`]) and no operation is contracted,
//! so results do not depend on the CPU or the platform's mathematical functions.

use zeroize::Zeroize;

use super::circle::Circle;
use fhe_ring::kernels::Instructions;
use fhe_ring::{Butterflies, Twiddles};

/// Twiddle tables for one ring degree.
#[derive(Debug)]
pub(super) struct Fft {
    /// Layer k merges blocks of 2^k entries; entry j < 2^k is exp(2πi·(5^j mod 8·2^k)/(8·2^k)).
    layers: Vec<Twiddles>,
    butterflies: Butterflies,
}

/// Complex entries, real and imaginary parts apart.
#[derive(Clone, Debug)]
pub(super) struct Complex {
    pub(super) re: Vec<f64>,
    pub(super) im: Vec<f64>,
}

impl Fft {
    /// Tables for ring degree `n`.
    pub(super) fn new(n: usize, instructions: Instructions) -> Self {
        let circle = Circle::new(2 * n);
        let layers = (0..(n / 2).trailing_zeros())
            .map(|k| {
                let order = 8usize << k;
                let powers = std::iter::successors(Some(1), |power| Some(power * 5 % order));
                let (cos, sin) =
                    powers.take(1 << k).map(|power| circle.point(power * (2 * n / order))).unzip();
                Twiddles { cos, sin }
            })
            .collect();
        Self { layers, butterflies: Butterflies::new(instructions) }
    }

    /// Slots to coefficients, the real parts of all entries and then the imaginary ones, times `factor` and the size, rounded.
    /// The slots are erased.
    pub(super) fn slots_to_integers(&self, mut z: Complex, factor: f64) -> Vec<f64> {
        let size = z.re.len();
        let layers = &self.layers[..size.trailing_zeros() as usize];
        let mut out = vec![0.0; 2 * size];
        self.butterflies.integers(layers, &mut z.re, &mut z.im, factor, &mut out);
        z.re.zeroize();
        z.im.zeroize();
        out
    }

    /// The inverse of [`Fft::slots_to_integers`], times the size; the real parts are the slots.
    pub(super) fn coeffs_to_slots(&self, mut z: Complex) -> Vec<f64> {
        z.bit_reverse();
        let size = z.re.len();
        for layer in &self.layers[..size.trailing_zeros() as usize] {
            let half = layer.cos.len();
            for (re, im) in z.re.chunks_exact_mut(2 * half).zip(z.im.chunks_exact_mut(2 * half)) {
                let ((re0, re1), (im0, im1)) = (re.split_at_mut(half), im.split_at_mut(half));
                for j in 0..half {
                    let tr = re1[j] * layer.cos[j] - im1[j] * layer.sin[j];
                    let ti = re1[j] * layer.sin[j] + im1[j] * layer.cos[j];
                    re1[j] = re0[j] - tr;
                    im1[j] = im0[j] - ti;
                    re0[j] += tr;
                    im0[j] += ti;
                }
            }
        }
        // The slots may be decrypted ones, of which nobody is to find the other half.
        z.im.zeroize();
        z.re
    }
}

impl Complex {
    fn bit_reverse(&mut self) {
        let bits = self.re.len().trailing_zeros();
        if bits == 0 {
            return;
        }
        for i in 0..self.re.len() {
            let j = i.reverse_bits() >> (usize::BITS - bits);
            if i < j {
                self.re.swap(i, j);
                self.im.swap(i, j);
            }
        }
    }
}
