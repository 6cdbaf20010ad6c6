//! The calibration batch: plain f32 images and the few operations the generator evaluates on them.
//!
//! Batch-norm statistics of a random network are only sane if they are measured, so the generator runs every
//! layer on a handful of images while it writes the layer.

use rayon::prelude::*;

use super::random::Random;

/// One image, channels first.
#[derive(Clone, Debug)]
pub struct Image {
    /// Number of channels.
    pub c: usize,
    /// Height.
    pub h: usize,
    /// Width.
    pub w: usize,
    /// `c * h * w` values, row-major.
    pub data: Vec<f32>,
}

impl Image {
    /// A black image.
    pub fn zeros(c: usize, h: usize, w: usize) -> Self {
        Image { c, h, w, data: vec![0.0; c * h * w] }
    }

    /// White noise with deviation one: what a random test input looks like.
    pub fn noise(c: usize, h: usize, w: usize, random: &mut Random) -> Self {
        Image { c, h, w, data: random.normals(c * h * w, 1.0) }
    }

    /// A sum of slow waves with deviation about one: what a photograph looks like to a first layer.
    pub fn waves(c: usize, h: usize, w: usize, random: &mut Random) -> Self {
        let mut image = Image::zeros(c, h, w);
        for ch in 0..c {
            for _ in 0..4 {
                let (fy, fx) = (random.uniform(-0.5, 0.5), random.uniform(-0.5, 0.5));
                let phase = random.uniform(0.0, std::f32::consts::TAU);
                for y in 0..h {
                    for x in 0..w {
                        image.data[(ch * h + y) * w + x] +=
                            0.7 * (fy * y as f32 + fx * x as f32 + phase).cos();
                    }
                }
            }
        }
        image
    }

    /// One channel.
    pub fn channel(&self, c: usize) -> &[f32] {
        &self.data[c * self.h * self.w..(c + 1) * self.h * self.w]
    }

    /// Replaces every value by `f(channel, value)`.
    pub fn map(&self, f: impl Fn(usize, f32) -> f32) -> Self {
        let plane = (self.h * self.w).max(1);
        let data = self.data.iter().enumerate().map(|(i, &v)| f(i / plane, v)).collect();
        Image { data, ..*self }
    }

    /// Adds two images of one shape.
    pub fn add(&self, other: &Image) -> Self {
        let data = self.data.iter().zip(&other.data).map(|(a, b)| a + b).collect();
        Image { data, ..*self }
    }

    /// Convolution with square kernels `[out, c, k, k]` and symmetric padding.
    pub fn conv(&self, weights: &[f32], out: usize, k: usize, stride: usize, pad: usize) -> Self {
        let (oh, ow) = ((self.h + 2 * pad - k) / stride + 1, (self.w + 2 * pad - k) / stride + 1);
        let mut result = Image::zeros(out, oh, ow);
        result.data.par_chunks_mut(oh * ow).enumerate().for_each(|(o, plane)| {
            for c in 0..self.c {
                let input = self.channel(c);
                for ky in 0..k {
                    for kx in 0..k {
                        let weight = weights[((o * self.c + c) * k + ky) * k + kx];
                        self.add_tap(input, plane, ow, (ky, kx), stride, pad, weight);
                    }
                }
            }
        });
        result
    }

    fn add_tap(
        &self,
        input: &[f32],
        plane: &mut [f32],
        ow: usize,
        tap: (usize, usize),
        stride: usize,
        pad: usize,
        weight: f32,
    ) {
        for (oy, row) in plane.chunks_mut(ow).enumerate() {
            let y = oy * stride + tap.0;
            if y < pad || y - pad >= self.h {
                continue;
            }
            let line = &input[(y - pad) * self.w..][..self.w];
            let first = pad.saturating_sub(tap.1).div_ceil(stride);
            let inputs = line.get(first * stride + tap.1 - pad..).unwrap_or_default();
            let outputs = row.get_mut(first..).unwrap_or_default();
            if stride == 1 {
                outputs.iter_mut().zip(inputs).for_each(|(value, x)| *value += weight * x);
            } else {
                outputs
                    .iter_mut()
                    .zip(inputs.iter().step_by(stride))
                    .for_each(|(value, x)| *value += weight * x);
            }
        }
    }

    /// Average pooling over `k` x `k` windows that do not overlap.
    pub fn average_pool(&self, k: usize) -> Self {
        let mut result = Image::zeros(self.c, self.h / k, self.w / k);
        for c in 0..self.c {
            for y in 0..result.h {
                for x in 0..result.w {
                    let window =
                        (0..k * k).map(|i| self.channel(c)[(y * k + i / k) * self.w + x * k + i % k]);
                    result.data[(c * result.h + y) * result.w + x] = window.sum::<f32>() / (k * k) as f32;
                }
            }
        }
        result
    }

    /// Every second pixel, then zero channels on both sides: the shortcut without parameters.
    pub fn subsample_and_pad(&self, before: usize, after: usize) -> Self {
        let mut result = Image::zeros(self.c + before + after, self.h.div_ceil(2), self.w.div_ceil(2));
        for c in 0..self.c {
            for y in 0..result.h {
                for x in 0..result.w {
                    result.data[((c + before) * result.h + y) * result.w + x] =
                        self.channel(c)[2 * y * self.w + 2 * x];
                }
            }
        }
        result
    }

    /// The same values as a vector of channels.
    pub fn flatten(&self) -> Self {
        Image { c: self.data.len(), h: 1, w: 1, data: self.data.clone() }
    }
}

/// Mean and variance of each channel over a batch.
pub fn statistics(batch: &[Image]) -> (Vec<f32>, Vec<f32>) {
    let n = batch.iter().map(|i| i.h * i.w).sum::<usize>() as f64;
    let channels = batch.first().map_or(0, |i| i.c);
    (0..channels)
        .map(|c| {
            let values = || batch.iter().flat_map(|i| i.channel(c)).map(|&v| f64::from(v));
            let mean = values().sum::<f64>() / n;
            let variance = values().map(|v| (v - mean).powi(2)).sum::<f64>() / n;
            (mean as f32, variance as f32)
        })
        .unzip()
}
