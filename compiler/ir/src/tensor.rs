//! Constant tensors: weights, biases and coefficients.
//!
//! Data is shared, so a graph and its copies hold one allocation. A weight stays in the f32 of its file for good: a pass
//! that multiplies its rows or columns stores the factors beside it, so rewriting a network copies no weights.

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
    /// Another tensor of the same extents, times factors per output and per input channel.
    Scaled(Arc<Scaled>),
}

/// A weight `[out, in, ..]` with factors on its first two axes. A grouped convolution has one input factor per channel of
/// its whole operand, so the factor of (o, i) is the i-th of the group of o.
#[derive(Debug, PartialEq)]
pub struct Scaled {
    base: Tensor,
    out: Arc<[f64]>,
    input: Arc<[f64]>,
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

    /// This weight `[out, in, ..]` times `out` per output channel and `input` per input channel; a single factor stands for
    /// all channels. No weight is copied.
    ///
    /// # Panics
    /// When the number of factors does not fit the extents; callers scale weights that shape inference accepted.
    #[must_use]
    pub fn scaled(&self, out: &[f64], input: &[f64]) -> Self {
        let (rows, columns) = (self.dims[0], self.dims[1]);
        assert!(out.len() == 1 || out.len() == rows, "one factor per output channel");
        assert!(input.len() == 1 || input.len().is_multiple_of(columns), "one factor per input channel");
        let scaled = match &self.data {
            TensorData::Scaled(inner) => Scaled {
                base: inner.base.clone(),
                out: broadcast_product(&inner.out, out),
                input: broadcast_product(&inner.input, input),
            },
            TensorData::F32(_) | TensorData::F64(_) => {
                Scaled { base: self.clone(), out: out.into(), input: input.into() }
            }
        };
        Self { dims: self.dims.clone(), data: TensorData::Scaled(Arc::new(scaled)) }
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
            TensorData::Scaled(s) => s.base.get(i) * s.factor(i),
        }
    }

    /// All values in row-major order.
    pub fn iter(&self) -> impl Iterator<Item = f64> + '_ {
        (0..self.len()).map(|i| self.get(i))
    }

    /// All values as f64, borrowed where they are stored so.
    #[must_use]
    pub fn to_f64(&self) -> Cow<'_, [f64]> {
        match &self.data {
            TensorData::F32(v) => v.iter().map(|&x| f64::from(x)).collect(),
            TensorData::F64(v) => Cow::Borrowed(v),
            TensorData::Scaled(s) => {
                let mut values = s.base.to_f64().into_owned();
                s.scale(&mut values);
                Cow::Owned(values)
            }
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
        match &self.data {
            TensorData::F32(v) => v.iter().all(|x| x.is_finite()),
            TensorData::F64(v) => v.iter().all(|x| x.is_finite()),
            TensorData::Scaled(s) => {
                s.base.is_finite() && s.out.iter().chain(s.input.iter()).all(|x| x.is_finite())
            }
        }
    }

    /// Short fingerprint of extents and values for printed graphs. Values count to about four digits, so that a last-bit
    /// difference of a math library does not show.
    #[must_use]
    pub fn fingerprint(&self) -> u32 {
        let mut hash = Fnv::default();
        for &d in &self.dims {
            hash.write(d as u64);
        }
        for &x in self.to_f64().iter() {
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
            Self::Scaled(s) => s.base.len(),
        }
    }
}

impl Scaled {
    /// The product of the output and input factor at a flat position.
    fn factor(&self, i: usize) -> f64 {
        let (rows, columns) = (self.base.dims[0], self.base.dims[1]);
        let taps = self.base.len() / (rows * columns);
        let (o, c) = (i / (columns * taps), i / taps % columns);
        let out = if self.out.len() == 1 { self.out[0] } else { self.out[o] };
        let input = if self.input.len() == 1 {
            self.input[0]
        } else {
            let groups = self.input.len() / columns;
            self.input[o / (rows / groups) * columns + c]
        };
        out * input
    }

    /// Multiplies all values by their factors. Extents are those of the base: the tensor itself may have been reshaped.
    fn scale(&self, values: &mut [f64]) {
        let (rows, columns) = (self.base.dims[0], self.base.dims[1]);
        let taps = (self.base.len() / (rows * columns).max(1)).max(1);
        let group = (rows * columns / self.input.len().max(1)).max(1);
        for (o, row) in values.chunks_mut((columns * taps).max(1)).enumerate() {
            let out = if self.out.len() == 1 { self.out[0] } else { self.out[o] };
            match self.input.len() {
                1 => row.iter_mut().for_each(|x| *x *= out * self.input[0]),
                _ => {
                    let inputs = &self.input[o / group * columns..][..columns];
                    for (cell, input) in row.chunks_mut(taps).zip(inputs) {
                        cell.iter_mut().for_each(|x| *x *= out * input);
                    }
                }
            }
        }
    }
}

fn broadcast_product(a: &[f64], b: &[f64]) -> Arc<[f64]> {
    let at = |v: &[f64], i: usize| if v.len() == 1 { v[0] } else { v[i] };
    (0..a.len().max(b.len())).map(|i| at(a, i) * at(b, i)).collect()
}

impl fmt::Display for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dims: Vec<_> = self.dims.iter().map(ToString::to_string).collect();
        let kind = match self.data {
            TensorData::F32(_) => "f32",
            TensorData::F64(_) | TensorData::Scaled(_) => "f64",
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
    fn scaled_weight_multiplies_rows_and_the_columns_of_each_group() {
        let base = Tensor::from_f32(vec![4, 1, 2], vec![1.0; 8]).unwrap();
        let scaled = base.scaled(&[1.0, 2.0, 3.0, 4.0], &[1.0]).scaled(&[10.0], &[1.0, 0.5]);
        let expected = [10.0, 10.0, 20.0, 20.0, 15.0, 15.0, 20.0, 20.0];
        assert_eq!(scaled.to_f64().as_ref(), expected);
        assert_eq!(scaled.iter().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_scaled_weight_keeps_its_factors_when_it_is_reshaped() {
        let base = Tensor::from_f32(vec![2, 4], vec![1.0; 8]).unwrap();
        let scaled = base.scaled(&[1.0, 10.0], &[1.0, 2.0, 3.0, 4.0]);
        let reshaped = Tensor::new(vec![2, 1, 2, 2], scaled.data().clone()).unwrap();
        assert_eq!(reshaped.to_f64().as_ref(), [1.0, 2.0, 3.0, 4.0, 10.0, 20.0, 30.0, 40.0]);
        assert_eq!(reshaped.iter().collect::<Vec<_>>(), reshaped.to_f64().as_ref());
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
