//! Centering the sources of a base conversion.

use super::Width;
use super::lanes::Lanes;
use super::prime::from_int;
use super::width::with_width;
use crate::modulus::Modulus;
use crate::scalar;

/// See [`scalar::center`]; moduli below 2^50, results as the bits of doubles.
///
/// # Panics
/// When lengths differ or a modulus is too large.
pub fn center(width: Width, y: &mut [&mut [u64]], moduli: &[Modulus]) {
    assert!(
        moduli.iter().all(|d| d.value() < super::FMA_PRIME_BOUND),
        "prime too large for double precision"
    );
    let len = y.first().map_or(0, |y| y.len());
    assert!(y.len() == moduli.len() && y.iter().all(|y| y.len() == len));
    with_width!(width, s => match y {
        [a] => few(s, [a], moduli),
        [a, b] => few(s, [a, b], moduli),
        [a, b, c] => few(s, [a, b, c], moduli),
        [a, b, c, d] => few(s, [a, b, c, d], moduli),
        _ => rest(y, moduli),
    });
}

/// The usual numbers of sources.
fn few<S: Lanes, const K: usize>(s: S, mut y: [&mut [u64]; K], moduli: &[Modulus]) {
    let len = y[0].len() / S::WIDTH * S::WIDTH;
    s.run(
        #[inline(always)]
        || {
            for i in 0..len / S::WIDTH {
                let mut x = [s.splat(0.0); K];
                let mut sum = s.splat(0.0);
                for k in 0..K {
                    x[k] = from_int(s, s.load(&S::words(y[k]).0[i]));
                    // Multiplied and added in two steps, as the scalar twin does.
                    sum = s.add(sum, s.mul(x[k], s.splat(1.0 / moduli[k].value() as f64)));
                }
                let count = s.round(sum);
                for k in 0..K {
                    let less = s.sub(x[k], s.splat(moduli[k].value() as f64));
                    let centered = s.select(s.sub(s.splat(k as f64), count), less, x[k]);
                    s.store(&mut S::words_mut(y[k]).0[i], centered);
                }
            }
        },
    );
    rest(&mut y.each_mut().map(|y| &mut y[len..]), moduli);
}

/// What no kernel takes.
fn rest(y: &mut [&mut [u64]], moduli: &[Modulus]) {
    scalar::center(y, moduli);
    y.iter_mut().flat_map(|y| y.iter_mut()).for_each(|y| *y = (*y as i64 as f64).to_bits());
}
