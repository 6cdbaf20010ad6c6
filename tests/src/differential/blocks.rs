//! Layers with random weights, scaled on the way: every layer is evaluated on the calibration inputs while it is drawn, so
//! that activations get the ranges they are made for, whatever the size of the weights.

use super::evaluate::apply;
use super::{Conv, Layer, Limits, Network, Op, Rank, Temper, Tensor, ValueIdx};
use crate::models::random::Random;

/// A network that grows.
pub(super) struct Builder {
    pub(super) random: Random,
    network: Network,
    /// Every value of every calibration input.
    values: Vec<Vec<Tensor>>,
    pub(super) temper: Temper,
    limits: Limits,
    /// Multiplications left for activations.
    pub(super) depth: usize,
}

impl Builder {
    pub(super) fn new(
        network: Network,
        inputs: &[Vec<f64>],
        temper: Temper,
        limits: Limits,
        random: Random,
    ) -> Self {
        let first = |data: &Vec<f64>| vec![Tensor { extents: network.input, data: data.clone() }];
        let values = inputs.iter().map(first).collect();
        Self { random, values, temper, depth: limits.depth, limits, network }
    }

    pub(super) fn finish(self) -> Network {
        self.network
    }

    pub(super) fn n_activations(&self) -> usize {
        self.network.activations().count()
    }

    pub(super) fn rank_of_input(&self) -> Rank {
        self.network.rank
    }

    /// Numbers of a value.
    pub(super) fn len(&self, x: ValueIdx) -> usize {
        self.extents(x).iter().product()
    }

    /// Adds a layer.
    pub(super) fn push(&mut self, op: Op, of: &[ValueIdx]) -> ValueIdx {
        let layer = Layer { op, of: of.to_vec() };
        for values in &mut self.values {
            let value = apply(&layer, values);
            values.push(value);
        }
        self.network.layers.push(layer);
        ValueIdx(self.network.layers.len())
    }

    /// A linear layer, perhaps a normalization, and an activation.
    pub(super) fn plain(&mut self, x: ValueIdx) -> ValueIdx {
        let y = self.linear(x);
        self.activation(y)
    }

    /// Two linear layers beside a shortcut, each with an activation behind it.
    pub(super) fn residual(&mut self, x: ValueIdx) -> ValueIdx {
        let start = self.plain(x);
        let channels = self.extents(start)[0];
        let range = self.peak(start) * self.share();
        let inner = match self.network.rank {
            Rank::Vector => self.dense(start, channels, range),
            _ => self.conv(start, channels, [3, 3], true, range),
        };
        let inner = self.maybe_norm(inner);
        let shortcut = match self.random.below(2) {
            0 => start,
            _ => {
                let range = self.peak(start) * self.share();
                match self.network.rank {
                    Rank::Vector => self.dense(start, channels, range),
                    _ => self.conv(start, channels, [1, 1], true, range),
                }
            }
        };
        let sum = self.push(Op::Add, &[inner, shortcut]);
        self.activation(sum)
    }

    /// Two linear layers side by side, their channels joined.
    pub(super) fn branches(&mut self, x: ValueIdx) -> ValueIdx {
        let channels = 1 + self.random.below(self.limits.channels);
        let (a, b) = (self.range(), self.range());
        let (left, right) = match self.network.rank {
            Rank::Vector => (self.dense(x, channels, a), self.dense(x, 2, b)),
            _ => (self.conv(x, channels, [3, 3], true, a), self.conv(x, 2, [1, 1], true, b)),
        };
        let joined = self.push(Op::Concat, &[left, right]);
        self.activation(joined)
    }

    /// Averages over windows of two or three, where there is room.
    pub(super) fn maybe_pool(&mut self, x: ValueIdx) -> ValueIdx {
        let [_, h, w] = self.extents(x);
        let k = 2 + self.random.below(2);
        if self.network.rank == Rank::Vector || w < 2 * k || self.random.below(5) > 1 {
            return x;
        }
        let kh = if h < 2 * k { 1 } else { k };
        let stride = [kh.min(2), 2];
        self.push(Op::AveragePool { kernel: [kh, k], stride }, &[x])
    }

    fn linear(&mut self, x: ValueIdx) -> ValueIdx {
        let range = self.range();
        let y = match self.network.rank {
            Rank::Vector => {
                let out = 2 + self.random.below(self.limits.vector - 1);
                self.dense(x, out, range)
            }
            _ => {
                let kernel = [1 + self.random.below(4), 1 + self.random.below(4)];
                let out = 1 + self.random.below(self.limits.channels);
                let is_same = self.random.below(2) == 0;
                self.conv(x, out, kernel, is_same, range)
            }
        };
        self.maybe_norm(y)
    }

    /// A dense layer whose largest result is `range`.
    pub(super) fn dense(&mut self, x: ValueIdx, out: usize, range: f64) -> ValueIdx {
        let n_inputs = self.len(x);
        let weight = self.weights(out, n_inputs);
        let bias = self.bias(out);
        let as_matmul = self.random.below(2) == 0;
        let make = |weight, bias| Op::Dense { weight, bias: Some(bias), as_matmul };
        self.scaled(x, weight, bias, range, make)
    }

    /// A convolution whose largest result is `range`; `is_same` keeps rows and columns.
    fn conv(&mut self, x: ValueIdx, out: usize, kernel: [usize; 2], is_same: bool, range: f64) -> ValueIdx {
        let [c, h, w] = self.extents(x);
        let kernel = match is_same {
            true => [kernel[0] | 1, kernel[1] | 1],
            false => kernel,
        };
        let kernel = if h == 1 { [1, kernel[1]] } else { kernel };
        let pad = if is_same { [kernel[0] / 2, kernel[1] / 2] } else { [0, 0] };
        let kernel = [kernel[0].min(h + 2 * pad[0]), kernel[1].min(w + 2 * pad[1])];
        let is_strided = !is_same && w > 4 && self.random.below(2) == 0;
        let stride = if is_strided { [h.min(2), 2] } else { [1, 1] };
        let groups = if out == c && self.random.below(4) == 0 { c } else { 1 };
        let weight = self.weights(out, c / groups * kernel[0] * kernel[1]);
        let bias = self.bias(out);
        let has_bias = self.random.below(4) > 0;
        let make = |weight, bias| {
            let bias = has_bias.then_some(bias);
            Op::Conv(Conv { weight, bias, out, kernel, stride, pad, groups })
        };
        self.scaled(x, weight, bias, range, make)
    }

    /// Adds a linear layer with weights and bias scaled together.
    fn scaled(
        &mut self,
        x: ValueIdx,
        weight: Vec<f32>,
        bias: Vec<f32>,
        range: f64,
        make: impl Fn(Vec<f32>, Vec<f32>) -> Op,
    ) -> ValueIdx {
        let peak_of = |builder: &Self, op| {
            let layer = Layer { op, of: vec![x] };
            builder.values.iter().map(|values| apply(&layer, values).peak()).fold(0.0, f64::max)
        };
        let times = |numbers: &[f32], factor: f64| -> Vec<f32> {
            numbers.iter().map(|&w| (f64::from(w) * factor) as f32).collect()
        };
        let silent = vec![0.0; bias.len()];
        let product = peak_of(self, make(weight.clone(), silent));
        let weight = times(&weight, if product > 0.0 { product.recip() } else { 1.0 });
        let whole = peak_of(self, make(weight.clone(), bias.clone()));
        let factor = if whole > 0.0 { range / whole } else { range };
        self.push(make(times(&weight, factor), times(&bias, factor)), &[x])
    }

    /// Batch normalization with the statistics of the calibration inputs.
    fn maybe_norm(&mut self, x: ValueIdx) -> ValueIdx {
        if self.random.below(3) > 0 {
            return x;
        }
        let (mut mean, mut variance) = (Vec::new(), Vec::new());
        for c in 0..self.extents(x)[0] {
            let all: Vec<f64> =
                self.values.iter().flat_map(|values| values[x.0].channel(c)).copied().collect();
            let m = all.iter().sum::<f64>() / all.len() as f64;
            mean.push(m as f32);
            variance.push((all.iter().map(|v| (v - m).powi(2)).sum::<f64>() / all.len() as f64) as f32);
        }
        let range = (self.range() / 3.0) as f32;
        let is_nearly_dead: Vec<bool> =
            mean.iter().map(|_| self.is_wild() && self.random.below(10) == 0).collect();
        let scale = is_nearly_dead
            .iter()
            .map(|dead| range * self.random.uniform(0.3, 1.0) * if *dead { 1e-4 } else { 1.0 })
            .collect();
        let shift = mean.iter().map(|_| range * self.random.uniform(-0.5, 0.5)).collect();
        self.push(Op::BatchNorm { scale, shift, mean, variance }, &[x])
    }

    pub(super) fn extents(&self, x: ValueIdx) -> [usize; 3] {
        self.values[0][x.0].extents
    }

    pub(super) fn peak(&self, x: ValueIdx) -> f64 {
        self.values.iter().map(|values| values[x.0].peak()).fold(0.0, f64::max)
    }
}
