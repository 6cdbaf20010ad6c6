//! Slices and splits: views along whole axes, maps elsewhere.

use fhec_ir::{Op, Slice};

use super::axis;
use super::channels::joinable;
use super::linear_map::LinearMap;
use crate::import::node::Node;
use crate::import::translate::Translator;
use crate::import::value::{Encrypted, OpError, Value};
use crate::import::view::View;

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
    let mut ranges: Vec<Range> = x.view.dims().iter().map(|&d| Range::all(d)).collect();
    for (i, &a) in axes.iter().enumerate() {
        let at = axis(node, a, rank)?;
        let range = Range::new(x.view.dims()[at], starts[i], ends[i], steps[i]);
        ranges[at] = range.ok_or_else(|| node.malformed("takes nothing"))?;
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
        let mut ranges: Vec<Range> = x.view.dims().iter().map(|&d| Range::all(d)).collect();
        ranges[at] = Range { start, count: size, step: 1 };
        parts.push(Value::Encrypted(sliced(cx, node, &x, &ranges)?));
        start += size;
    }
    Ok(parts)
}

/// Indices along one dimension.
#[derive(Clone, Copy, Debug)]
pub(in crate::import) struct Range {
    start: usize,
    /// How many.
    pub(in crate::import) count: usize,
    step: i64,
}

impl Range {
    /// All of a dimension.
    pub(in crate::import) fn all(extent: usize) -> Self {
        Self { start: 0, count: extent, step: 1 }
    }

    /// A slice as ONNX writes it; `None` if it takes nothing.
    pub(in crate::import) fn new(extent: usize, start: i64, end: i64, step: i64) -> Option<Self> {
        let extent = extent as i64;
        let from_end = |v: i64| if v < 0 { v.saturating_add(extent) } else { v };
        let (start, end) = (from_end(start), from_end(end));
        let (start, length) = match step {
            1.. => (start.clamp(0, extent), end.clamp(0, extent) - start.clamp(0, extent)),
            0 => return None,
            _ => (start.clamp(-1, extent - 1), start.clamp(-1, extent - 1) - end.clamp(-1, extent - 1)),
        };
        let count = usize::try_from(length).ok().filter(|&n| n > 0)?.div_ceil(step.unsigned_abs() as usize);
        Some(Self { start: start as usize, count, step })
    }

    /// The i-th of them.
    pub(in crate::import) fn at(&self, i: usize) -> usize {
        self.start.wrapping_add_signed((i as i64).wrapping_mul(self.step) as isize)
    }
}

fn sliced(
    cx: &mut Translator<'_>,
    node: &Node,
    x: &Encrypted,
    ranges: &[Range],
) -> Result<Encrypted, OpError> {
    let dims: Vec<usize> = ranges.iter().map(|r| r.count).collect();
    if dims.contains(&0) {
        return Err(node.malformed("takes nothing").into());
    }
    let is_forward = ranges.iter().all(|r| r.step > 0);
    if dims == x.view.dims() && is_forward {
        return Ok(x.clone());
    }
    let axes = match x.view.dimension_axes() {
        Some(axes) if is_forward => axes,
        _ => {
            let map = LinearMap::picks(cx, node, x, dims, |at| {
                Some(at.iter().zip(ranges).map(|(&i, range)| range.at(i)).collect())
            })?;
            return map.apply(cx, node, x, None);
        }
    };
    let mut slice = Slice { start: [0; 3], end: x.view.shape().dims(), step: [1; 3] };
    for (range, axis) in ranges.iter().zip(axes) {
        if let Some(axis) = axis {
            let last = range.at(range.count - 1);
            (slice.start[axis.index()], slice.end[axis.index()], slice.step[axis.index()]) =
                (range.start, last + 1, range.step as usize);
        }
    }
    let order = x.view.order().to_vec();
    let operand = cx.node_of(x)?;
    cx.add(Op::Slice(slice), &[operand], node, |shape| View::new(dims, &order, shape))
}
