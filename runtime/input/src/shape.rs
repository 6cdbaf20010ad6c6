//! The shape of one sample.

use std::fmt;

/// Shape of one sample: channels, height, width. Vectors are `[n, 1, 1]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageShape {
    /// Number of channels.
    pub channels: usize,
    /// Number of rows.
    pub height: usize,
    /// Number of columns.
    pub width: usize,
    /// Whether the model has channels last: what is read the same way both ways is taken so, and so are flat vectors.
    pub channels_last: bool,
}

impl ImageShape {
    /// Shape with the given channels, rows and columns.
    pub const fn new(channels: usize, height: usize, width: usize) -> Self {
        Self { channels, height, width, channels_last: false }
    }

    /// The same for a model that has channels last.
    #[must_use]
    pub fn with_channels_last(self, channels_last: bool) -> Self {
        Self { channels_last, ..self }
    }

    /// Number of values in one sample.
    pub fn n_values(&self) -> usize {
        self.channels.saturating_mul(self.height).saturating_mul(self.width)
    }
}

impl fmt::Display for ImageShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{},{},{}]", self.channels, self.height, self.width)
    }
}
