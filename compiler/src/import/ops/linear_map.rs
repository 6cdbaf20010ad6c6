//! Any linear map of an encrypted value, as one dense layer.
//!
//! Re-arrangements that are no views (a transposition of part of a dimension, an upsampling, a product with a constant
//! matrix along some dimension) all are a matrix from the numbers of the operand to those of the result, in the order of
//! ONNX. The matrix becomes a dense layer whose result is a vector seen through the result's extents; where a convolution
//! or a pool wants an image, [`image`] spreads the vector over rows and columns by a second map.

use fhec_ir::{Conv2d, Linear, Op, Pads, Shape};

use crate::import::constant::Constant;
use crate::import::limits::{MAX_RANK, MAX_VALUE_LEN, product};
use crate::import::node::Node;
use crate::import::reason::Reason;
use crate::import::translate::Translator;
use crate::import::value::{Encrypted, OpError};
use crate::import::view::View;

/// Most weights of a map.
pub(crate) const MAX_WEIGHTS: usize = 1 << 22;

/// A matrix under construction.
pub(in crate::import) struct LinearMap {
    dims: Vec<usize>,
    n_in: usize,
    /// For every position of the operand in ONNX, its place among the operand's numbers in the graph.
    columns: Vec<usize>,
    values: Vec<f64>,
}

impl LinearMap {
    /// The zero map from a value to a result of extents `dims`.
    pub(super) fn new(
        cx: &mut Translator<'_>,
        node: &Node,
        x: &Encrypted,
        dims: Vec<usize>,
    ) -> Result<Self, OpError> {
        let n_in = x.view.shape().len();
        if dims.len() > MAX_RANK {
            return Err(node.malformed(format!("makes a tensor of rank {}", dims.len())).into());
        }
        let n_out = product(&dims, MAX_VALUE_LEN).ok_or(Reason::TooLarge)?;
        if n_out == 0 {
            return Err(node.malformed("makes a tensor without elements").into());
        }
        let refused = || Reason::LargeMap { inputs: n_in, outputs: n_out };
        let n = product(&[n_in, n_out], MAX_WEIGHTS).ok_or_else(refused)?;
        cx.budget.spend(n).ok_or_else(refused)?;
        let mut columns = vec![0; n_in];
        for (column, position) in x.view.positions().enumerate() {
            columns[position] = column;
        }
        Ok(LinearMap { dims, n_in, columns, values: vec![0.0; n] })
    }

    /// The map that takes each number of the result from one of the operand; `None` is zero.
    pub(in crate::import) fn picks(
        cx: &mut Translator<'_>,
        node: &Node,
        x: &Encrypted,
        dims: Vec<usize>,
        pick: impl Fn(&[usize]) -> Option<Vec<usize>>,
    ) -> Result<Self, OpError> {
        let mut map = Self::new(cx, node, x, dims)?;
        let from = x.view.dims();
        for out in 0..map.n_out() {
            if let Some(index) = pick(&unflatten(out, &map.dims)) {
                map.add(out, flatten(&index, from), 1.0);
            }
        }
        Ok(map)
    }

    /// Numbers of the result.
    pub(super) fn n_out(&self) -> usize {
        self.dims.iter().product()
    }

    /// Adds a weight between two positions, both in the order of ONNX.
    pub(super) fn add(&mut self, out: usize, input: usize, weight: f64) {
        self.values[out * self.n_in + self.columns[input]] += weight;
    }

    /// The result, with a constant added to each of its numbers.
    pub(in crate::import) fn apply(
        self,
        cx: &mut Translator<'_>,
        node: &Node,
        x: &Encrypted,
        bias: Option<Vec<f64>>,
    ) -> Result<Encrypted, OpError> {
        let n_out = self.n_out();
        let operand = cx.node_of(x)?;
        if let (Some(shape), true) = (image_shape(&self.dims), x.view.shape().is_vector())
            && shape.area() > 1
        {
            return spread(cx, node, operand, &self, shape, bias);
        }
        let weight = cx.weight(node, &Constant::f64(vec![n_out, self.n_in], self.values))?;
        let bias = bias.map(|b| cx.weight(node, &Constant::f64(vec![b.len()], b))).transpose()?;
        cx.add(Op::Linear(Linear { weight, bias }), &[operand], node, |_| View::vector(self.dims))
    }
}

/// A map from a vector to an image. Over an image of one pixel, with as many zeros around it, a kernel as large as the
/// result meets the pixel at another of its cells for every position: each has weights of its own.
fn spread(
    cx: &mut Translator<'_>,
    node: &Node,
    operand: fhec_ir::NodeId,
    map: &LinearMap,
    shape: Shape,
    bias: Option<Vec<f64>>,
) -> Result<Encrypted, OpError> {
    let (n, area) = (map.n_in, shape.area());
    let mut kernel = vec![0.0; map.values.len()];
    for (i, &value) in map.values.iter().enumerate() {
        let (out, input) = (i / n, i % n);
        let (channel, cell) = (out / area, out % area);
        kernel[(channel * n + input) * area + (area - 1 - cell)] = value;
    }
    let weight = cx.weight(node, &Constant::f64(vec![shape.c, n, shape.h, shape.w], kernel))?;
    let bias = bias.map(|b| cx.weight(node, &Constant::f64(shape.dims().to_vec(), b))).transpose()?;
    let pads = Pads { top: shape.h - 1, bottom: shape.h - 1, left: shape.w - 1, right: shape.w - 1 };
    let conv = Conv2d { weight, bias, stride: [1, 1], pads, dilation: [1, 1], groups: 1 };
    let dims = map.dims.clone();
    let view = |made: Shape| View::nchw(made).reshape(dims).unwrap_or_else(|| View::nchw(made));
    cx.add(Op::Conv2d(conv), &[operand], node, view)
}

/// The shape of an image that ONNX extents describe.
fn image_shape(dims: &[usize]) -> Option<Shape> {
    match *dims {
        [1, c, h, w] => Some(Shape::new(c, h, w)),
        [1, c, w] => Some(Shape::new(c, 1, w)),
        _ => None,
    }
}

/// The same numbers as an image of the extents that ONNX sees, if it sees one.
pub(super) fn image(cx: &mut Translator<'_>, node: &Node, x: Encrypted) -> Result<Encrypted, OpError> {
    if x.view.is_image() {
        return Ok(x);
    }
    if image_shape(x.view.dims()).is_none() {
        return Err(Reason::Rearranges("an image of channels first").into());
    }
    let x = vector(cx, node, x)?;
    if x.view.is_image() { Ok(x) } else { identity(cx, node, &x) }
}

/// The same numbers as a vector, in the order of ONNX.
pub(in crate::import) fn vector(
    cx: &mut Translator<'_>,
    node: &Node,
    x: Encrypted,
) -> Result<Encrypted, OpError> {
    if x.view.shape().is_vector() {
        return Ok(x);
    }
    match x.view.is_canonical() {
        true => Ok(super::arithmetic::as_vector(cx, x)?),
        false => identity(cx, node, &x),
    }
}

/// The same numbers in the order of ONNX.
pub(in crate::import) fn identity(
    cx: &mut Translator<'_>,
    node: &Node,
    x: &Encrypted,
) -> Result<Encrypted, OpError> {
    let dims = x.view.dims().to_vec();
    LinearMap::picks(cx, node, x, dims, |at| Some(at.to_vec()))?.apply(cx, node, x, None)
}

/// The same numbers, each times a factor of its own and with a constant added, both by positions of ONNX.
pub(super) fn scaled(
    cx: &mut Translator<'_>,
    node: &Node,
    x: Encrypted,
    factor: impl Fn(usize) -> f64,
    bias: Option<Vec<f64>>,
) -> Result<Encrypted, OpError> {
    let x = cx.committed(x)?;
    let mut map = LinearMap::new(cx, node, &x, x.view.dims().to_vec())?;
    (0..map.n_out()).for_each(|position| map.add(position, position, factor(position)));
    map.apply(cx, node, &x, bias)
}

/// The index at a flat position.
pub(super) fn unflatten(mut position: usize, dims: &[usize]) -> Vec<usize> {
    let mut index = vec![0; dims.len()];
    for (slot, extent) in index.iter_mut().zip(dims).rev() {
        *slot = position % extent;
        position /= extent;
    }
    index
}

/// The flat position of an index.
pub(super) fn flatten(index: &[usize], dims: &[usize]) -> usize {
    index.iter().zip(dims).fold(0, |position, (i, extent)| position * extent + i)
}
