//! The samples of one file, and the preprocessing that turns one into model input.

use fhe_bytecode::{Preprocessing, Raw};

use crate::{ImageShape, InputErrorKind};

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
    /// Pixels of sixteen bits: 0 to 65535.
    Deep(Vec<u16>),
    /// Numbers that are model inputs already.
    Numbers(Vec<f64>),
}

impl Samples {
    /// Number of samples.
    pub fn len(&self) -> usize {
        let n_values = match &self.values {
            Values::Pixels(v) => v.len(),
            Values::Deep(v) => v.len(),
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

    /// Sample `index` as its file has it, in `[channel, y, x]` order.
    ///
    /// # Errors
    /// If there is no such sample.
    pub fn raw(&self, index: usize) -> Result<Raw<'_>, InputErrorKind> {
        let n_samples = self.len();
        if index >= n_samples {
            return Err(InputErrorKind::NoSuchSample { index, n_samples });
        }
        let n = self.shape.n_values();
        let range = index * n..(index + 1) * n;
        Ok(match &self.values {
            Values::Numbers(numbers) => Raw::Numbers(&numbers[range]),
            Values::Pixels(pixels) => Raw::Pixels(&pixels[range]),
            Values::Deep(pixels) => Raw::Deep(&pixels[range]),
        })
    }

    /// Sample `index` as model input in `[channel, y, x]` order.
    ///
    /// # Errors
    /// If there is no such sample, or the preprocessing is for another number of channels.
    pub fn tensor(&self, index: usize, preprocessing: &Preprocessing) -> Result<Vec<f64>, InputErrorKind> {
        let raw = self.raw(index)?;
        for given in [&preprocessing.mean, &preprocessing.std] {
            if !given.is_empty() && given.len() != self.shape.channels {
                return Err(InputErrorKind::WrongNormalization { found: given.len(), wanted: self.shape });
            }
        }
        Ok(preprocessing.tensor(raw, self.shape.channels))
    }
}
