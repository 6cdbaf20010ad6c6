//! Operators that only choose where every number goes, of constants: some are left out, others repeated, gaps are zeros.
//!
//! `ops/moved.rs` asks the same functions about positions in place of numbers, so that an encrypted value moves as a
//! constant does.

use super::super::constant::{Constant, Data};
use super::super::limits::Budget;
use super::super::node::Node;
use super::super::reason::Reason;
use super::super::value::OpError;
use super::extents;
use super::layout::{positions, strides};

/// The result of a node that moves the numbers of its first operand.
pub(super) fn select(
    node: &Node,
    operands: &[Option<Constant>],
    budget: &mut Budget,
) -> Result<Constant, OpError> {
    let operand = |slot: usize, what: &str| {
        let found = operands.get(slot).and_then(Option::as_ref);
        found.ok_or_else(|| OpError::from(node.malformed(format!("has no {what}"))))
    };
    let x = operand(0, "operand")?;
    match node.op.as_str() {
        "GatherElements" => gather_elements(node, x, operand(1, "indices")?, budget),
        "GatherND" => gather_nd(node, x, operand(1, "indices")?, budget),
        "ScatterElements" | "Scatter" => {
            let (indices, updates) = (operand(1, "indices")?, operand(2, "updates")?);
            let places = elements(node, &x.dims, indices, budget)?;
            scattered(node, x, updates, &places, budget)
        }
        "ScatterND" => {
            let (indices, updates) = (operand(1, "indices")?, operand(2, "updates")?);
            let (starts, inner, _) = rows(node, &x.dims, indices, 0, budget)?;
            let places: Vec<usize> = starts.iter().flat_map(|&start| start..start + inner).collect();
            scattered(node, x, updates, &places, budget)
        }
        "Trilu" => triangle(node, x, operands.get(1).and_then(Option::as_ref), budget),
        "ReverseSequence" => reversed(node, x, operand(1, "lengths")?, budget),
        "Compress" => compressed(node, x, operand(1, "condition")?, budget),
        "CenterCropPad" => centered(node, x, operand(1, "shape")?, budget),
        _ => Err(Reason::Operator.into()),
    }
}

/// Numbers at places, or zeros.
fn placed(
    node: &Node,
    x: &Constant,
    dims: Vec<usize>,
    budget: &mut Budget,
    place: impl Fn(&[usize]) -> Option<usize>,
) -> Result<Constant, OpError> {
    let n = budget.take(node, &dims)?;
    let mut index = vec![0; dims.len()];
    let mut places = Vec::with_capacity(n);
    for _ in 0..n {
        places.push(place(&index));
        for (i, extent) in index.iter_mut().zip(&dims).rev() {
            *i += 1;
            if *i < *extent {
                break;
            }
            *i = 0;
        }
    }
    Ok(match &x.data {
        Data::Int(v) => {
            let values = places.into_iter().map(|p| p.map_or(0, |p| v[p])).collect();
            Constant { dims, data: Data::Int(values) }
        }
        Data::F32(_) | Data::F64(_) => {
            Constant::f64(dims, places.into_iter().map(|p| p.map_or(0.0, |p| x.get(p))).collect())
        }
    })
}

fn flat(index: &[usize], strides: &[usize]) -> usize {
    index.iter().zip(strides).map(|(i, stride)| i * stride).sum()
}

/// For every index, the place that it names along one axis of a tensor, its own along the others.
fn elements(
    node: &Node,
    dims: &[usize],
    indices: &Constant,
    budget: &mut Budget,
) -> Result<Vec<usize>, OpError> {
    let at = positions(node, &[node.int("axis", 0)?], dims.len())?[0];
    let fits =
        indices.dims.len() == dims.len() && (0..dims.len()).all(|i| i == at || indices.dims[i] <= dims[i]);
    if !fits {
        return Err(node.malformed("has indices of another shape").into());
    }
    let n = budget.take(node, &indices.dims)?;
    let along = positions(node, integers(node, indices)?, dims[at])?;
    let (strides, own) = (strides(dims), self::strides(&indices.dims));
    let place = |i: usize| {
        let index = (0..dims.len()).map(|d| if d == at { along[i] } else { i / own[d] % indices.dims[d] });
        index.zip(&strides).map(|(index, stride)| index * stride).sum()
    };
    Ok((0..n).map(place).collect())
}

fn gather_elements(
    node: &Node,
    x: &Constant,
    indices: &Constant,
    budget: &mut Budget,
) -> Result<Constant, OpError> {
    let places = elements(node, &x.dims, indices, budget)?;
    budget.take(node, &indices.dims)?;
    Ok(x.gather(indices.dims.clone(), places.into_iter()))
}

/// Where the parts begin that lists of indices name, how long each part is, and the extents of all.
fn rows(
    node: &Node,
    dims: &[usize],
    indices: &Constant,
    batch: usize,
    budget: &mut Budget,
) -> Result<(Vec<usize>, usize, Vec<usize>), OpError> {
    let unfit = || node.malformed("has lists of indices that do not fit");
    let (&length, outer) = indices.dims.split_last().ok_or_else(unfit)?;
    if batch > outer.len() || batch + length > dims.len() || outer[..batch] != dims[..batch] {
        return Err(unfit().into());
    }
    let values = integers(node, indices)?;
    let n: usize = budget.take(node, outer)?;
    let strides = strides(dims);
    let of_batch: usize = outer[batch..].iter().product();
    let mut starts = Vec::with_capacity(n);
    for i in 0..n {
        let mut start = (i / of_batch.max(1)) * if batch == 0 { 0 } else { strides[batch - 1] };
        for k in 0..length {
            let index = positions(node, &values[i * length + k..][..1], dims[batch + k])?[0];
            start += index * strides[batch + k];
        }
        starts.push(start);
    }
    let kept = &dims[batch + length..];
    let all: Vec<usize> = outer.iter().chain(kept).copied().collect();
    budget.take(node, &all)?;
    Ok((starts, kept.iter().product(), all))
}

fn gather_nd(
    node: &Node,
    x: &Constant,
    indices: &Constant,
    budget: &mut Budget,
) -> Result<Constant, OpError> {
    let batch = usize::try_from(node.int("batch_dims", 0)?);
    let batch = batch.map_err(|_| node.malformed("has a negative number of batch dimensions"))?;
    let (starts, inner, dims) = rows(node, &x.dims, indices, batch, budget)?;
    Ok(x.gather(dims, starts.into_iter().flat_map(|start| start..start + inner)))
}

/// The first operand with the updates at their places, or added there.
fn scattered(
    node: &Node,
    x: &Constant,
    updates: &Constant,
    places: &[usize],
    budget: &mut Budget,
) -> Result<Constant, OpError> {
    if updates.len() != places.len() {
        return Err(node.malformed("has another number of updates than of places").into());
    }
    budget.take(node, &x.dims)?;
    budget.take(node, &updates.dims)?;
    let adds = match node.text("reduction", "none")?.as_str() {
        "none" => false,
        "add" => true,
        other => return Err(Reason::Attribute(format!("it combines updates by `{other}`")).into()),
    };
    if let (Data::Int(x_values), Data::Int(new)) = (&x.data, &updates.data) {
        let mut values = x_values.to_vec();
        for (&place, &value) in places.iter().zip(new.iter()) {
            values[place] = if adds { values[place].wrapping_add(value) } else { value };
        }
        return Ok(Constant { dims: x.dims.clone(), data: Data::Int(values.into()) });
    }
    let mut values = x.to_vec();
    for (i, &place) in places.iter().enumerate() {
        values[place] = if adds { values[place] + updates.get(i) } else { updates.get(i) };
    }
    Ok(Constant::f64(x.dims.clone(), values))
}

fn triangle(
    node: &Node,
    x: &Constant,
    diagonal: Option<&Constant>,
    budget: &mut Budget,
) -> Result<Constant, OpError> {
    let k = match diagonal {
        None => 0,
        Some(k) => *integers(node, k)?.first().ok_or_else(|| node.malformed("has no diagonal"))?,
    };
    let is_upper = node.int("upper", 1)? != 0;
    if x.dims.len() < 2 {
        return Err(node.malformed("needs a matrix").into());
    }
    let strides = strides(&x.dims);
    let kept = |index: &[usize]| {
        let [.., row, column] = *index else { return None };
        let beyond = (column as i64).saturating_sub(row as i64).cmp(&k);
        let is_kept = if is_upper { beyond.is_ge() } else { beyond.is_le() };
        is_kept.then(|| flat(index, &strides))
    };
    placed(node, x, x.dims.clone(), budget, kept)
}

fn reversed(node: &Node, x: &Constant, lengths: &Constant, budget: &mut Budget) -> Result<Constant, OpError> {
    let (batch, time) = (node.int("batch_axis", 1)?, node.int("time_axis", 0)?);
    let [batch, time] = positions(node, &[batch, time], x.dims.len())?[..] else {
        return Err(node.malformed("has no axes").into());
    };
    let lengths = integers(node, lengths)?;
    let fits = |&length: &i64| usize::try_from(length).is_ok_and(|length| length <= x.dims[time]);
    if lengths.len() != x.dims[batch] || !lengths.iter().all(fits) {
        return Err(node.malformed("has lengths that do not fit").into());
    }
    let strides = strides(&x.dims);
    let place = |index: &[usize]| {
        let length = lengths[index[batch]] as usize;
        let mut from = index.to_vec();
        if index[time] < length {
            from[time] = length - 1 - index[time];
        }
        Some(flat(&from, &strides))
    };
    placed(node, x, x.dims.clone(), budget, place)
}

fn compressed(
    node: &Node,
    x: &Constant,
    condition: &Constant,
    budget: &mut Budget,
) -> Result<Constant, OpError> {
    budget.take(node, &condition.dims)?;
    let (x, at) = match node.has("axis") {
        true => (x.clone(), positions(node, &[node.int("axis", 0)?], x.dims.len())?[0]),
        false => (x.with_dims(vec![x.len()]), 0),
    };
    let kept: Vec<usize> =
        (0..condition.len().min(x.dims[at])).filter(|&i| condition.get(i) != 0.0).collect();
    let mut dims = x.dims.clone();
    dims[at] = kept.len();
    let strides = strides(&x.dims);
    let place = |index: &[usize]| {
        let mut from = index.to_vec();
        from[at] = kept[index[at]];
        Some(flat(&from, &strides))
    };
    placed(node, &x, dims, budget, place)
}

fn centered(node: &Node, x: &Constant, shape: &Constant, budget: &mut Budget) -> Result<Constant, OpError> {
    let wanted = extents(node, shape)?;
    let axes = match node.ints("axes")? {
        Some(axes) => positions(node, axes, x.dims.len())?,
        None => (0..x.dims.len()).collect(),
    };
    if axes.len() != wanted.len() {
        return Err(node.malformed("has another number of axes than of extents").into());
    }
    let mut dims = x.dims.clone();
    axes.iter().zip(wanted).for_each(|(&at, extent)| dims[at] = extent);
    let strides = strides(&x.dims);
    let place = |index: &[usize]| {
        let mut from = 0;
        for (d, &i) in index.iter().enumerate() {
            let (own, new) = (x.dims[d], dims[d]);
            // Where the larger of both is longer by an odd number, the odd one is at its end.
            let i = if new > own { i.checked_sub((new - own) / 2)? } else { i + (own - new) / 2 };
            from += (i < own).then_some(i)? * strides[d];
        }
        Some(from)
    };
    placed(node, x, dims.clone(), budget, place)
}

fn integers<'c>(node: &Node, constant: &'c Constant) -> Result<&'c [i64], OpError> {
    constant.as_ints().ok_or_else(|| node.malformed("has indices that are no integers").into())
}
