//! What a model was trained to have done to its pictures.

use serde::{Deserialize, Serialize};

/// Values in [0, 1] become (value - mean) / std, channel by channel; empty lists leave them alone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preprocessing {
    /// Mean of each channel.
    pub mean: Vec<f64>,
    /// Standard deviation of each channel.
    pub std: Vec<f64>,
}

/// One input as a file or an array has it, in `[channel, y, x]` order.
///
/// One rule for all front ends: pixels of a picture are preprocessed; every other number is what the model
/// takes, as it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Raw<'a> {
    /// Bytes of a picture.
    Pixels(&'a [u8]),
    /// Pixels of sixteen bits, from 0 to 65535.
    Deep(&'a [u16]),
    /// Numbers that are the model's input already.
    Numbers(&'a [f64]),
}

impl Raw<'_> {
    /// Number of values.
    pub fn len(&self) -> usize {
        match self {
            Self::Pixels(pixels) => pixels.len(),
            Self::Deep(pixels) => pixels.len(),
            Self::Numbers(numbers) => numbers.len(),
        }
    }

    /// Whether there is no value.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Preprocessing {
    /// What the model takes for an input of `n_channels` channels.
    pub fn tensor(&self, raw: Raw<'_>, n_channels: usize) -> Vec<f64> {
        match raw {
            Raw::Pixels(pixels) => self.pixels(pixels, n_channels),
            Raw::Deep(pixels) => self.normalized(pixels, 65535.0, n_channels),
            Raw::Numbers(numbers) => numbers.to_vec(),
        }
    }

    /// A value of `channel` between 0 and 1 as the model takes it.
    pub fn value(&self, channel: usize, value: f64) -> f64 {
        let mean = self.mean.get(channel).copied().unwrap_or(0.0);
        let std = self.std.get(channel).copied().unwrap_or(1.0);
        (value - mean) / std
    }

    /// Bytes of a picture in `[channel, y, x]` order as the model takes them.
    fn pixels(&self, pixels: &[u8], n_channels: usize) -> Vec<f64> {
        self.normalized(pixels, 255.0, n_channels)
    }

    /// Pixels from 0 to `largest`, in `[channel, y, x]` order.
    fn normalized<T: Copy + Into<f64>>(&self, pixels: &[T], largest: f64, n_channels: usize) -> Vec<f64> {
        let plane = (pixels.len() / n_channels.max(1)).max(1);
        let value = |(i, &pixel): (usize, &T)| self.value(i / plane, pixel.into() / largest);
        pixels.iter().enumerate().map(value).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pixels_are_normalized_channel_by_channel() {
        let by = Preprocessing { mean: vec![0.5, 0.0], std: vec![0.25, 1.0] };
        assert_eq!(by.pixels(&[0, 255, 0, 255], 2), [-2.0, 2.0, 0.0, 1.0]);
        assert_eq!(Preprocessing::default().pixels(&[0, 255], 1), [0.0, 1.0]);
        assert_eq!(by.tensor(Raw::Deep(&[0, 65535]), 2), [-2.0, 1.0]);
    }
}
