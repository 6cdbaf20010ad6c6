//! Layers: each writes its ONNX nodes and runs them on the calibration batch.
//!
//! Weights are random; batch-norm statistics are measured on the batch, and gain and offset are chosen such that
//! pre-activations keep a deviation below one through any number of layers, as training with a range penalty
//! leaves them (the gain shrinks where the batch has outliers). A few channels of every normalization
//! are nearly dead (tiny gain, or tiny weights and variance).

use super::activation::{self, Polynomial};
use super::image::{Image, statistics};
use super::random::Random;
use crate::onnx::{Attr, OnnxWriter};

const EPSILON: f32 = 1e-5;
/// Pairs of a noisy and a smooth image in the calibration batch.
const N_PAIRS: usize = 6;

/// A value of the graph together with what it is on the calibration batch.
#[derive(Clone, Debug)]
pub struct Value {
    /// ONNX name.
    pub name: String,
    batch: Vec<Image>,
}

impl Value {
    /// Number of channels.
    pub fn channels(&self) -> usize {
        self.batch[0].c
    }

    /// Height and width.
    pub fn size(&self) -> (usize, usize) {
        (self.batch[0].h, self.batch[0].w)
    }

    /// The largest absolute value on the calibration batch.
    pub fn peak(&self) -> f32 {
        self.batch.iter().flat_map(|i| &i.data).fold(0.0, |m, v| v.abs().max(m))
    }

    fn map(&self, name: String, f: impl Fn(&Image) -> Image) -> Value {
        Value { name, batch: self.batch.iter().map(f).collect() }
    }
}

/// The largest distance from the mean in each channel, in deviations.
fn peaks(batch: &[Image], mean: &[f32], variance: &[f32]) -> Vec<f32> {
    let peak = |c: usize| {
        let distance = batch.iter().flat_map(|i| i.channel(c)).map(|v| (v - mean[c]).abs());
        distance.fold(0.0, f32::max) / (variance[c] + EPSILON).sqrt()
    };
    (0..mean.len()).map(peak).collect()
}

/// Square kernel, stride and padding of a convolution.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// Kernel side.
    pub k: usize,
    /// Stride.
    pub stride: usize,
    /// Padding on every side.
    pub pad: usize,
}

/// Writes layers one after another.
#[derive(Debug)]
pub struct LayerWriter {
    /// The model so far.
    pub onnx: OnnxWriter,
    random: Random,
    polynomial: Polynomial,
    n_activations: usize,
}

impl LayerWriter {
    /// A writer whose activations are `polynomial`.
    pub fn new(name: &str, polynomial: Polynomial, seed: u64) -> Self {
        LayerWriter { onnx: OnnxWriter::new(name), random: Random::new(seed), polynomial, n_activations: 0 }
    }

    /// The image input, with a symbolic batch dimension.
    pub fn input(&mut self, c: usize, h: usize, w: usize) -> Value {
        let name = self.onnx.input("image", &[None, Some(c as i64), Some(h as i64), Some(w as i64)]);
        let random = &mut self.random;
        let pair = (0..N_PAIRS).flat_map(|_| [Image::noise(c, h, w, random), Image::waves(c, h, w, random)]);
        let batch = pair.collect();
        Value { name, batch }
    }

    /// A convolution, with a bias on request.
    pub fn conv(&mut self, x: &Value, out: usize, window: Window, with_bias: bool) -> Value {
        let Window { k, stride, pad } = window;
        let fan_in = x.channels() * k * k;
        let mut weights = self.random.normals(out * fan_in, (1.0 / fan_in as f32).sqrt());
        // One output channel in forty hardly sees its input.
        for channel in weights.chunks_mut(fan_in) {
            if self.random.below(40) == 0 {
                channel.iter_mut().for_each(|w| *w *= 1e-4);
            }
        }
        let name = self.onnx.fresh("conv");
        let w = self.onnx.tensor(&format!("{name}.weight"), &[out, x.channels(), k, k], &weights);
        let bias = with_bias.then(|| self.random.normals(out, 0.1));
        let mut inputs = vec![x.name.clone(), w];
        if let Some(bias) = &bias {
            inputs.push(self.onnx.tensor(&format!("{name}.bias"), &[out], bias));
        }
        let side = |v: usize| vec![v as i64; 2];
        let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();
        let attrs = [
            ("kernel_shape", Attr::Ints(side(k))),
            ("strides", Attr::Ints(side(stride))),
            ("pads", Attr::Ints(vec![pad as i64; 4])),
        ];
        let y = self.onnx.node_with("Conv", &inputs, &attrs);
        let bias = bias.unwrap_or_else(|| vec![0.0; out]);
        x.map(y, |i| i.conv(&weights, out, k, stride, pad).map(|c, v| v + bias[c]))
    }

    /// A batch normalization with measured statistics. `shortcut` is what will be added to it: the offset takes the
    /// shortcut's mean away again, so that the sum stays centered.
    pub fn batch_norm(&mut self, x: &Value, shortcut: Option<&Value>) -> Value {
        let channels = x.channels();
        let (mean, variance) = statistics(&x.batch);
        let center = shortcut.map_or_else(|| vec![0.0; channels], |s| statistics(&s.batch).0);
        let reach = peaks(&x.batch, &mean, &variance);
        let limit = if shortcut.is_some() { 1.0 } else { 2.0 };
        let mut gain = Vec::with_capacity(channels);
        let mut offset = Vec::with_capacity(channels);
        for c in 0..channels {
            let nearly_dead = self.random.below(40) == 0;
            let g = if nearly_dead {
                self.random.normal(1e-4)
            } else {
                self.random.uniform(0.3, 0.7).min(limit / reach[c].max(1.0))
            };
            gain.push(if self.random.below(8) == 0 { -g } else { g });
            offset.push(self.random.normal(0.15) - center[c]);
        }
        let name = self.onnx.fresh("bn");
        let inputs: Vec<String> = [("weight", &gain), ("bias", &offset), ("mean", &mean), ("var", &variance)]
            .map(|(part, data)| self.onnx.tensor(&format!("{name}.{part}"), &[channels], data))
            .into_iter()
            .collect();
        let operands = [&x.name, &inputs[0], &inputs[1], &inputs[2], &inputs[3]];
        let operands: Vec<&str> = operands.iter().map(|s| s.as_str()).collect();
        let y = self.onnx.node_with("BatchNormalization", &operands, &[("epsilon", Attr::Float(EPSILON))]);
        x.map(y, |i| i.map(|c, v| gain[c] * (v - mean[c]) / (variance[c] + EPSILON).sqrt() + offset[c]))
    }

    /// The activation; its spelling changes from layer to layer.
    pub fn activation(&mut self, x: &Value) -> Value {
        let y = activation::write(&mut self.onnx, &x.name, &self.polynomial, self.n_activations);
        self.n_activations += 1;
        x.map(y, |i| i.map(|_, v| self.polynomial.eval(v)))
    }

    /// The sum of two values.
    pub fn add(&mut self, x: &Value, y: &Value) -> Value {
        let name = self.onnx.node("Add", &[&x.name, &y.name]);
        let batch = x.batch.iter().zip(&y.batch).map(|(a, b)| a.add(b)).collect();
        Value { name, batch }
    }

    /// Average pooling over `k` x `k` windows that do not overlap.
    pub fn average_pool(&mut self, x: &Value, k: usize) -> Value {
        let side = Attr::Ints(vec![k as i64; 2]);
        let attrs = [("kernel_shape", side.clone()), ("strides", side)];
        let y = self.onnx.node_with("AveragePool", &[&x.name], &attrs);
        x.map(y, |i| i.average_pool(k))
    }

    /// Average pooling over the whole plane, which must be square.
    pub fn global_average_pool(&mut self, x: &Value) -> Value {
        let y = self.onnx.node("GlobalAveragePool", &[&x.name]);
        x.map(y, |i| i.average_pool(i.h))
    }

    /// Flattens to one vector per image.
    pub fn flatten(&mut self, x: &Value) -> Value {
        let y = self.onnx.node_with("Flatten", &[&x.name], &[("axis", Attr::Int(1))]);
        x.map(y, Image::flatten)
    }

    /// A dense layer with bias whose outputs have deviation about `deviation`.
    pub fn linear(&mut self, x: &Value, out: usize, deviation: f32) -> Value {
        let (mean, variance) = statistics(&x.batch);
        let energy: f32 = mean.iter().zip(&variance).map(|(m, v)| m * m + v).sum();
        let weights = self.random.normals(out * x.channels(), deviation / energy.max(1e-6).sqrt());
        let bias = self.random.normals(out, 0.1);
        let name = self.onnx.fresh("fc");
        let w = self.onnx.tensor(&format!("{name}.weight"), &[out, x.channels()], &weights);
        let b = self.onnx.tensor(&format!("{name}.bias"), &[out], &bias);
        let y = self.onnx.node_with("Gemm", &[&x.name, &w, &b], &[("transB", Attr::Int(1))]);
        x.map(y, |i| i.conv(&weights, out, 1, 1, 0).map(|c, v| v + bias[c]))
    }

    /// The shortcut without parameters: every second pixel, zero channels around.
    pub fn subsample_and_pad(&mut self, x: &Value, channels: usize) -> Value {
        let missing = channels - x.channels();
        let (before, after) = (missing / 2, missing - missing / 2);
        let (h, w) = x.size();
        let name = self.onnx.fresh("shortcut");
        let starts = self.onnx.ints(&format!("{name}.starts"), &[0, 0]);
        let ends = self.onnx.ints(&format!("{name}.ends"), &[h as i64, w as i64]);
        let axes = self.onnx.ints(&format!("{name}.axes"), &[2, 3]);
        let steps = self.onnx.ints(&format!("{name}.steps"), &[2, 2]);
        let sliced = self.onnx.node("Slice", &[&x.name, &starts, &ends, &axes, &steps]);
        let pads = self.onnx.ints(&format!("{name}.pads"), &[0, before as i64, 0, 0, 0, after as i64, 0, 0]);
        let padded = self.onnx.node("Pad", &[&sliced, &pads]);
        x.map(padded, |i| i.subsample_and_pad(before, after))
    }

    /// Encodes the model with `y`, one vector of class scores per image, as its output.
    pub fn finish(self, y: &Value) -> Vec<u8> {
        self.onnx.finish(&y.name, &[None, Some(y.channels() as i64)])
    }
}
