//! Butterflies of complex vectors, for any vectors; the bits of [`crate::complex`]'s scalar code.
//!
//! Layers are taken two at a time, so that the entries are read and written half as often. The last three turn groups of eight
//! entries into vectors of equal places; choosing the groups whose reversed numbers follow each other, their results are
//! written in order, and the bit reversal costs nothing.

use super::Width;
use super::lanes::{Lanes, bits, bits_mut};
use super::width::with_width;
use crate::complex::{Twiddles, reversed};

/// Smaller vectors are left to scalar code.
pub(crate) const MIN_COMPLEX: usize = 64;

/// See [`crate::Butterflies::integers`].
pub(crate) fn integers(
    width: Width,
    layers: &[Twiddles],
    re: &mut [f64],
    im: &mut [f64],
    factor: f64,
    out: &mut [f64],
) {
    with_width!(width, s => all(s, layers, bits_mut(re), bits_mut(im), factor, bits_mut(out)));
}

fn all<S: Lanes>(s: S, layers: &[Twiddles], re: &mut [u64], im: &mut [u64], factor: f64, out: &mut [u64]) {
    let (first, mut others) = layers.split_at(3);
    s.run(
        #[inline(always)]
        || {
            if others.len() % 2 == 1
                && let Some((layer, rest)) = others.split_last()
            {
                one_layer(s, layer, re, im);
                others = rest;
            }
            for pair in others.rchunks_exact(2) {
                two_layers(s, &pair[1], &pair[0], re, im);
            }
            last_layers(s, first, re, im, factor, out);
        },
    );
}

/// A complex number in every lane.
#[derive(Clone, Copy)]
struct Complex<V> {
    re: V,
    im: V,
}

/// (x, y) ← (x + y, (x - y)·w̄).
#[inline(always)]
fn cross<S: Lanes>(s: S, x: Complex<S::V>, y: Complex<S::V>, w: Complex<S::V>) -> [Complex<S::V>; 2] {
    let (dr, di) = (s.sub(x.re, y.re), s.sub(x.im, y.im));
    let sum = Complex { re: s.add(x.re, y.re), im: s.add(x.im, y.im) };
    let re = s.add(s.mul(dr, w.re), s.mul(di, w.im));
    [sum, Complex { re, im: s.sub(s.mul(di, w.re), s.mul(dr, w.im)) }]
}

/// Vectors of complex numbers, real and imaginary parts apart.
struct Parts<'a, S: Lanes> {
    re: &'a mut [S::Words],
    im: &'a mut [S::Words],
}

impl<S: Lanes> Parts<'_, S> {
    #[inline(always)]
    fn load(&self, s: S, i: usize) -> Complex<S::V> {
        Complex { re: s.load(&self.re[i]), im: s.load(&self.im[i]) }
    }

    #[inline(always)]
    fn store(&mut self, s: S, i: usize, x: Complex<S::V>) {
        s.store(&mut self.re[i], x.re);
        s.store(&mut self.im[i], x.im);
    }
}

/// Vectors of twiddles.
struct Table<'a, S: Lanes> {
    cos: &'a [S::Words],
    sin: &'a [S::Words],
}

impl<'a, S: Lanes> Table<'a, S> {
    #[inline(always)]
    fn new(layer: &'a Twiddles) -> Self {
        Self { cos: S::words(bits(&layer.cos)).0, sin: S::words(bits(&layer.sin)).0 }
    }

    #[inline(always)]
    fn load(&self, s: S, i: usize) -> Complex<S::V> {
        Complex { re: s.load(&self.cos[i]), im: s.load(&self.sin[i]) }
    }
}

/// A layer of whole vectors.
#[inline(always)]
fn one_layer<S: Lanes>(s: S, layer: &Twiddles, re: &mut [u64], im: &mut [u64]) {
    let (w, half) = (Table::<S>::new(layer), layer.cos.len() / S::WIDTH);
    let (re, im) = (S::words_mut(re).0, S::words_mut(im).0);
    for (re, im) in re.chunks_exact_mut(2 * half).zip(im.chunks_exact_mut(2 * half)) {
        let mut x = Parts::<S> { re, im };
        for j in 0..half {
            let [a, b] = cross(s, x.load(s, j), x.load(s, half + j), w.load(s, j));
            x.store(s, j, a);
            x.store(s, half + j, b);
        }
    }
}

/// Two layers of whole vectors, the larger and then the smaller one.
#[inline(always)]
fn two_layers<S: Lanes>(s: S, large: &Twiddles, small: &Twiddles, re: &mut [u64], im: &mut [u64]) {
    let quarter = small.cos.len() / S::WIDTH;
    let (large, small) = (Table::<S>::new(large), Table::<S>::new(small));
    let (re, im) = (S::words_mut(re).0, S::words_mut(im).0);
    for (re, im) in re.chunks_exact_mut(4 * quarter).zip(im.chunks_exact_mut(4 * quarter)) {
        let mut x = Parts::<S> { re, im };
        for j in 0..quarter {
            let (a, b) = (x.load(s, j), x.load(s, quarter + j));
            let (c, d) = (x.load(s, 2 * quarter + j), x.load(s, 3 * quarter + j));
            let [a, c] = cross(s, a, c, large.load(s, j));
            let [b, d] = cross(s, b, d, large.load(s, quarter + j));
            let w = small.load(s, j);
            let [a, b] = cross(s, a, b, w);
            let [c, d] = cross(s, c, d, w);
            x.store(s, j, a);
            x.store(s, quarter + j, b);
            x.store(s, 2 * quarter + j, c);
            x.store(s, 3 * quarter + j, d);
        }
    }
}

/// The layers inside groups of eight, the factor, the rounding and the bit reversal.
#[inline(always)]
fn last_layers<S: Lanes>(s: S, layers: &[Twiddles], re: &[u64], im: &[u64], factor: f64, out: &mut [u64]) {
    let n_groups = re.len() / 8;
    let n_rounds = n_groups / S::WIDTH;
    let round_bits = n_rounds.trailing_zeros() as usize;
    let lane_bits = S::WIDTH.trailing_zeros() as usize;
    let (re, im) = (S::words(re).0, S::words(im).0);
    let (out_re, out_im) = out.split_at_mut(out.len() / 2);
    let mut out = Parts::<S> { re: S::words_mut(out_re).0, im: S::words_mut(out_im).0 };
    let factor = s.splat(factor);
    let per_group = 8 / S::WIDTH;
    let zero = Complex { re: s.splat(0.0), im: s.splat(0.0) };
    let (mut w1, mut w2, mut w4) = ([zero; 1], [zero; 2], [zero; 4]);
    for (layer, w) in layers.iter().zip([&mut w1[..], &mut w2, &mut w4]) {
        for (j, w) in w.iter_mut().enumerate() {
            *w = Complex { re: s.splat(layer.cos[j]), im: s.splat(layer.sin[j]) };
        }
    }
    for round in 0..n_rounds {
        let (mut x_re, mut x_im) = ([zero.re; 8], [zero.im; 8]);
        for row in 0..8 {
            // Lane l takes the group whose number, reversed, ends with l.
            let group = reversed(row / per_group, lane_bits) * n_rounds + round;
            let place = group * per_group + row % per_group;
            (x_re[row], x_im[row]) = (s.load(&re[place]), s.load(&im[place]));
        }
        let (x_re, x_im) = (s.group(x_re), s.group(x_im));
        let mut x = [zero; 8];
        for k in 0..8 {
            x[k] = Complex { re: x_re[k], im: x_im[k] };
        }
        for j in 0..4 {
            [x[j], x[j + 4]] = cross(s, x[j], x[j + 4], w4[j]);
        }
        for block in [0, 4] {
            for j in 0..2 {
                [x[block + j], x[block + j + 2]] = cross(s, x[block + j], x[block + j + 2], w2[j]);
            }
        }
        for block in [0, 2, 4, 6] {
            [x[block], x[block + 1]] = cross(s, x[block], x[block + 1], w1[0]);
        }
        let place = reversed(round, round_bits);
        for k in 0..8 {
            let (re, im) = (s.mul(x[k].re, factor), s.mul(x[k].im, factor));
            out.store(s, reversed(k, 3) * n_rounds + place, Complex { re: s.round(re), im: s.round(im) });
        }
    }
}
