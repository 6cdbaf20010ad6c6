//! Constant tensors of a model: weights, shapes, axes.

use std::sync::Arc;

use fhec_ir::{Tensor, TensorData};

/// A dense constant in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Constant {
    /// Extents, outermost first; none for a scalar.
    pub(super) dims: Vec<usize>,
    /// The values; as many as the product of the extents.
    pub(super) data: Data,
}

/// Values of a [`Constant`].
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Data {
    /// Single precision, shared with the graph that is built.
    F32(Arc<[f32]>),
    /// Double precision.
    F64(Arc<[f64]>),
    /// Integers and truth values.
    Int(Arc<[i64]>),
}

impl Constant {
    /// A vector of integers.
    pub(super) fn ints(values: Vec<i64>) -> Self {
        Constant { dims: vec![values.len()], data: Data::Int(values.into()) }
    }

    /// A tensor of double precision.
    pub(super) fn f64(dims: Vec<usize>, values: Vec<f64>) -> Self {
        debug_assert_eq!(dims.iter().product::<usize>(), values.len());
        Constant { dims, data: Data::F64(values.into()) }
    }

    /// A scalar.
    pub(super) fn scalar(value: f64) -> Self {
        Constant::f64(Vec::new(), vec![value])
    }

    /// Number of values.
    pub(super) fn len(&self) -> usize {
        self.dims.iter().product()
    }

    /// The value at a flat position.
    pub(super) fn get(&self, i: usize) -> f64 {
        match &self.data {
            Data::F32(v) => f64::from(v[i]),
            Data::F64(v) => v[i],
            Data::Int(v) => v[i] as f64,
        }
    }

    /// All values as f64.
    pub(super) fn to_vec(&self) -> Vec<f64> {
        (0..self.len()).map(|i| self.get(i)).collect()
    }

    /// The value of a tensor with one element, or the value that all elements share.
    pub(super) fn uniform(&self) -> Option<f64> {
        let first = (self.len() > 0).then(|| self.get(0))?;
        (1..self.len()).all(|i| self.get(i) == first).then_some(first)
    }

    /// The values as integers, if they are stored so.
    pub(super) fn as_ints(&self) -> Option<&[i64]> {
        match &self.data {
            Data::Int(v) => Some(v),
            Data::F32(_) | Data::F64(_) => None,
        }
    }

    /// The same values with other extents of the same product.
    pub(super) fn with_dims(&self, dims: Vec<usize>) -> Self {
        debug_assert_eq!(dims.iter().product::<usize>(), self.len());
        Constant { dims, data: self.data.clone() }
    }

    /// The values picked by `positions`, as a tensor of extents `dims`, in the same precision.
    pub(super) fn gather(&self, dims: Vec<usize>, positions: impl Iterator<Item = usize>) -> Self {
        let data = match &self.data {
            Data::F32(v) => Data::F32(positions.map(|i| v[i]).collect()),
            Data::F64(v) => Data::F64(positions.map(|i| v[i]).collect()),
            Data::Int(v) => Data::Int(positions.map(|i| v[i]).collect()),
        };
        Constant { dims, data }
    }

    /// The tensor for the graph, with the extents of this one.
    pub(super) fn to_tensor(&self) -> Option<Tensor> {
        let data = match &self.data {
            Data::F32(v) => TensorData::F32(v.clone()),
            Data::F64(v) => TensorData::F64(v.clone()),
            Data::Int(v) => TensorData::F64(v.iter().map(|&x| x as f64).collect()),
        };
        Tensor::new(self.dims.clone(), data).ok()
    }
}
