//! Sums and products of constants over dimensions.

use super::super::constant::Constant;
use super::super::limits::Budget;
use super::super::node::Node;
use super::super::ops;
use super::super::reason::Reason;
use super::super::value::OpError;
use super::arithmetic::{Walk, broadcast};

/// A reduction over the axes that an attribute (older operator sets) or the second operand (newer ones) names.
pub(super) fn reduce(
    node: &Node,
    x: &Constant,
    axes: Option<&Constant>,
    budget: &mut Budget,
) -> Result<Constant, OpError> {
    let rank = x.dims.len();
    let listed = match (node.ints("axes")?, axes.and_then(Constant::as_ints)) {
        (Some(axes), _) | (None, Some(axes)) => axes,
        (None, None) => &[],
    };
    if listed.is_empty() && node.int("noop_with_empty_axes", 0)? != 0 {
        return Ok(x.clone());
    }
    let over = match listed {
        [] => vec![true; rank],
        _ => {
            let axes = listed.iter().map(|&a| ops::axis(node, a, rank)).collect::<Result<Vec<_>, _>>()?;
            (0..rank).map(|i| axes.contains(&i)).collect()
        }
    };
    let n = budget.take(node, &x.dims)?;
    let kept: Vec<usize> = x.dims.iter().zip(&over).map(|(&d, &gone)| if gone { 1 } else { d }).collect();
    let n_out: usize = kept.iter().product();
    let walk = Walk::new(&kept, &x.dims);
    let (start, step): (f64, fn(f64, f64) -> f64) = match node.op.as_str() {
        "ReduceSum" | "ReduceMean" => (0.0, |a, b| a + b),
        "ReduceProd" => (1.0, |a, b| a * b),
        "ReduceMax" => (f64::NEG_INFINITY, f64::max),
        "ReduceMin" => (f64::INFINITY, f64::min),
        "ReduceSumSquare" | "ReduceL2" => (0.0, |a, b| b.mul_add(b, a)),
        "ReduceL1" => (0.0, |a, b| a + b.abs()),
        _ => return Err(Reason::Operator.into()),
    };
    let mut values = vec![start; n_out];
    for i in 0..n {
        let to = &mut values[walk.at(i)];
        *to = step(*to, x.get(i));
    }
    match node.op.as_str() {
        "ReduceMean" => values.iter_mut().for_each(|v| *v /= (n / n_out.max(1)) as f64),
        "ReduceL2" => values.iter_mut().for_each(|v| *v = v.sqrt()),
        _ => {}
    }
    let keeps = node.int("keepdims", 1)? != 0;
    let dims = kept.iter().zip(&over).filter(|(_, gone)| keeps || !**gone).map(|(&d, _)| d).collect();
    let result = Constant::f64(dims, values);
    Ok(if x.as_ints().is_some() { super::as_integers(&result) } else { result })
}

/// The product of two matrices, or of stacks of them.
pub(super) fn matmul(
    node: &Node,
    a: &Constant,
    b: &Constant,
    budget: &mut Budget,
) -> Result<Constant, OpError> {
    let ([left @ .., m, k], [right @ .., k2, n]) = (&a.dims[..], &b.dims[..]) else {
        return Err(Reason::Operator.into());
    };
    let outer = broadcast(left, right).filter(|_| k == k2);
    let outer = outer.ok_or_else(|| node.malformed(format!("multiplies {:?} by {:?}", a.dims, b.dims)))?;
    let cost: Vec<usize> = outer.iter().copied().chain([*m, *n, *k]).collect();
    budget.take(node, &cost)?;
    let (of_a, of_b) = (Walk::new(left, &outer), Walk::new(right, &outer));
    let mut values = Vec::with_capacity(outer.iter().product::<usize>() * m * n);
    for i in 0..outer.iter().product() {
        let (first_a, first_b) = (of_a.at(i) * m * k, of_b.at(i) * k * n);
        for row in 0..*m {
            for column in 0..*n {
                let term = |t: usize| a.get(first_a + row * k + t) * b.get(first_b + t * n + column);
                values.push((0..*k).map(term).sum());
            }
        }
    }
    Ok(Constant::f64(outer.into_iter().chain([*m, *n]).collect(), values))
}
