//! Operations that treat every number on its own, or only move numbers.

use crate::op::{bivar_degree, monomials};
use crate::{Pad, Shape, Slice, Tensor, Value};

/// The entry of a `[C]` or `[1]` constant for a channel.
pub(super) fn at(constant: &Tensor, channel: usize) -> f64 {
    constant.get(if constant.len() == 1 { 0 } else { channel })
}

/// Applies `f(number, channel)` everywhere.
pub(super) fn map(x: &Value, f: impl Fn(f64, usize) -> f64) -> Vec<f64> {
    let mut result = Vec::with_capacity(x.data.len());
    for (c, channel) in x.data.chunks(x.shape.area().max(1)).enumerate() {
        result.extend(channel.iter().map(|&v| f(v, c)));
    }
    result
}

pub(super) fn add_const(x: &Value, constant: &Tensor) -> Vec<f64> {
    if constant.len() == x.shape.len() {
        x.data.iter().zip(constant.iter()).map(|(a, b)| a + b).collect()
    } else {
        map(x, |v, c| v + at(constant, c))
    }
}

/// Horner's rule, with the coefficients of each channel gathered once.
pub(super) fn poly(x: &Value, coeffs: &Tensor) -> Vec<f64> {
    let rows = rows_by_channel(coeffs, x.shape.c);
    map(x, |v, c| rows[c].iter().rev().fold(0.0, |acc, &k| acc * v + k))
}

pub(super) fn bivar(x: &Value, y: &Value, coeffs: &Tensor) -> Vec<f64> {
    let degree = bivar_degree(coeffs.dims()[0]).expect("shape inference checked the monomial count");
    let powers: Vec<(i32, i32)> = monomials(degree).map(|(i, j)| (i as i32, j as i32)).collect();
    let rows = rows_by_channel(coeffs, x.shape.c);
    let area = x.shape.area();
    let term = |c: usize, a: f64, b: f64| {
        rows[c].iter().zip(&powers).map(|(&k, &(i, j))| k * a.powi(i) * b.powi(j)).sum::<f64>()
    };
    x.data.iter().zip(&y.data).enumerate().map(|(i, (&a, &b))| term(i / area, a, b)).collect()
}

pub(super) fn slice(x: &Value, slice: &Slice, shape: Shape) -> Vec<f64> {
    gather(shape, |c, y, w| {
        let source =
            [c, y, w].into_iter().enumerate().map(|(axis, i)| slice.start[axis] + i * slice.step[axis]);
        let source: Vec<usize> = source.collect();
        x.data[(source[0] * x.shape.h + source[1]) * x.shape.w + source[2]]
    })
}

pub(super) fn pad(x: &Value, pad: &Pad, shape: Shape) -> Vec<f64> {
    let [before_c, before_h, before_w] = pad.before;
    gather(shape, |c, y, w| {
        let inside = |i: usize, before: usize, extent: usize| i >= before && i - before < extent;
        if inside(c, before_c, x.shape.c) && inside(y, before_h, x.shape.h) && inside(w, before_w, x.shape.w)
        {
            x.data[((c - before_c) * x.shape.h + y - before_h) * x.shape.w + w - before_w]
        } else {
            0.0
        }
    })
}

fn gather(shape: Shape, f: impl Fn(usize, usize, usize) -> f64) -> Vec<f64> {
    let mut out = Vec::with_capacity(shape.len());
    for c in 0..shape.c {
        for y in 0..shape.h {
            for x in 0..shape.w {
                out.push(f(c, y, x));
            }
        }
    }
    out
}

fn rows_by_channel(coeffs: &Tensor, n_channels: usize) -> Vec<Vec<f64>> {
    let [rows, width] = *coeffs.dims() else { unreachable!("shape inference checked the coefficient table") };
    let column = |c: usize| if width == 1 { 0 } else { c };
    (0..n_channels).map(|c| (0..rows).map(|r| coeffs.get(r * width + column(c))).collect()).collect()
}
