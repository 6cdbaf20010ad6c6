//! Normal numbers, many at a time.
//!
//! Box and Muller's transform. Logarithm and circle are series without a branch, so that compilers compute several of them at
//! once, with the widest vectors that the CPU has; they are right to twelve digits, more than a simulation of noise needs.
//! Vectors of any width have the same bits, since no product is fused with its sum.

use std::f64::consts::{LN_2, PI};

use fhec_ir::spec::Uniform;
use pulp::{Arch, Simd, WithSimd};

/// Pairs of numbers that are made at a time.
const BLOCK: usize = 32;

/// Two normal numbers.
pub(super) fn pair(stream: &mut Uniform) -> [f64; 2] {
    let [radius, turn] = drawn(stream);
    transformed(radius, turn)
}

/// Adds normal numbers to all slots, each with its deviation.
pub(super) fn disturb(slots: &mut [f64], deviations: impl IntoIterator<Item = f64>, stream: &mut Uniform) {
    Arch::new().dispatch(Disturb { slots, deviations: deviations.into_iter(), stream });
}

struct Disturb<'a, I> {
    slots: &'a mut [f64],
    deviations: I,
    stream: &'a mut Uniform,
}

impl<I: Iterator<Item = f64>> WithSimd for Disturb<'_, I> {
    type Output = ();

    /// What is inlined has the vectors of the function that it becomes part of.
    #[inline(always)]
    fn with_simd<S: Simd>(mut self, _: S) {
        for block in self.slots.chunks_mut(2 * BLOCK) {
            let mut numbers = [[0.0; 2]; BLOCK];
            for pair in numbers.iter_mut().take(block.len().div_ceil(2)) {
                *pair = drawn(self.stream);
            }
            for pair in &mut numbers {
                *pair = transformed(pair[0], pair[1]);
            }
            for (x, z) in block.iter_mut().zip(numbers.as_flattened()) {
                let Some(deviation) = self.deviations.next() else { return };
                *x += deviation * z;
            }
        }
    }
}

/// What a pair is made of: numbers from 0 to 1.
#[inline(always)]
fn drawn(stream: &mut Uniform) -> [f64; 2] {
    let radius = stream.between(f64::MIN_POSITIVE, 1.0).max(1e-300);
    [radius, stream.between(0.0, 1.0)]
}

#[inline(always)]
fn transformed(radius: f64, turn: f64) -> [f64; 2] {
    let radius = (-2.0 * ln(radius)).sqrt();
    let [sin, cos] = circle(turn);
    [radius * cos, radius * sin]
}

/// Natural logarithm of a positive number that is not subnormal.
#[inline(always)]
fn ln(x: f64) -> f64 {
    /// Bits of the square root of one half, rounded: mantissas are taken from there to the square root of two.
    const FIRST: u64 = 0x3fe6_a09e_0000_0000;
    const ONE: u64 = 0x3ff0_0000_0000_0000;
    const MANTISSA: u64 = (1 << 52) - 1;
    /// 2^52, whose last bits count ones.
    const COUNTER: u64 = 0x4330_0000_0000_0000;
    let shifted = x.to_bits() + (ONE - FIRST);
    let mantissa = f64::from_bits((shifted & MANTISSA) + FIRST);
    let exponent = f64::from_bits(COUNTER | (shifted >> 52)) - f64::from_bits(COUNTER) - 1023.0;
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let z = s * s;
    let series =
        series(z, [1.0, 1.0 / 3.0, 1.0 / 5.0, 1.0 / 7.0, 1.0 / 9.0, 1.0 / 11.0, 1.0 / 13.0, 1.0 / 15.0]);
    exponent * LN_2 + 2.0 * s * series
}

/// Sine and cosine of a part of a turn, from 0 to 1.
#[inline(always)]
fn circle(turn: f64) -> [f64; 2] {
    // Half of the angle, from -π/2 to π/2, after half a turn more.
    let half = PI * (turn - 0.5);
    let z = half * half;
    let sin = half * series(z, SINE);
    let cos = series(z, COSINE);
    [-2.0 * sin * cos, 2.0 * sin * sin - 1.0]
}

/// Coefficients of a series of ±1/n! for every other n.
const fn alternating(first: u32) -> [f64; 10] {
    let mut all = [1.0; 10];
    let (mut i, mut n) = (1, first);
    while i < all.len() {
        all[i] = -all[i - 1] / ((n + 1) as f64 * (n + 2) as f64);
        n += 2;
        i += 1;
    }
    all
}

const SINE: [f64; 10] = alternating(1);
const COSINE: [f64; 10] = alternating(0);

#[inline(always)]
fn series<const N: usize>(z: f64, coefficients: [f64; N]) -> f64 {
    coefficients.iter().rev().fold(0.0, |sum, c| sum * z + c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_are_those_of_the_library() {
        let mut stream = Uniform::new(3);
        for i in 0..20_000 {
            let [x, turn] = drawn(&mut stream);
            let x = if i % 2 == 0 { x } else { x.powi(40).max(1e-300) };
            assert!((ln(x) - x.ln()).abs() <= 1e-12 * x.ln().abs().max(1.0), "{x}");
            let (sin, cos) = (2.0 * PI * turn).sin_cos();
            let found = circle(turn);
            assert!((found[0] - sin).abs() < 1e-12 && (found[1] - cos).abs() < 1e-12, "{turn}");
        }
        assert!(ln(1.0).abs() < 1e-15 && circle(0.0)[1] > 1.0 - 1e-12);
    }

    #[test]
    fn blocks_are_pairs_in_their_order() {
        for n in [1, 2, 63, 64, 65, 200] {
            let (mut one, mut all) = (Uniform::new(7), Uniform::new(7));
            let mut slots = vec![1.0; n];
            disturb(&mut slots, (0..n).map(|i| i as f64), &mut all);
            let pairs: Vec<f64> = (0..n.div_ceil(2)).flat_map(|_| pair(&mut one)).collect();
            let mut expected = pairs.iter().enumerate().map(|(i, z)| 1.0 + i as f64 * z);
            assert!(slots.iter().all(|x| Some(*x) == expected.next()), "{n}");
        }
    }

    #[test]
    fn numbers_are_normal() {
        let n = 200_000;
        let mut slots = vec![0.0; n];
        disturb(&mut slots, std::iter::repeat(1.0), &mut Uniform::new(1));
        let moment = |power: i32| slots.iter().map(|x| x.powi(power)).sum::<f64>() / n as f64;
        assert!(moment(1).abs() < 0.01 && (moment(2) - 1.0).abs() < 0.02 && (moment(4) - 3.0).abs() < 0.1);
    }
}
