//! The samples of one file, and the preprocessing that turns one into model input.

use crate::{ImageShape, InputErrorKind};

/// Per-channel normalization of pixels: `(pixel / 255 - mean) / std`. Empty vectors mean zero and one.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Normalization {
    /// Mean of each channel on the scale of [0, 1].
    pub mean: Vec<f64>,
    /// Standard deviation of each channel on the scale of [0, 1].
    pub std: Vec<f64>,
}

/// All samples of one file.
#[derive(Debug, Clone, PartialEq)]
pub struct Samples {
    pub(crate) shape: ImageShape,
    pub(crate) values: Values,
    pub(crate) labels: Option<Vec<usize>>,
}

/// Sample after sample, each in `[channel, y, x]` order.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Values {
    /// Bytes of an image: 0 to 255.
    Pixels(Vec<u8>),
    /// Numbers that are model inputs already.
    Numbers(Vec<f64>),
}

impl Samples {
    /// Number of samples.
    pub fn len(&self) -> usize {
        let n_values = match &self.values {
            Values::Pixels(v) => v.len(),
            Values::Numbers(v) => v.len(),
        };
        n_values / self.shape.n_values().max(1)
    }

    /// Whether there is no sample at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Shape of every sample.
    pub fn shape(&self) -> ImageShape {
        self.shape
    }

    /// The true class of sample `index`, if the file tells it.
    pub fn label(&self, index: usize) -> Option<usize> {
        self.labels.as_ref()?.get(index).copied()
    }

    /// Sample `index` as model input in `[channel, y, x]` order.
    ///
    /// # Errors
    /// If there is no such sample, or the normalization is for another number of channels.
    pub fn tensor(&self, index: usize, normalization: &Normalization) -> Result<Vec<f64>, InputErrorKind> {
        let n_samples = self.len();
        if index >= n_samples {
            return Err(InputErrorKind::NoSuchSample { index, n_samples });
        }
        let n = self.shape.n_values();
        let range = index * n..(index + 1) * n;
        match &self.values {
            Values::Numbers(numbers) => Ok(numbers[range].to_vec()),
            Values::Pixels(pixels) => self.normalized(&pixels[range], normalization),
        }
    }

    fn normalized(&self, pixels: &[u8], by: &Normalization) -> Result<Vec<f64>, InputErrorKind> {
        for given in [&by.mean, &by.std] {
            if !given.is_empty() && given.len() != self.shape.channels {
                return Err(InputErrorKind::WrongNormalization { found: given.len(), wanted: self.shape });
            }
        }
        let plane = self.shape.height * self.shape.width;
        let normalize = |(i, &pixel): (usize, &u8)| {
            let channel = i / plane;
            let mean = by.mean.get(channel).copied().unwrap_or(0.0);
            let std = by.std.get(channel).copied().unwrap_or(1.0);
            (f64::from(pixel) / 255.0 - mean) / std
        };
        Ok(pixels.iter().enumerate().map(normalize).collect())
    }
}
