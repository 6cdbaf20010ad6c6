//! Values that repeat: broadcasting, Expand, Tile, and Gather by constant indices.

use fhec_ir::{Conv2d, Op, Pads, Shape};

use super::linear_map::LinearMap;
use crate::import::constant::Constant;
use crate::import::limits::{MAX_RANK, MAX_VALUE_LEN, product};
use crate::import::node::Node;
use crate::import::reason::Reason;
use crate::import::translate::Translator;
use crate::import::value::{Encrypted, OpError, Value};
use crate::import::view::View;

/// The extents two tensors broadcast to.
pub(super) fn broadcast(left: &[usize], right: &[usize]) -> Option<Vec<usize>> {
    let rank = left.len().max(right.len());
    let extent = |dims: &[usize], i: usize| (i + dims.len()).checked_sub(rank).map_or(1, |i| dims[i]);
    (0..rank)
        .map(|i| match (extent(left, i), extent(right, i)) {
            (a, b) if a == b || b == 1 => Some(a),
            (1, b) => Some(b),
            _ => None,
        })
        .collect()
}

/// The value repeated to the extents `dims`, which it broadcasts to.
pub(super) fn expanded(
    cx: &mut Translator<'_>,
    node: &Node,
    x: Encrypted,
    dims: &[usize],
) -> Result<Encrypted, OpError> {
    let missing = dims.len().saturating_sub(x.view.dims().len());
    let own: Vec<usize> = std::iter::repeat_n(1, missing).chain(x.view.dims().iter().copied()).collect();
    let view =
        x.view.reshape(own.clone()).ok_or_else(|| node.malformed("has operands that do not broadcast"))?;
    let x = x.with_view(view);
    if own == dims {
        return Ok(x);
    }
    if let (&[1, c, h, w], true) = (dims, x.view.is_image()) {
        return repeated(cx, node, &x, Shape::new(c, h, w));
    }
    let map = LinearMap::picks(cx, node, &x, dims.to_vec(), |at| {
        Some(at.iter().zip(&own).map(|(&i, &extent)| if extent == 1 { 0 } else { i }).collect())
    })?;
    map.apply(cx, node, &x, None)
}

/// An image with some extents of one, repeated along them. A kernel of ones over a row of zeros, one number and zeros again
/// finds the number at every position.
fn repeated(cx: &mut Translator<'_>, node: &Node, x: &Encrypted, to: Shape) -> Result<Encrypted, OpError> {
    let from = x.view.shape();
    product(&to.dims(), MAX_VALUE_LEN).ok_or(Reason::TooLarge)?;
    let length = |from: usize, to: usize| if from == to { 1 } else { to };
    let (kh, kw) = (length(from.h, to.h), length(from.w, to.w));
    let groups = if from.c == to.c { to.c } else { 1 };
    let dims = vec![to.c, 1, kh, kw];
    let n = cx.budget.take(node, &dims)?;
    let weight = cx.weight(node, &Constant::f64(dims, vec![1.0; n]))?;
    let pads = Pads { top: kh - 1, bottom: kh - 1, left: kw - 1, right: kw - 1 };
    let conv = Conv2d { weight, bias: None, stride: [1, 1], pads, dilation: [1, 1], groups };
    let operand = cx.node_of(x)?;
    cx.add(Op::Conv2d(conv), &[operand], node, View::nchw)
}

/// Expand of an encrypted value to a constant shape.
pub(super) fn expand(cx: &mut Translator<'_>, node: &Node) -> Result<Encrypted, OpError> {
    let x = cx.encrypted(node, 0)?;
    let shape = cx.ints(node, "shape", 1)?.ok_or_else(|| node.malformed("has no shape"))?;
    let shape = extents(node, &shape)?;
    let dims = broadcast(x.view.dims(), &shape);
    let dims = dims.ok_or_else(|| node.malformed("expands to a shape it does not fit"))?;
    expanded(cx, node, x, &dims)
}

/// Tile: the whole value again and again.
pub(super) fn tile(cx: &mut Translator<'_>, node: &Node) -> Result<Encrypted, OpError> {
    let x = cx.encrypted(node, 0)?;
    let repeats = cx.ints(node, "repeats", 1)?.ok_or_else(|| node.malformed("has no repeats"))?;
    let repeats = extents(node, &repeats)?;
    let own = x.view.dims().to_vec();
    if repeats.len() != own.len() {
        return Err(node.malformed("has another number of repeats than dimensions").into());
    }
    if repeats.iter().all(|&r| r == 1) {
        return Ok(x);
    }
    let dims = own.iter().zip(&repeats).map(|(d, r)| d.checked_mul(*r)).collect::<Option<Vec<_>>>();
    let map = LinearMap::picks(cx, node, &x, dims.ok_or(Reason::TooLarge)?, |at| {
        Some(at.iter().zip(&own).map(|(i, extent)| i % extent).collect())
    })?;
    map.apply(cx, node, &x, None)
}

/// Gather by constant indices.
pub(super) fn gather(cx: &mut Translator<'_>, node: &Node) -> Result<Encrypted, OpError> {
    if let Some(Value::Encrypted(_)) = cx.operand(node, 1) {
        return Err(Reason::EncryptedIndex.into());
    }
    let indices = cx.constant(node, 1, "list of indices")?;
    let axis = node.int("axis", 0)?;
    picked(cx, node, &indices, axis)
}

/// Some of the features of a row.
pub(super) fn features(cx: &mut Translator<'_>, node: &Node) -> Result<Encrypted, OpError> {
    let indices = cx.constant(node, 1, "list of indices")?;
    let indices = indices.with_dims(vec![indices.len()]);
    picked(cx, node, &indices, -1)
}

fn picked(cx: &mut Translator<'_>, node: &Node, indices: &Constant, axis: i64) -> Result<Encrypted, OpError> {
    let x = cx.encrypted(node, 0)?;
    let own = x.view.dims().to_vec();
    let axis = super::axis(node, axis, own.len())?;
    let values = indices.as_ints().ok_or_else(|| node.malformed("has indices that are no integers"))?;
    cx.budget.take(node, &indices.dims)?;
    let rows = values.iter().map(|&v| super::axis(node, v, own[axis])).collect::<Result<Vec<_>, _>>()?;
    let dims: Vec<usize> = own[..axis].iter().chain(&indices.dims).chain(&own[axis + 1..]).copied().collect();
    let map = LinearMap::picks(cx, node, &x, dims, |at| {
        let (before, rest) = at.split_at(axis);
        let (of_indices, after) = rest.split_at(indices.dims.len());
        let row = rows[super::linear_map::flatten(of_indices, &indices.dims)];
        Some(before.iter().copied().chain([row]).chain(after.iter().copied()).collect())
    })?;
    map.apply(cx, node, &x, None)
}

fn extents(node: &Node, values: &[i64]) -> Result<Vec<usize>, OpError> {
    if values.len() > MAX_RANK {
        return Err(node.malformed(format!("makes a tensor of rank {}", values.len())).into());
    }
    let dims = values.iter().map(|&v| usize::try_from(v)).collect::<Result<Vec<_>, _>>();
    dims.map_err(|_| node.malformed("has a negative extent").into())
}
