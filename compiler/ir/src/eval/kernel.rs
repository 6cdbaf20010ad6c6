//! Convolution, dense layer and pooling.
//!
//! Convolution gathers the window of every output position into one row (im2col) and multiplies by the weights with a
//! blocked dot product, so that small late images are as fast as large early ones.

use pulp::{Arch, Simd, WithSimd};

use crate::{Conv2d, Divisor, Pool, Shape, Tensor, Value};

/// Positions gathered at a time; bounds the scratch memory.
const TILE: usize = 64;

pub(super) fn conv2d(
    conv: &Conv2d,
    weight: &Tensor,
    bias: Option<&Tensor>,
    x: &Value,
    shape: Shape,
) -> Vec<f64> {
    let [out, per_group, kh, kw] = *weight.dims() else { unreachable!("shape inference checked the weight") };
    let taps = per_group * kh * kw;
    let out_per_group = out / conv.groups;
    let weight = weight.to_f64();
    let mut result = start(bias, shape);
    let mut windows = vec![0.0; TILE * taps];
    for group in 0..conv.groups {
        let rows = &weight[group * out_per_group * taps..(group + 1) * out_per_group * taps];
        for first in (0..shape.area()).step_by(TILE) {
            let count = TILE.min(shape.area() - first);
            for i in 0..count {
                let position = [(first + i) / shape.w, (first + i) % shape.w];
                let window = &mut windows[i * taps..(i + 1) * taps];
                gather_window(conv, x, group * per_group, [per_group, kh, kw], position, window);
            }
            let base = group * out_per_group * shape.area() + first;
            multiply(rows, &windows[..count * taps], taps, |o, i, sum| {
                result[base + o * shape.area() + i] += sum
            });
        }
    }
    result
}

pub(super) fn linear(weight: &Tensor, bias: Option<&Tensor>, x: &Value) -> Vec<f64> {
    let [out, n] = *weight.dims() else { unreachable!("shape inference checked the weight") };
    let mut result = start(bias, Shape::vector(out));
    multiply(&weight.to_f64(), &x.data, n, |o, _, sum| result[o] += sum);
    result
}

pub(super) fn pool(pool: &Pool, x: &Value, shape: Shape) -> Vec<f64> {
    let mut result = Vec::with_capacity(shape.len());
    for c in 0..shape.c {
        for oy in 0..shape.h {
            let rows = window_range(oy, pool.stride[0], pool.pads.top, pool.kernel[0], x.shape.h);
            for ox in 0..shape.w {
                let columns = window_range(ox, pool.stride[1], pool.pads.left, pool.kernel[1], x.shape.w);
                let row_sum = |y: usize| {
                    let row = (c * x.shape.h + y) * x.shape.w;
                    x.data[row + columns.start..row + columns.end].iter().sum::<f64>()
                };
                let sum: f64 = rows.clone().map(row_sum).sum();
                result.push(match pool.divisor {
                    Divisor::Constant(k) => sum / k,
                    Divisor::ExcludePad => sum / (rows.len() * columns.len()).max(1) as f64,
                });
            }
        }
    }
    result
}

/// The bias of every output number, or zero.
fn start(bias: Option<&Tensor>, shape: Shape) -> Vec<f64> {
    match bias {
        None => vec![0.0; shape.len()],
        Some(b) if b.len() == shape.len() => b.iter().collect(),
        Some(b) => (0..shape.len()).map(|i| b.get(i / shape.area())).collect(),
    }
}

/// The rows or columns of a pooling window that lie inside the operand.
fn window_range(o: usize, stride: usize, pad: usize, kernel: usize, extent: usize) -> std::ops::Range<usize> {
    let first = o * stride;
    let start = first.saturating_sub(pad).min(extent);
    let end = (first + kernel).saturating_sub(pad).min(extent);
    start..end.max(start)
}

/// Copies the operand under one window, zero where it lies outside.
fn gather_window(
    conv: &Conv2d,
    x: &Value,
    first_channel: usize,
    [channels, kh, kw]: [usize; 3],
    [oy, ox]: [usize; 2],
    window: &mut [f64],
) {
    let mut taps = window.iter_mut();
    for c in first_channel..first_channel + channels {
        for ky in 0..kh {
            let y = (oy * conv.stride[0] + ky * conv.dilation[0]).wrapping_sub(conv.pads.top);
            for kx in 0..kw {
                let column = (ox * conv.stride[1] + kx * conv.dilation[1]).wrapping_sub(conv.pads.left);
                let tap = taps.next().expect("the window has one tap per channel and kernel cell");
                *tap = if y < x.shape.h && column < x.shape.w {
                    x.data[(c * x.shape.h + y) * x.shape.w + column]
                } else {
                    0.0
                };
            }
        }
    }
}

/// Calls `emit(i, j, dot)` with the dot product of row i of `a` and row j of `b`, rows of `n` numbers. Numbers have the same bits
/// whatever vectors the CPU has.
fn multiply(a: &[f64], b: &[f64], n: usize, emit: impl FnMut(usize, usize, f64)) {
    Arch::new().dispatch(Multiply { a, b, n, emit });
}

struct Multiply<'a, F> {
    a: &'a [f64],
    b: &'a [f64],
    n: usize,
    emit: F,
}

impl<F: FnMut(usize, usize, f64)> WithSimd for Multiply<'_, F> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { a, b, n, mut emit } = self;
        let (rows_a, rows_b) = (a.len() / n, b.len() / n);
        for i in (0..rows_a).step_by(2) {
            let a0 = &a[i * n..(i + 1) * n];
            let a1 = if i + 1 < rows_a { &a[(i + 1) * n..(i + 2) * n] } else { a0 };
            for j in (0..rows_b).step_by(2) {
                let b0 = &b[j * n..(j + 1) * n];
                let b1 = if j + 1 < rows_b { &b[(j + 1) * n..(j + 2) * n] } else { b0 };
                let [s00, s01, s10, s11] = dot_2x2([a0, a1], [b0, b1]);
                emit(i, j, s00);
                if j + 1 < rows_b {
                    emit(i, j + 1, s01);
                }
                if i + 1 < rows_a {
                    emit(i + 1, j, s10);
                }
                if i + 1 < rows_a && j + 1 < rows_b {
                    emit(i + 1, j + 1, s11);
                }
            }
        }
    }
}

/// Four dot products at once, each in lanes that the compiler can keep in vector registers.
#[inline(always)]
fn dot_2x2([a0, a1]: [&[f64]; 2], [b0, b1]: [&[f64]; 2]) -> [f64; 4] {
    const LANES: usize = 4;
    let mut sums = [[0.0; LANES]; 4];
    let n = a0.len();
    let whole = n - n % LANES;
    for (((x0, x1), y0), y1) in a0[..whole]
        .chunks_exact(LANES)
        .zip(a1[..whole].chunks_exact(LANES))
        .zip(b0[..whole].chunks_exact(LANES))
        .zip(b1[..whole].chunks_exact(LANES))
    {
        for l in 0..LANES {
            sums[0][l] += x0[l] * y0[l];
            sums[1][l] += x0[l] * y1[l];
            sums[2][l] += x1[l] * y0[l];
            sums[3][l] += x1[l] * y1[l];
        }
    }
    let mut out = sums.map(|lanes| lanes.iter().sum::<f64>());
    for k in whole..n {
        out[0] += a0[k] * b0[k];
        out[1] += a0[k] * b1[k];
        out[2] += a1[k] * b0[k];
        out[3] += a1[k] * b1[k];
    }
    out
}
