//! Convolution, dense layer and pooling.
//!
//! Convolution gathers the windows of some output positions (im2col), what a tap reads at all of them side by side, and
//! multiplies by the weights at several positions at once.

use pulp::{Arch, Simd, WithSimd};

use crate::{Conv2d, Divisor, Pool, Shape, Tensor, Value};

/// Positions gathered at a time, a multiple of all vectors; bounds the scratch memory.
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
            let positions = first..shape.area().min(first + TILE);
            gather_windows(
                conv,
                x,
                group * per_group,
                [per_group, kh, kw],
                (&positions, shape.w),
                &mut windows,
            );
            let base = group * out_per_group * shape.area() + first;
            let result = &mut result[base..];
            let channels = Channels { rows, taps, windows: &windows, n: positions.len(), result };
            Arch::new().dispatch(Convolve { channels, area: shape.area() });
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

/// Copies the operand under the windows of some positions, zero where they lie outside: for every tap the numbers of all
/// positions side by side.
fn gather_windows(
    conv: &Conv2d,
    x: &Value,
    first_channel: usize,
    [channels, kh, kw]: [usize; 3],
    (positions, width): (&std::ops::Range<usize>, usize),
    windows: &mut [f64],
) {
    let mut taps = windows.chunks_exact_mut(TILE);
    for c in first_channel..first_channel + channels {
        for ky in 0..kh {
            for kx in 0..kw {
                let tap = taps.next().expect("there is a row for every channel and kernel cell");
                let mut at = positions.start;
                // One row of the result at a time.
                while at < positions.end {
                    let (oy, ox) = (at / width, at % width);
                    let end = positions.end.min((oy + 1) * width);
                    let own = &mut tap[at - positions.start..end - positions.start];
                    at = end;
                    let y = (oy * conv.stride[0] + ky * conv.dilation[0]).wrapping_sub(conv.pads.top);
                    if y >= x.shape.h {
                        own.fill(0.0);
                        continue;
                    }
                    let row = &x.data[(c * x.shape.h + y) * x.shape.w..][..x.shape.w];
                    for (own, ox) in own.iter_mut().zip(ox..) {
                        let column =
                            (ox * conv.stride[1] + kx * conv.dilation[1]).wrapping_sub(conv.pads.left);
                        *own = row.get(column).copied().unwrap_or(0.0);
                    }
                }
            }
        }
    }
}

/// Lanes of a dot product, which are added up at its end.
const LANES: usize = 4;

/// Output channels at some positions.
struct Channels<'a> {
    /// Their weights, one row after the other.
    rows: &'a [f64],
    taps: usize,
    /// What they read.
    windows: &'a [f64],
    /// Positions.
    n: usize,
    result: &'a mut [f64],
}

/// Adds the dot products of every channel and position; channels of the result are an area apart. Numbers have the same bits
/// whatever vectors the CPU has: what a position adds up does not depend on its neighbors.
struct Convolve<'a> {
    channels: Channels<'a>,
    area: usize,
}

impl WithSimd for Convolve<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { channels: Channels { rows, taps, windows, n, result }, area } = self;
        let whole = taps - taps % LANES;
        let mut sums = [0.0; TILE];
        for (o, row) in rows.chunks_exact(taps.max(1)).enumerate() {
            let (windows, rest) = windows[..taps * TILE].split_at(whole * TILE);
            for (block, sums) in sums[..n.next_multiple_of(2 * S::F64_LANES).min(TILE)]
                .chunks_exact_mut(2 * S::F64_LANES)
                .enumerate()
            {
                let first = block * 2 * S::F64_LANES;
                let load = |tap: &[f64]| {
                    let (vectors, _) = S::as_simd_f64s(&tap[first..first + 2 * S::F64_LANES]);
                    [vectors[0], vectors[1]]
                };
                let zero = simd.splat_f64s(0.0);
                let mut lanes = [[zero; 2]; LANES];
                for (weights, taps) in row.chunks_exact(LANES).zip(windows.chunks_exact(LANES * TILE)) {
                    for l in 0..LANES {
                        let (weight, numbers) = (simd.splat_f64s(weights[l]), load(&taps[l * TILE..]));
                        for v in 0..2 {
                            lanes[l][v] = simd.add_f64s(lanes[l][v], simd.mul_f64s(weight, numbers[v]));
                        }
                    }
                }
                let mut total = [zero; 2];
                for lane in lanes {
                    (0..2).for_each(|v| total[v] = simd.add_f64s(total[v], lane[v]));
                }
                for (weight, tap) in row[whole..].iter().zip(rest.chunks_exact(TILE)) {
                    let (weight, numbers) = (simd.splat_f64s(*weight), load(tap));
                    (0..2).for_each(|v| {
                        total[v] = simd.add_f64s(total[v], simd.mul_f64s(weight, numbers[v]));
                    });
                }
                let (vectors, _) = S::as_mut_simd_f64s(sums);
                vectors.copy_from_slice(&total);
            }
            let own = &mut result[o * area..][..n];
            own.iter_mut().zip(&sums).for_each(|(own, sum)| *own += sum);
        }
    }
}

/// Calls `emit(i, j, dot)` with the dot product of row i of `a` and row j of `b`, rows of `n` numbers.
fn multiply(a: &[f64], b: &[f64], n: usize, mut emit: impl FnMut(usize, usize, f64)) {
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

/// Four dot products at once, each in lanes that the compiler can keep in vector registers.
fn dot_2x2([a0, a1]: [&[f64]; 2], [b0, b1]: [&[f64]; 2]) -> [f64; 4] {
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
