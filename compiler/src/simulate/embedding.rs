//! From slots to coefficients and back: a ciphertext holds the coefficients of a polynomial, and it is these that a
//! modulus reduces.
//!
//! Slot j of a polynomial of degree below N is its value at ζ^(5^j), ζ a primitive 2N-th root of one; the values at the
//! other odd powers are the conjugates. Both directions are one Fourier transform of length N.

use std::f64::consts::PI;

/// A complex number.
type Complex = (f64, f64);

/// The transform between real slots and coefficients.
#[derive(Clone, Debug)]
pub(super) struct Embedding {
    /// Index t of the odd power 2t + 1 where a slot is evaluated, and that of its conjugate.
    places: Vec<(usize, usize)>,
    /// ζ^k for all k below 2N.
    roots: Vec<Complex>,
}

impl Embedding {
    /// The transform of a ring with so many slots, a power of two.
    pub(super) fn new(n_slots: usize) -> Self {
        let order = 4 * n_slots;
        let mut power = 1;
        let places = (0..n_slots)
            .map(|_| {
                let place = ((power - 1) / 2, (order - power - 1) / 2);
                power = power * 5 % order;
                place
            })
            .collect();
        let roots = (0..order).map(|k| (2.0 * PI * k as f64 / order as f64).sin_cos()).map(|(s, c)| (c, s));
        Self { places, roots: roots.collect() }
    }

    /// The coefficients of the polynomial with these slots.
    pub(super) fn coefficients(&self, slots: &[f64]) -> Vec<f64> {
        let n = 2 * self.places.len();
        let mut values = vec![(0.0, 0.0); n];
        for (&(place, conjugate), &slot) in self.places.iter().zip(slots) {
            values[place] = (slot, 0.0);
            values[conjugate] = (slot, 0.0);
        }
        self.transform(&mut values, true);
        let coefficient = |(k, value): (usize, &Complex)| {
            let (c, s) = self.roots[k];
            (value.0 * c + value.1 * s) / n as f64
        };
        values.iter().enumerate().map(coefficient).collect()
    }

    /// The real parts of the slots of a polynomial.
    pub(super) fn slots(&self, coefficients: &[f64]) -> Vec<f64> {
        let rotated = |(k, &x): (usize, &f64)| (x * self.roots[k].0, x * self.roots[k].1);
        let mut values: Vec<Complex> = coefficients.iter().enumerate().map(rotated).collect();
        self.transform(&mut values, false);
        self.places.iter().map(|&(place, _)| values[place].0).collect()
    }

    /// The Fourier transform of length N, with conjugate roots on the way to coefficients.
    fn transform(&self, values: &mut [Complex], conjugate: bool) {
        let n = values.len();
        let bits = n.trailing_zeros();
        for i in 0..n {
            let j = i.reverse_bits() >> (usize::BITS - bits);
            if i < j {
                values.swap(i, j);
            }
        }
        let mut half = 1;
        while half < n {
            // The roots of order 2·half, as powers of the root of order 2N.
            let step = self.roots.len() / (2 * half);
            for block in values.chunks_exact_mut(2 * half) {
                let (low, high) = block.split_at_mut(half);
                for (k, (a, b)) in low.iter_mut().zip(high).enumerate() {
                    let (c, s) = self.roots[k * step];
                    let s = if conjugate { -s } else { s };
                    let turned = (b.0 * c - b.1 * s, b.0 * s + b.1 * c);
                    *b = (a.0 - turned.0, a.1 - turned.1);
                    *a = (a.0 + turned.0, a.1 + turned.1);
                }
            }
            half *= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots(n: usize) -> Vec<f64> {
        (0..n).map(|i| ((i * 37 + 11) % 101) as f64 / 50.0 - 1.0).collect()
    }

    #[test]
    fn coefficients_give_the_slots_back() {
        for n in [1, 2, 8, 64] {
            let (embedding, slots) = (Embedding::new(n), slots(n));
            let back = embedding.slots(&embedding.coefficients(&slots));
            assert!(back.iter().zip(&slots).all(|(a, b)| (a - b).abs() < 1e-12), "{n}: {back:?}");
        }
    }

    #[test]
    fn slots_are_values_at_powers_of_five() {
        let n = 8;
        let embedding = Embedding::new(n);
        let coefficients: Vec<f64> = (0..2 * n).map(|k| (k as f64 * 0.7).sin()).collect();
        let mut power = 1;
        for slot in embedding.slots(&coefficients) {
            let at = |k: usize| (PI * (power * k) as f64 / (2 * n) as f64).cos();
            let value: f64 = coefficients.iter().enumerate().map(|(k, c)| c * at(k)).sum();
            assert!((slot - value).abs() < 1e-9, "{slot} {value}");
            power = power * 5 % (4 * n);
        }
    }

    #[test]
    fn same_number_everywhere_is_one_coefficient() {
        let coefficients = Embedding::new(16).coefficients(&[3.0; 16]);
        assert!((coefficients[0] - 3.0).abs() < 1e-12);
        assert!(coefficients[1..].iter().all(|c| c.abs() < 1e-12));
    }
}
