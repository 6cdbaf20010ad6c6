//! Networks in double precision, term by term: slow and obvious, and none of it shared with the compiler.

use super::{Conv, Extents, Layer, Network, Op, Poly, ValueIdx};

/// Added to variances, as ONNX does unless told otherwise.
const EPSILON: f64 = 1e-5;

/// Numbers in channel, row, column order.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// Channels, rows, columns.
    pub extents: Extents,
    /// The numbers.
    pub data: Vec<f64>,
}

impl Tensor {
    /// Nothing but zeros.
    #[must_use]
    pub fn zeros(extents: Extents) -> Self {
        Self { extents, data: vec![0.0; extents.iter().product()] }
    }

    /// The largest absolute number.
    #[must_use]
    pub fn peak(&self) -> f64 {
        self.data.iter().fold(0.0, |m, x| m.max(x.abs()))
    }

    /// Numbers of one channel.
    #[must_use]
    pub fn channel(&self, c: usize) -> &[f64] {
        let area = self.extents[1] * self.extents[2];
        &self.data[c * area..(c + 1) * area]
    }

    fn at(&self, c: usize, y: usize, x: usize) -> f64 {
        self.data[(c * self.extents[1] + y) * self.extents[2] + x]
    }

    /// Every number from its channel and its value.
    fn map(&self, f: impl Fn(usize, f64) -> f64) -> Self {
        let area = (self.extents[1] * self.extents[2]).max(1);
        let data = self.data.iter().enumerate().map(|(i, &x)| f(i / area, x)).collect();
        Self { extents: self.extents, data }
    }

    /// Every number from its position.
    fn build(extents: Extents, f: impl Fn(usize, usize, usize) -> f64) -> Self {
        let [c, h, w] = extents;
        let data = (0..c * h * w).map(|i| f(i / (h * w), i / w % h, i % w)).collect();
        Self { extents, data }
    }
}

impl Network {
    /// Every value for one input, from the input on; the last is the scores.
    ///
    /// # Panics
    /// When the network is not one: operands that do not fit, or weights of the wrong length.
    #[must_use]
    pub fn evaluate(&self, input: &[f64]) -> Vec<Tensor> {
        let mut values = vec![Tensor { extents: self.input, data: input.to_vec() }];
        for layer in &self.layers {
            let value = apply(layer, &values);
            values.push(value);
        }
        values
    }

    /// The scores for one input.
    #[must_use]
    pub fn scores(&self, input: &[f64]) -> Vec<f64> {
        self.evaluate(input).pop().map_or_else(Vec::new, |value| value.data)
    }
}

/// The result of a layer over the values before it.
pub(super) fn apply(layer: &Layer, values: &[Tensor]) -> Tensor {
    let operand = |slot: usize| -> &Tensor {
        let ValueIdx(index) = layer.of[slot];
        &values[index]
    };
    let x = operand(0);
    match &layer.op {
        Op::Conv(conv) => convolved(x, conv),
        Op::Dense { weight, bias, .. } => dense(x, weight, bias.as_deref()),
        Op::BatchNorm { scale, shift, mean, variance } => x.map(|c, v| {
            let deviation = (f64::from(variance[c]) + EPSILON).sqrt();
            f64::from(scale[c]) * (v - f64::from(mean[c])) / deviation + f64::from(shift[c])
        }),
        Op::Poly(poly) => x.map(|c, v| polynomial(poly, c, v)),
        Op::AveragePool { kernel, stride } => pooled(x, *kernel, *stride),
        Op::GlobalPool => pooled(x, [x.extents[1], x.extents[2]], [1, 1]),
        Op::Flatten => Tensor { extents: [x.data.len(), 1, 1], data: x.data.clone() },
        Op::Add => {
            let y = operand(1);
            assert_eq!(x.extents, y.extents, "sums are of values of one shape");
            Tensor { extents: x.extents, data: x.data.iter().zip(&y.data).map(|(a, b)| a + b).collect() }
        }
        Op::Concat => {
            let y = operand(1);
            assert_eq!(x.extents[1..], y.extents[1..], "channels of one size are joined");
            let extents = [x.extents[0] + y.extents[0], x.extents[1], x.extents[2]];
            Tensor { extents, data: x.data.iter().chain(&y.data).copied().collect() }
        }
    }
}

fn polynomial(poly: &Poly, channel: usize, x: f64) -> f64 {
    (0..=poly.degree()).rev().fold(0.0, |sum, power| sum * x + f64::from(poly.coefficient(power, channel)))
}

fn convolved(x: &Tensor, conv: &Conv) -> Tensor {
    let [c, h, w] = x.extents;
    let ([kh, kw], [sy, sx], [py, px]) = (conv.kernel, conv.stride, conv.pad);
    let (per_group, out_per_group) = (c / conv.groups, conv.out / conv.groups);
    assert_eq!(conv.weight.len(), conv.out * per_group * kh * kw, "a weight for every tap");
    let extents = [conv.out, (h + 2 * py - kh) / sy + 1, (w + 2 * px - kw) / sx + 1];
    Tensor::build(extents, |o, oy, ox| {
        let mut sum = conv.bias.as_ref().map_or(0.0, |bias| f64::from(bias[o]));
        for i in 0..per_group {
            for ky in 0..kh {
                for kx in 0..kw {
                    let (y, x_at) = ((oy * sy + ky).wrapping_sub(py), (ox * sx + kx).wrapping_sub(px));
                    if y < h && x_at < w {
                        let weight = conv.weight[((o * per_group + i) * kh + ky) * kw + kx];
                        sum += f64::from(weight) * x.at(o / out_per_group * per_group + i, y, x_at);
                    }
                }
            }
        }
        sum
    })
}

fn dense(x: &Tensor, weight: &[f32], bias: Option<&[f32]>) -> Tensor {
    assert_eq!(x.extents[1..], [1, 1], "dense layers are over vectors");
    let out = weight.len() / x.data.len();
    Tensor::build([out, 1, 1], |o, _, _| {
        let row = &weight[o * x.data.len()..][..x.data.len()];
        let sum: f64 = row.iter().zip(&x.data).map(|(w, v)| f64::from(*w) * v).sum();
        sum + bias.map_or(0.0, |bias| f64::from(bias[o]))
    })
}

fn pooled(x: &Tensor, [kh, kw]: [usize; 2], [sy, sx]: [usize; 2]) -> Tensor {
    let [c, h, w] = x.extents;
    Tensor::build([c, (h - kh) / sy + 1, (w - kw) / sx + 1], |c, oy, ox| {
        let taps = (0..kh * kw).map(|i| x.at(c, oy * sy + i / kw, ox * sx + i % kw));
        taps.sum::<f64>() / (kh * kw) as f64
    })
}
