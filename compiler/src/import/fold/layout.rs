//! Re-arrangements of constants.

use super::super::constant::{Constant, Data};
use super::super::input::reshaped;
use super::super::limits::{Budget, MAX_EMPTY_VOLUME, MAX_RANK, volume};
use super::super::node::Node;
use super::super::ops::Range;
use super::super::value::OpError;
use super::arithmetic::{Walk, broadcast};
use super::extents;

pub(super) fn shape(node: &Node, x: &Constant) -> Result<Constant, OpError> {
    let rank = x.dims.len() as i64;
    let bound = |v: i64| (if v < 0 { v.saturating_add(rank) } else { v }).clamp(0, rank) as usize;
    let (start, end) = (bound(node.int("start", 0)?), bound(node.int("end", rank)?));
    Ok(Constant::ints(x.dims.get(start..end).unwrap_or_default().iter().map(|&d| d as i64).collect()))
}

pub(super) fn reshape(node: &Node, x: &Constant, target: Option<&Constant>) -> Result<Constant, OpError> {
    let target = integers(node, "shape", target)?.ok_or_else(|| node.malformed("has no shape"))?;
    let is_sound =
        |dims: &Vec<usize>| dims.len() <= MAX_RANK && volume(dims, x.len().max(MAX_EMPTY_VOLUME)).is_some();
    let dims = reshaped(&x.dims, &target).filter(is_sound);
    Ok(x.with_dims(dims.ok_or_else(|| node.malformed("changes the number of elements"))?))
}

pub(super) fn flatten(node: &Node, x: &Constant) -> Result<Constant, OpError> {
    let at = usize::try_from(node.int("axis", 1)?).ok().filter(|&a| a <= x.dims.len());
    let at = at.ok_or_else(|| node.malformed("has an axis out of range"))?;
    Ok(x.with_dims(vec![x.dims[..at].iter().product(), x.dims[at..].iter().product()]))
}

pub(super) fn squeeze(node: &Node, x: &Constant, axes: Option<&Constant>) -> Result<Constant, OpError> {
    let gone = match integers(node, "axes", axes)? {
        Some(axes) => positions(node, &axes, x.dims.len())?,
        None => (0..x.dims.len()).filter(|&i| x.dims[i] == 1).collect(),
    };
    if gone.iter().any(|&i| x.dims[i] != 1) {
        return Err(node.malformed("squeezes a dimension that is not one").into());
    }
    Ok(x.with_dims((0..x.dims.len()).filter(|i| !gone.contains(i)).map(|i| x.dims[i]).collect()))
}

pub(super) fn unsqueeze(node: &Node, x: &Constant, axes: Option<&Constant>) -> Result<Constant, OpError> {
    let axes = integers(node, "axes", axes)?.ok_or_else(|| node.malformed("has no axes"))?;
    let rank = x.dims.len() + axes.len();
    if rank > MAX_RANK {
        return Err(node.malformed(format!("makes a tensor of rank {rank}")).into());
    }
    let new = positions(node, &axes, rank)?;
    let mut old = x.dims.iter().copied();
    let dims = (0..rank).map(|i| if new.contains(&i) { Some(1) } else { old.next() });
    let dims = dims.collect::<Option<Vec<_>>>().ok_or_else(|| node.malformed("names an axis twice"))?;
    Ok(x.with_dims(dims))
}

pub(super) fn transpose(node: &Node, x: &Constant, budget: &mut Budget) -> Result<Constant, OpError> {
    let rank = x.dims.len();
    let permutation = match node.ints("perm")? {
        Some(perm) => positions(node, perm, rank)?,
        None => (0..rank).rev().collect(),
    };
    let mut seen = permutation.clone();
    seen.sort_unstable();
    if !seen.iter().copied().eq(0..rank) {
        return Err(node.malformed("has a perm that is no permutation").into());
    }
    let dims: Vec<usize> = permutation.iter().map(|&p| x.dims[p]).collect();
    let n = budget.take(node, &dims)?;
    let strides = strides(&x.dims);
    let walk = |mut i: usize| {
        let mut position = 0;
        for (&p, extent) in permutation.iter().zip(&dims).rev() {
            position += i % extent * strides[p];
            i /= extent;
        }
        position
    };
    Ok(x.gather(dims.clone(), (0..n).map(walk)))
}

/// Concatenation along the first dimension, which is what shapes are built with, or of tensors that agree elsewhere.
pub(super) fn concat(
    node: &Node,
    operands: &[Option<Constant>],
    budget: &mut Budget,
) -> Result<Constant, OpError> {
    let parts = operands.iter().map(Option::as_ref).collect::<Option<Vec<_>>>();
    let parts = parts.ok_or_else(|| node.malformed("has an operand left out"))?;
    let [first, ..] = &parts[..] else { return Err(node.malformed("has no operand").into()) };
    let at = positions(node, &[node.int("axis", 0)?], first.dims.len())?[0];
    let agree = |part: &&Constant| {
        part.dims.len() == first.dims.len()
            && (0..part.dims.len()).all(|i| i == at || part.dims[i] == first.dims[i])
    };
    if !parts.iter().all(agree) {
        return Err(node.malformed("joins tensors of different shapes").into());
    }
    let mut dims = first.dims.clone();
    dims[at] = parts.iter().map(|p| p.dims[at]).fold(0_usize, usize::saturating_add);
    budget.take(node, &dims)?;
    let outer: usize = dims[..at].iter().product();
    let inner: usize = dims[at + 1..].iter().product();
    let rows = (0..outer).flat_map(|o| {
        parts.iter().flat_map(move |p| {
            let len = p.dims[at] * inner;
            (o * len..(o + 1) * len).map(move |i| (*p, i))
        })
    });
    if parts.iter().all(|p| matches!(p.data, Data::Int(_))) {
        let values = rows.filter_map(|(p, i)| p.as_ints().map(|v| v[i])).collect();
        return Ok(Constant { dims, data: Data::Int(values) });
    }
    Ok(Constant::f64(dims, rows.map(|(p, i)| p.get(i)).collect()))
}

pub(super) fn slice(
    node: &Node,
    operands: &[Option<Constant>],
    budget: &mut Budget,
) -> Result<Constant, OpError> {
    let operand = |slot: usize| operands.get(slot).and_then(Option::as_ref);
    let x = operand(0).ok_or_else(|| node.malformed("has no operand"))?;
    let starts = integers(node, "starts", operand(1))?.ok_or_else(|| node.malformed("has no starts"))?;
    let ends = integers(node, "ends", operand(2))?.ok_or_else(|| node.malformed("has no ends"))?;
    let axes = integers(node, "axes", operand(3))?.unwrap_or_else(|| (0..starts.len() as i64).collect());
    let steps = integers(node, "steps", operand(4))?.unwrap_or_else(|| vec![1; starts.len()]);
    if ends.len() != starts.len() || axes.len() != starts.len() || steps.len() != starts.len() {
        return Err(node.malformed("has starts, ends, axes and steps of different lengths").into());
    }
    let mut ranges: Vec<Range> = x.dims.iter().map(|&d| Range::all(d)).collect();
    for (i, at) in positions(node, &axes, x.dims.len())?.into_iter().enumerate() {
        if steps[i] == 0 {
            return Err(node.malformed("has a step of zero").into());
        }
        let range = Range::new(x.dims[at], starts[i], ends[i], steps[i]);
        ranges[at] = range.unwrap_or(Range::all(0));
    }
    let dims: Vec<usize> = ranges.iter().map(|range| range.count).collect();
    let n = budget.take(node, &dims)?;
    let strides = strides(&x.dims);
    let walk = |mut i: usize| {
        let mut position = 0;
        for d in (0..dims.len()).rev() {
            position += ranges[d].at(i % dims[d]) * strides[d];
            i /= dims[d];
        }
        position
    };
    Ok(x.gather(dims.clone(), (0..n).map(walk)))
}

/// Rows of a tensor along one axis.
pub(super) fn gather(
    node: &Node,
    x: &Constant,
    indices: Option<&Constant>,
    budget: &mut Budget,
) -> Result<Constant, OpError> {
    let indices = indices.ok_or_else(|| node.malformed("has no indices"))?;
    let values = indices.as_ints().ok_or_else(|| node.malformed("has indices that are no integers"))?;
    let at = positions(node, &[node.int("axis", 0)?], x.dims.len())?[0];
    let dims: Vec<usize> =
        x.dims[..at].iter().chain(&indices.dims).chain(&x.dims[at + 1..]).copied().collect();
    budget.take(node, &dims)?;
    let rows = positions(node, values, x.dims[at])?;
    let outer: usize = x.dims[..at].iter().product();
    let inner: usize = x.dims[at + 1..].iter().product();
    let extent = x.dims[at];
    let positions = (0..outer).flat_map(|o| {
        rows.iter().flat_map(move |row| {
            let start = (o * extent + row) * inner;
            start..start + inner
        })
    });
    Ok(x.gather(dims, positions))
}

pub(super) fn expand(
    node: &Node,
    x: &Constant,
    shape: Option<&Constant>,
    budget: &mut Budget,
) -> Result<Constant, OpError> {
    let target = extents(node, shape.ok_or_else(|| node.malformed("has no shape"))?)?;
    let dims =
        broadcast(&x.dims, &target).ok_or_else(|| node.malformed("expands to a shape it does not fit"))?;
    let n = budget.take(node, &dims)?;
    let walk = Walk::new(&x.dims, &dims);
    Ok(x.gather(dims.clone(), (0..n).map(|i| walk.at(i))))
}

/// The whole constant again and again.
pub(super) fn tile(
    node: &Node,
    x: &Constant,
    repeats: Option<&Constant>,
    budget: &mut Budget,
) -> Result<Constant, OpError> {
    let repeats = extents(node, repeats.ok_or_else(|| node.malformed("has no repeats"))?)?;
    let times = |(d, r): (&usize, &usize)| d.checked_mul(*r);
    let dims = x.dims.iter().zip(&repeats).map(times).collect::<Option<Vec<_>>>();
    let dims = dims.filter(|_| repeats.len() == x.dims.len());
    let dims = dims.ok_or_else(|| node.malformed("has repeats that do not fit"))?;
    let n = budget.take(node, &dims)?;
    let strides = strides(&x.dims);
    let walk = |mut i: usize| {
        let mut position = 0;
        for d in (0..dims.len()).rev() {
            position += i % dims[d] % x.dims[d] * strides[d];
            i /= dims[d];
        }
        position
    };
    Ok(x.gather(dims.clone(), (0..n).map(walk)))
}

/// Integers from an attribute (older operator sets) or an operand (newer ones).
fn integers(node: &Node, name: &str, operand: Option<&Constant>) -> Result<Option<Vec<i64>>, OpError> {
    if let Some(values) = node.ints(name)? {
        return Ok(Some(values.to_vec()));
    }
    let Some(constant) = operand else { return Ok(None) };
    let values =
        constant.as_ints().ok_or_else(|| node.malformed(format!("has {name} that hold no integers")))?;
    if values.len() > MAX_RANK {
        return Err(node.malformed(format!("has {} {name}", values.len())).into());
    }
    Ok(Some(values.to_vec()))
}

/// Axes or indices, counted from the end where negative.
pub(super) fn positions(node: &Node, values: &[i64], extent: usize) -> Result<Vec<usize>, OpError> {
    let resolved = values.iter().map(|&v| {
        let v = if v < 0 { v.checked_add(extent as i64)? } else { v };
        usize::try_from(v).ok().filter(|&v| v < extent)
    });
    let resolved = resolved.collect::<Option<Vec<_>>>();
    resolved.ok_or_else(|| node.malformed(format!("has an axis or index beyond {extent}")).into())
}

pub(super) fn strides(dims: &[usize]) -> Vec<usize> {
    let mut strides = vec![1; dims.len()];
    for i in (1..dims.len()).rev() {
        strides[i - 1] = strides[i] * dims[i];
    }
    strides
}
