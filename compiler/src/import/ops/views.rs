//! Operators that only change how ONNX sees a value.

use crate::import::constant::Constant;
use crate::import::input::reshaped;
use crate::import::node::Node;
use crate::import::reason::Reason;
use crate::import::translate::Translator;
use crate::import::value::{Encrypted, OpError, Value};

use super::axis;
use super::linear_map::LinearMap;

/// Identity, and dropout, which is the identity outside training.
pub(super) fn identity(cx: &mut Translator<'_>, node: &Node) -> Result<Encrypted, OpError> {
    if let Some(mode) = cx.optional_constant(node, 2, "training mode")?
        && cx.uniform(node, &mode)? != Some(0.0)
    {
        return Err(Reason::TrainingMode.into());
    }
    match cx.operand(node, 0) {
        Some(Value::Encrypted(x)) => Ok(x),
        _ => Err(node.malformed("has no operand").into()),
    }
}

/// A cast to floating point; integers would round.
pub(super) fn cast(cx: &mut Translator<'_>, node: &Node) -> Result<Vec<Value>, OpError> {
    if node.op == "CastLike" {
        // Only floating point meets floating point here; a constant keeps its precision.
        let first = cx.operand(node, 0).ok_or_else(|| node.malformed("has no operand"))?;
        return Ok(vec![first]);
    }
    let x = identity(cx, node)?;
    match node.int("to", 1)? {
        1 | 10 | 11 | 16 => Ok(vec![Value::Encrypted(Encrypted { is_float: true, ..x })]),
        _ => Err(Reason::Integers.into()),
    }
}

/// The extents (or their product) as a constant; the batch is one.
pub(super) fn shape(cx: &mut Translator<'_>, node: &Node) -> Result<Constant, OpError> {
    let Some(Value::Encrypted(x)) = cx.operand(node, 0) else { return Err(Reason::Operator.into()) };
    let dims: Vec<i64> = x.view.dims().iter().map(|&d| d as i64).collect();
    if node.op == "Size" {
        return Ok(Constant::ints(vec![dims.iter().product()]).with_dims(Vec::new()));
    }
    let rank = dims.len() as i64;
    let bound = |v: i64| (if v < 0 { v.saturating_add(rank) } else { v }).clamp(0, rank) as usize;
    let (start, end) = (bound(node.int("start", 0)?), bound(node.int("end", rank)?));
    Ok(Constant::ints(dims.get(start..end).unwrap_or_default().to_vec()))
}

pub(super) fn flatten(cx: &mut Translator<'_>, node: &Node) -> Result<Encrypted, OpError> {
    let x = cx.encrypted(node, 0)?;
    let dims = x.view.dims();
    let rank = dims.len() as i64;
    let at = node.int("axis", 1)?;
    let at = if at < 0 { at.saturating_add(rank) } else { at };
    let at = usize::try_from(at).ok().filter(|&a| a <= dims.len());
    let at = at.ok_or_else(|| node.malformed("has an axis out of range"))?;
    let flat = vec![dims[..at].iter().product(), dims[at..].iter().product()];
    reviewed(node, &x, flat)
}

pub(super) fn reshape(cx: &mut Translator<'_>, node: &Node) -> Result<Encrypted, OpError> {
    let x = cx.encrypted(node, 0)?;
    let mut target = cx.ints(node, "shape", 1)?.ok_or_else(|| node.malformed("has no shape"))?;
    // A model exported for a larger batch says so in its shapes; here the batch is one.
    if let Some(first) = target.first_mut()
        && cx.batch > 1
        && usize::try_from(*first) == Ok(cx.batch)
        && x.view.dims().first() == Some(&1)
    {
        *first = 1;
    }
    let dims = reshaped(x.view.dims(), &target);
    let dims = dims.ok_or_else(|| node.malformed(format!("reshapes {:?} to {target:?}", x.view.dims())))?;
    reviewed(node, &x, dims)
}

pub(super) fn squeeze(cx: &mut Translator<'_>, node: &Node) -> Result<Encrypted, OpError> {
    let x = cx.encrypted(node, 0)?;
    let dims = x.view.dims();
    let gone = match cx.ints(node, "axes", 1)? {
        Some(axes) => axes.iter().map(|&a| axis(node, a, dims.len())).collect::<Result<Vec<_>, _>>()?,
        None => (0..dims.len()).filter(|&i| dims[i] == 1).collect(),
    };
    if gone.iter().any(|&i| dims[i] != 1) {
        return Err(node.malformed("squeezes a dimension that is not one").into());
    }
    let kept = (0..dims.len()).filter(|i| !gone.contains(i)).map(|i| dims[i]).collect();
    reviewed(node, &x, kept)
}

pub(super) fn unsqueeze(cx: &mut Translator<'_>, node: &Node) -> Result<Encrypted, OpError> {
    let x = cx.encrypted(node, 0)?;
    let axes = cx.ints(node, "axes", 1)?.ok_or_else(|| node.malformed("has no axes"))?;
    let rank = x.view.dims().len() + axes.len();
    if rank > crate::import::limits::MAX_RANK {
        return Err(node.malformed(format!("makes a tensor of rank {rank}")).into());
    }
    let new = axes.iter().map(|&a| axis(node, a, rank)).collect::<Result<Vec<_>, _>>()?;
    let mut old = x.view.dims().iter().copied();
    let dims = (0..rank).map(|i| if new.contains(&i) { Some(1) } else { old.next() });
    let dims = dims.collect::<Option<Vec<_>>>().ok_or_else(|| node.malformed("names an axis twice"))?;
    reviewed(node, &x, dims)
}

pub(super) fn transpose(cx: &mut Translator<'_>, node: &Node) -> Result<Encrypted, OpError> {
    let x = cx.encrypted(node, 0)?;
    let rank = x.view.dims().len();
    let permutation = match node.ints("perm")? {
        Some(perm) => perm.iter().map(|&p| axis(node, p, rank)).collect::<Result<Vec<_>, _>>()?,
        None => (0..rank).rev().collect(),
    };
    let mut seen = permutation.clone();
    seen.sort_unstable();
    if !seen.iter().copied().eq(0..rank) {
        return Err(node.malformed("has a perm that is no permutation").into());
    }
    if let Some(view) = x.view.transpose(&permutation) {
        return Ok(x.with_view(view));
    }
    // Parts of a dimension move: every number goes to its place by a map.
    let dims = permutation.iter().map(|&p| x.view.dims()[p]).collect();
    let map = LinearMap::picks(cx, node, &x, dims, |at| {
        let mut from = vec![0; at.len()];
        permutation.iter().zip(at).for_each(|(&p, &i)| from[p] = i);
        Some(from)
    })?;
    map.apply(cx, node, &x, None)
}

fn reviewed(node: &Node, x: &Encrypted, dims: Vec<usize>) -> Result<Encrypted, OpError> {
    if dims.len() > crate::import::limits::MAX_RANK {
        return Err(node.malformed(format!("makes a tensor of rank {}", dims.len())).into());
    }
    let view = x.view.reshape(dims).ok_or_else(|| node.malformed("changes the number of elements"))?;
    Ok(x.with_view(view))
}
