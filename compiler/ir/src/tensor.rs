//! Constant tensors: weights, biases and coefficients.
//!
//! Data is shared, so a graph and its copies hold one allocation; a tensor stays in the f32 of its file until a pass
//! computes new values, which are f64.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// A dense constant in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    dims: Vec<usize>,
    data: TensorData,
}

/// The numbers of a [`Tensor`].
#[derive(Clone, Debug, PartialEq)]
pub enum TensorData {
    /// As read from the model.
    F32(Arc<[f32]>),
    /// As computed by a pass.
    F64(Arc<[f64]>),
}

/// The number of values does not match the extents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("tensor has {actual} values, its extents ask for {expected}")]
pub struct TensorSizeError {
    /// Product of the extents (saturating).
    pub expected: usize,
    /// Number of values given.
    pub actual: usize,
}

impl Tensor {
    /// A tensor over shared data.
    ///
    /// # Errors
    /// When the product of `dims` is not the number of values.
    pub fn new(dims: Vec<usize>, data: TensorData) -> Result<Self, TensorSizeError> {
        let expected = dims.iter().fold(1_usize, |n, &d| n.saturating_mul(d));
        let actual = data.len();
        if expected == actual { Ok(Self { dims, data }) } else { Err(TensorSizeError { expected, actual }) }
    }

    /// A tensor of single-precision values.
    ///
    /// # Errors
    /// As [`Tensor::new`].
    pub fn from_f32(dims: Vec<usize>, values: impl Into<Arc<[f32]>>) -> Result<Self, TensorSizeError> {
        Self::new(dims, TensorData::F32(values.into()))
    }

    /// A tensor of double-precision values.
    ///
    /// # Errors
    /// As [`Tensor::new`].
    pub fn from_f64(dims: Vec<usize>, values: impl Into<Arc<[f64]>>) -> Result<Self, TensorSizeError> {
        Self::new(dims, TensorData::F64(values.into()))
    }

    /// A vector of double-precision values.
    #[must_use]
    pub fn vector(values: impl Into<Arc<[f64]>>) -> Self {
        let values = values.into();
        Self { dims: vec![values.len()], data: TensorData::F64(values) }
    }

    /// A vector of one value, which stands for every channel.
    #[must_use]
    pub fn scalar(value: f64) -> Self {
        Self::vector([value])
    }

    /// Extents, outermost first.
    #[must_use]
    pub fn dims(&self) -> &[usize] {
        &self.dims
    }

    /// Storage behind the tensor.
    #[must_use]
    pub fn data(&self) -> &TensorData {
        &self.data
    }

    /// Number of values.
    #[must_use]
    pub fn len(&self) -> usize {
        self.data.len()
    }

    /// Whether there are no values.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value at a flat position.
    ///
    /// # Panics
    /// When `i` is out of range.
    #[must_use]
    pub fn get(&self, i: usize) -> f64 {
        match &self.data {
            TensorData::F32(v) => f64::from(v[i]),
            TensorData::F64(v) => v[i],
        }
    }

    /// All values in row-major order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = f64> + '_ {
        (0..self.len()).map(|i| self.get(i))
    }

    /// All values as f64, borrowed where they are stored so.
    #[must_use]
    pub fn to_f64(&self) -> Cow<'_, [f64]> {
        match &self.data {
            TensorData::F32(v) => v.iter().map(|&x| f64::from(x)).collect(),
            TensorData::F64(v) => Cow::Borrowed(v),
        }
    }

    /// Whether every value is exactly `value`.
    #[must_use]
    pub fn is_all(&self, value: f64) -> bool {
        self.iter().all(|x| x == value)
    }

    /// Whether every value is finite.
    #[must_use]
    pub fn is_finite(&self) -> bool {
        self.iter().all(f64::is_finite)
    }

    /// Short fingerprint of extents and values for printed graphs. Values count to about four digits, so that a last-bit
    /// difference of a math library does not show.
    #[must_use]
    pub fn fingerprint(&self) -> u32 {
        let mut hash = Fnv::default();
        for &d in &self.dims {
            hash.write(d as u64);
        }
        for x in self.iter() {
            let rounded = (x as f32).to_bits().wrapping_add(1 << 10) >> 11;
            hash.write(u64::from(rounded));
        }
        hash.finish()
    }
}

impl TensorData {
    fn len(&self) -> usize {
        match self {
            Self::F32(v) => v.len(),
            Self::F64(v) => v.len(),
        }
    }
}

impl fmt::Display for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dims: Vec<_> = self.dims.iter().map(ToString::to_string).collect();
        let kind = match self.data {
            TensorData::F32(_) => "f32",
            TensorData::F64(_) => "f64",
        };
        write!(f, "[{}] {kind} #{:08x}", dims.join(","), self.fingerprint())
    }
}

/// FNV-1a over words, folded to 32 bits.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    fn write(&mut self, word: u64) {
        for byte in word.to_le_bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn finish(self) -> u32 {
        (self.0 ^ (self.0 >> 32)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_number_of_values_is_refused() {
        let err = Tensor::from_f64(vec![2, 3], vec![0.0; 5]).unwrap_err();
        assert_eq!(err, TensorSizeError { expected: 6, actual: 5 });
    }

    #[test]
    fn fingerprint_sees_values_and_extents_but_not_the_last_bit() {
        let base = Tensor::from_f64(vec![2], vec![1.1, 2.3]).unwrap();
        let last_bit = Tensor::from_f64(vec![2], vec![1.1 + 2e-16, 2.3]).unwrap();
        let other = Tensor::from_f64(vec![2], vec![1.2, 2.3]).unwrap();
        let reshaped = Tensor::from_f64(vec![1, 2], vec![1.1, 2.3]).unwrap();
        assert_eq!(base.fingerprint(), last_bit.fingerprint());
        assert_ne!(base.fingerprint(), other.fingerprint());
        assert_ne!(base.fingerprint(), reshaped.fingerprint());
    }
}
