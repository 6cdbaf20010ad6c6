//! Concatenation, slices and padding along channels, rows and columns.

use fhec_ir::{NodeId, Op, Pad, Shape, Slice};

use crate::import::coefficient::Coefficient;
use crate::import::constant::Constant;
use crate::import::node::Node;
use crate::import::polynomial::Polynomial;
use crate::import::reason::Reason;
use crate::import::translate::Translator;
use crate::import::value::{Encrypted, OpError, Value};
use crate::import::view::{Axis, View};

use super::arithmetic::as_vector;
use super::axis;

/// Largest padding of a real network.
const MAX_PAD: i64 = 1 << 14;

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
    check_channel_axis(&model.view, at)?;
    for part in parts.iter().filter_map(encrypted) {
        let same = part.view.dims().len() == model.view.dims().len()
            && (0..part.view.dims().len()).all(|i| i == at || part.view.dims()[i] == model.view.dims()[i]);
        if !same || part.view.shape().area() != model.view.shape().area() {
            let (left, right) = (model.view.dims().to_vec(), part.view.dims().to_vec());
            return Err(Reason::Broadcast { left, right }.into());
        }
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
            Value::Postprocessed(_) | Value::Unknown => return Err(Reason::Operator.into()),
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
    let [only] = nodes[..] else {
        return Err(Reason::Attribute("it joins constants with more than one encrypted value".into()).into());
    };
    let after = channels - before - model.view.shape().c;
    let pad = Pad { before: [before, 0, 0], after: [after, 0, 0] };
    let y = cx.add(Op::Pad(pad), &[only], node, |shape| View::new(dims, &order, shape))?;
    with_constants(cx, node, y, &offsets)
}

/// Fills the padded channels of `y` with constants.
fn with_constants(
    cx: &mut Translator<'_>,
    node: &Node,
    y: Encrypted,
    offsets: &[(usize, usize, Constant)],
) -> Result<Encrypted, OpError> {
    let shape = y.view.shape();
    cx.budget.take(&shape.dims())?;
    let mut filling = vec![0.0; shape.len()];
    for (first, n, constant) in offsets {
        if constant.len() != n * shape.area() {
            return Err(node.malformed("joins a constant of another shape").into());
        }
        match constant.uniform() {
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

/// Every step-th index of a range, along whole axes.
pub(super) fn slice(cx: &mut Translator<'_>, node: &Node) -> Result<Encrypted, OpError> {
    let x = joinable(cx, node, 0)?;
    let rank = x.view.dims().len();
    let starts = cx.ints(node, "starts", 1)?.ok_or_else(|| node.malformed("has no starts"))?;
    let ends = cx.ints(node, "ends", 2)?.ok_or_else(|| node.malformed("has no ends"))?;
    let axes = cx.ints(node, "axes", 3)?.unwrap_or_else(|| (0..starts.len() as i64).collect());
    let steps = cx.ints(node, "steps", 4)?.unwrap_or_else(|| vec![1; starts.len()]);
    if ends.len() != starts.len() || axes.len() != starts.len() || steps.len() != starts.len() {
        return Err(node.malformed("has starts, ends, axes and steps of different lengths").into());
    }
    let mut ranges: Vec<(usize, usize, usize)> = x.view.dims().iter().map(|&d| (0, d, 1)).collect();
    for (i, &a) in axes.iter().enumerate() {
        let at = axis(node, a, rank)?;
        let extent = x.view.dims()[at] as i64;
        let bound = |v: i64| (if v < 0 { v.saturating_add(extent) } else { v }).clamp(0, extent) as usize;
        let step = usize::try_from(steps[i]).ok().filter(|s| *s > 0);
        let step = step.ok_or(Reason::Rearranges("reading backwards"))?;
        let (start, end) = (bound(starts[i]), bound(ends[i]));
        if start >= end {
            return Err(node.malformed("takes nothing").into());
        }
        ranges[at] = (start, end, step);
    }
    sliced(cx, node, &x, &ranges)
}

/// Parts of the channels as values of their own.
pub(super) fn split(cx: &mut Translator<'_>, node: &Node) -> Result<Vec<Value>, OpError> {
    let x = joinable(cx, node, 0)?;
    let at = axis(node, node.int("axis", 0)?, x.view.dims().len())?;
    let extent = x.view.dims()[at];
    let n = node.outputs.len().max(1);
    let sizes = match cx.ints(node, "split", 1)? {
        Some(sizes) => sizes.iter().map(|&s| usize::try_from(s).unwrap_or(usize::MAX)).collect(),
        None => {
            let size = extent.div_ceil(n);
            (0..n).map(|i| size.min(extent.saturating_sub(i * size))).collect::<Vec<_>>()
        }
    };
    if sizes.len() != n || sizes.iter().try_fold(0_usize, |a, &b| a.checked_add(b)) != Some(extent) {
        return Err(node.malformed("splits into parts that do not add up").into());
    }
    let mut start = 0;
    let mut parts = Vec::with_capacity(n);
    for size in sizes {
        let mut ranges: Vec<(usize, usize, usize)> = x.view.dims().iter().map(|&d| (0, d, 1)).collect();
        ranges[at] = (start, start + size, 1);
        parts.push(Value::Encrypted(sliced(cx, node, &x, &ranges)?));
        start += size;
    }
    Ok(parts)
}

fn sliced(
    cx: &mut Translator<'_>,
    node: &Node,
    x: &Encrypted,
    ranges: &[(usize, usize, usize)],
) -> Result<Encrypted, OpError> {
    let axes = x.view.dimension_axes().ok_or(Reason::Rearranges("a slice of part of a dimension"))?;
    let extents = x.view.shape().dims();
    let mut slice = Slice { start: [0; 3], end: extents, step: [1; 3] };
    let mut dims = x.view.dims().to_vec();
    for (i, &(start, end, step)) in ranges.iter().enumerate() {
        if let Some(axis) = axes[i] {
            (slice.start[axis.index()], slice.end[axis.index()], slice.step[axis.index()]) =
                (start, end, step);
        }
        dims[i] = (end - start).div_ceil(step);
    }
    if dims == x.view.dims() {
        return Ok(x.clone());
    }
    let order = x.view.order().to_vec();
    let operand = cx.node_of(x)?;
    cx.add(Op::Slice(slice), &[operand], node, |shape| View::new(dims, &order, shape))
}

/// Zeros (or another constant) around a value.
pub(super) fn pad(cx: &mut Translator<'_>, node: &Node) -> Result<Encrypted, OpError> {
    let x = joinable(cx, node, 0)?;
    let mode = node.text("mode", "constant")?;
    if mode != "constant" {
        return Err(Reason::Attribute(format!("it pads by `{mode}`, not by a constant")).into());
    }
    let name = if node.has("paddings") { "paddings" } else { "pads" };
    let pads = cx.ints(node, name, 1)?.ok_or_else(|| node.malformed("has no pads"))?;
    let value = match cx.optional_constant(node, 2, "padding value")? {
        Some(value) => value.uniform().ok_or_else(|| node.malformed("has no single padding value"))?,
        None => node.float("value", 0.0)?,
    };
    let rank = x.view.dims().len();
    let along = match cx.ints(node, "axes", 3)? {
        Some(axes) => axes.iter().map(|&a| axis(node, a, rank)).collect::<Result<Vec<_>, _>>()?,
        None => (0..rank).collect(),
    };
    if pads.len() != 2 * along.len() || pads.iter().any(|p| !(0..=MAX_PAD).contains(p)) {
        return Err(Reason::Attribute(format!("it pads by {pads:?}")).into());
    }
    let axes = x.view.dimension_axes().ok_or(Reason::Rearranges("padding inside a dimension"))?;
    let mut pad = Pad { before: [0; 3], after: [0; 3] };
    let mut dims = x.view.dims().to_vec();
    for (i, &at) in along.iter().enumerate() {
        let (before, after) = (pads[i] as usize, pads[along.len() + i] as usize);
        match axes[at] {
            Some(axis) => (pad.before[axis.index()], pad.after[axis.index()]) = (before, after),
            None if before + after == 0 => {}
            None => return Err(Reason::Rearranges("padding of the batch").into()),
        }
        dims[at] += before + after;
    }
    if pad == (Pad { before: [0; 3], after: [0; 3] }) {
        return Ok(x);
    }
    // Zeros around x - v, plus v, are v around x.
    let shifted = x.with_polynomial(x.polynomial.shifted(&Coefficient::Scalar(-value)));
    let operand = cx.node_of(&shifted)?;
    let padded = padded_view(&x.view, dims);
    let y = cx.add(Op::Pad(pad), &[operand], node, padded)?;
    let polynomial: Polynomial = y.polynomial.shifted(&Coefficient::Scalar(value));
    Ok(y.with_polynomial(polynomial))
}

/// The view of a padded value; an axis of one index may have grown.
fn padded_view(view: &View, dims: Vec<usize>) -> impl FnOnce(Shape) -> View + use<> {
    let axes: Vec<Axis> = view.dimension_axes().unwrap_or_default().into_iter().flatten().collect();
    move |shape| View::new(dims, &axes, shape)
}

/// An operand whose dimensions are whole axes; a flattened image becomes a vector.
fn joinable(cx: &mut Translator<'_>, node: &Node, slot: usize) -> Result<Encrypted, OpError> {
    let x = cx.encrypted(node, slot)?;
    let is_flattened = x.view.is_flat() && !x.view.shape().is_vector() && x.view.order().len() > 1;
    Ok(if is_flattened { as_vector(cx, x)? } else { x })
}

fn check_channel_axis(view: &View, at: usize) -> Result<(), OpError> {
    let axes = view.dimension_axes().ok_or(Reason::Rearranges("whole channels"))?;
    if axes[at] == Some(Axis::C) {
        Ok(())
    } else {
        Err(Reason::WrongAxis("something else than channels").into())
    }
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
