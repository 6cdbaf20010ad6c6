//! Concatenation: a view along channels, maps along other dimensions.

use fhec_ir::{NodeId, Op, Pad};

use crate::import::coefficient::Coefficient;
use crate::import::constant::Constant;
use crate::import::node::Node;
use crate::import::reason::Reason;
use crate::import::translate::Translator;
use crate::import::value::{Encrypted, OpError, Value};
use crate::import::view::{Axis, View};

use super::axis;
use super::linear_map::{LinearMap, vector};

/// Joins values along the channels; constant parts become padding, and a sum if they are not zero.
pub(super) fn concat(cx: &mut Translator<'_>, node: &Node) -> Result<Encrypted, OpError> {
    let mut parts = Vec::with_capacity(node.inputs.len());
    for slot in 0..node.inputs.len() {
        parts.push(match cx.operand(node, slot) {
            Some(Value::Encrypted(_)) => Value::Encrypted(joinable(cx, node, slot)?),
            Some(value) => value,
            None => return Err(node.malformed("has an operand left out").into()),
        });
    }
    let Some(model) = parts.iter().find_map(encrypted).cloned() else { return Err(Reason::Operator.into()) };
    let at = axis(node, node.int("axis", 1)?, model.view.dims().len())?;
    for part in parts.iter().filter_map(encrypted) {
        let same = part.view.dims().len() == model.view.dims().len()
            && (0..part.view.dims().len()).all(|i| i == at || part.view.dims()[i] == model.view.dims()[i]);
        if !same {
            let (left, right) = (model.view.dims().to_vec(), part.view.dims().to_vec());
            return Err(Reason::Broadcast { left, right }.into());
        }
    }
    let joins = |x: &Encrypted| {
        x.view.shape().area() == model.view.shape().area()
            && x.view.dimension_axes().is_some_and(|axes| axes[at] == Some(Axis::C))
    };
    if !parts.iter().filter_map(encrypted).all(joins) {
        return joined(cx, node, &parts, at, model.view.dims());
    }
    let mut nodes: Vec<NodeId> = Vec::new();
    let (mut before, mut offsets) = (0, Vec::new());
    let mut channels = 0;
    for part in &parts {
        let n = match part {
            Value::Encrypted(x) => {
                nodes.push(cx.node_of(x)?);
                x.view.shape().c
            }
            Value::Constant(constant) => {
                let n = constant.dims.get(at).copied().unwrap_or(0);
                offsets.push((channels, n, constant.clone()));
                n
            }
            Value::Postprocessed(_) | Value::Text(_) | Value::Unknown => return Err(Reason::Operator.into()),
        };
        if nodes.is_empty() {
            before += n;
        }
        channels += n;
    }
    let (dims, order) = (with_extent(&model.view, at, channels), model.view.order().to_vec());
    let order =
        if order.contains(&Axis::C) { order } else { std::iter::once(Axis::C).chain(order).collect() };
    if offsets.is_empty() {
        return cx.add(Op::Concat, &nodes, node, |shape| View::new(dims, &order, shape));
    }
    let n_encrypted: usize = parts.iter().filter_map(encrypted).map(|part| part.view.shape().c).sum();
    let is_between =
        |(first, n, _): &(usize, usize, Constant)| *first >= before && first + n <= before + n_encrypted;
    let only = match nodes[..] {
        [only] => only,
        _ if offsets.iter().any(is_between) => {
            let why = "it joins constants between encrypted values";
            return Err(Reason::Attribute(why.into()).into());
        }
        _ => cx.emitter.add(Op::Concat, &nodes, &node.name)?,
    };
    let after = channels - before - n_encrypted;
    let pad = Pad { before: [before, 0, 0], after: [after, 0, 0] };
    let y = cx.add(Op::Pad(pad), &[only], node, |shape| View::new(dims, &order, shape))?;
    with_constants(cx, node, y, &offsets)
}

/// Joins values along any dimension: each goes to its place by a map, and the maps are added.
fn joined(
    cx: &mut Translator<'_>,
    node: &Node,
    parts: &[Value],
    at: usize,
    like: &[usize],
) -> Result<Encrypted, OpError> {
    let extent = |part: &Value| match part {
        Value::Encrypted(x) => Ok(x.view.dims()[at]),
        _ => Err(Reason::Attribute("it joins constants with encrypted values along this dimension".into())),
    };
    let extents = parts.iter().map(extent).collect::<Result<Vec<_>, _>>()?;
    let mut dims = like.to_vec();
    dims[at] = extents.iter().sum();
    let mut sum: Option<Encrypted> = None;
    let mut first = 0;
    for (part, n) in parts.iter().zip(extents) {
        let Some(x) = encrypted(part) else { continue };
        // Operands of a sum have one shape: all of them are vectors before they are placed.
        let x = &vector(cx, node, x.clone())?;
        let map = LinearMap::picks(cx, node, x, dims.clone(), |index| {
            let place = index[at].checked_sub(first).filter(|&i| i < n)?;
            let mut from = index.to_vec();
            from[at] = place;
            Some(from)
        })?;
        let placed = map.apply(cx, node, x, None)?;
        sum = Some(match sum {
            None => placed,
            Some(before) => super::arithmetic::sum(cx, node, before, placed)?,
        });
        first += n;
    }
    sum.ok_or_else(|| node.malformed("joins nothing").into())
}

/// Fills the padded channels of `y` with constants.
fn with_constants(
    cx: &mut Translator<'_>,
    node: &Node,
    y: Encrypted,
    offsets: &[(usize, usize, Constant)],
) -> Result<Encrypted, OpError> {
    let shape = y.view.shape();
    cx.budget.take(node, &shape.dims())?;
    let mut filling = vec![0.0; shape.len()];
    for (first, n, constant) in offsets {
        if constant.len() != n * shape.area() {
            return Err(node.malformed("joins a constant of another shape").into());
        }
        match cx.uniform(node, constant)? {
            Some(value) => filling[first * shape.area()..][..n * shape.area()].fill(value),
            None if y.view.is_canonical() => {
                filling[first * shape.area()..][..n * shape.area()].copy_from_slice(&constant.to_vec());
            }
            None => return Err(Reason::Rearranges("constants with channels last").into()),
        }
    }
    if filling.iter().all(|v| *v == 0.0) {
        return Ok(y);
    }
    let polynomial = y.polynomial.shifted(&Coefficient::Full(filling));
    Ok(cx.committed(y.with_polynomial(polynomial))?)
}

/// An operand whose dimensions are whole axes; a flattened image becomes a vector.
pub(super) fn joinable(cx: &mut Translator<'_>, node: &Node, slot: usize) -> Result<Encrypted, OpError> {
    let x = cx.encrypted(node, slot)?;
    let is_flattened = x.view.is_flat() && !x.view.shape().is_vector() && x.view.order().len() > 1;
    if is_flattened { vector(cx, node, x) } else { Ok(x) }
}

fn with_extent(view: &View, at: usize, extent: usize) -> Vec<usize> {
    let mut dims = view.dims().to_vec();
    dims[at] = extent;
    dims
}

fn encrypted(value: &Value) -> Option<&Encrypted> {
    match value {
        Value::Encrypted(x) => Some(x),
        _ => None,
    }
}
