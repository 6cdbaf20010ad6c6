//! Butterflies of complex vectors in double precision, with which encoders go from slots to integers.
//!
//! A layer of h twiddles w merges blocks of 2h entries: (x, y) ← (x + y, (x - y)·w̄). No operation is contracted, so
//! scalar code and vectors of any width give the same bits.

use super::kernels::Instructions;
use super::simd;

/// The twiddles of one layer; as many cosines as sines.
#[derive(Clone, Debug)]
pub struct Twiddles {
    /// Real parts.
    pub cos: Vec<f64>,
    /// Imaginary parts.
    pub sin: Vec<f64>,
}

/// Who computes butterflies, chosen once.
#[derive(Clone, Copy, Debug)]
pub struct Butterflies {
    width: Option<simd::Width>,
}

impl Butterflies {
    /// Chooses the vectors.
    pub fn new(instructions: Instructions) -> Self {
        Self { width: instructions.vectors() }
    }

    /// All layers from the largest to the first on (re, im), which become anything, then the bit reversal: `out` gets the real
    /// parts and after them the imaginary ones, times `factor`, rounded to integers. Layer k has 2^k twiddles.
    ///
    /// # Panics
    /// When the sizes do not fit each other.
    pub fn integers(
        &self,
        layers: &[Twiddles],
        re: &mut [f64],
        im: &mut [f64],
        factor: f64,
        out: &mut [f64],
    ) {
        let size = re.len();
        assert!(im.len() == size && out.len() == 2 * size && size == 1 << layers.len());
        let fits = |(k, layer): (usize, &Twiddles)| layer.cos.len() == 1 << k && layer.sin.len() == 1 << k;
        assert!(layers.iter().enumerate().all(fits));
        #[cfg(target_arch = "x86_64")]
        if let Some(width) = self.width.filter(|_| size >= simd::MIN_COMPLEX) {
            return simd::integers(width, layers, re, im, factor, out);
        }
        scalar_integers(layers, re, im, factor, out);
    }
}

/// The reference.
fn scalar_integers(layers: &[Twiddles], re: &mut [f64], im: &mut [f64], factor: f64, out: &mut [f64]) {
    for Twiddles { cos, sin } in layers.iter().rev() {
        let half = cos.len();
        for (re, im) in re.chunks_exact_mut(2 * half).zip(im.chunks_exact_mut(2 * half)) {
            let ((re0, re1), (im0, im1)) = (re.split_at_mut(half), im.split_at_mut(half));
            for j in 0..half {
                let (dr, di) = (re0[j] - re1[j], im0[j] - im1[j]);
                re0[j] += re1[j];
                im0[j] += im1[j];
                re1[j] = dr * cos[j] + di * sin[j];
                im1[j] = di * cos[j] - dr * sin[j];
            }
        }
    }
    let (out_re, out_im) = out.split_at_mut(re.len());
    for i in 0..re.len() {
        let j = reversed(i, layers.len());
        out_re[j] = (re[i] * factor).round_ties_even();
        out_im[j] = (im[i] * factor).round_ties_even();
    }
}

/// The lowest `bits` of a number in reverse order.
pub(super) fn reversed(i: usize, bits: usize) -> usize {
    if bits == 0 { 0 } else { i.reverse_bits() >> (usize::BITS as usize - bits) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{INSTRUCTIONS, rng};
    use rand_core::RngCore;

    #[test]
    fn vectors_of_every_width_give_the_bits_of_scalar_code() {
        let mut rng = rng(21);
        let mut number = || rng.next_u64() as i64 as f64 * 2f64.powi(-63);
        for bits in 0..=11 {
            let layers: Vec<Twiddles> = (0..bits)
                .map(|k| (0..1 << k).map(|_| (number(), number())).unzip())
                .map(|(cos, sin)| Twiddles { cos, sin })
                .collect();
            let (re, im): (Vec<f64>, Vec<f64>) = (0..1 << bits).map(|_| (number(), number())).unzip();
            let found = INSTRUCTIONS.map(|instructions| {
                let mut out = vec![f64::NAN; 2 << bits];
                let (mut re, mut im) = (re.clone(), im.clone());
                Butterflies::new(instructions).integers(&layers, &mut re, &mut im, 1e6, &mut out);
                out.into_iter().map(f64::to_bits).collect::<Vec<_>>()
            });
            assert!(found.iter().all(|bits| *bits == found[0]), "size 2^{bits}");
        }
    }
}
