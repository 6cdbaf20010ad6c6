//! Arithmetic of constants, with broadcasting.

use super::super::constant::{Constant, Data};
use super::super::limits::Budget;
use super::super::node::Node;
use super::super::reason::Reason;
use super::super::value::OpError;

/// A binary operator over two operands, or Sum, Min and Max over any number.
pub(super) fn combine(
    node: &Node,
    operands: &[Option<Constant>],
    budget: &mut Budget,
) -> Result<Constant, OpError> {
    let operands = operands.iter().map(Option::as_ref).collect::<Option<Vec<_>>>();
    let operands = operands.ok_or_else(|| node.malformed("has an operand left out"))?;
    let is_variadic = matches!(node.op.as_str(), "Sum" | "Min" | "Max");
    let [first, rest @ ..] = &operands[..] else { return Err(node.malformed("has no operand").into()) };
    if !is_variadic && rest.len() != 1 {
        return Err(node.malformed(format!("has {} operands", operands.len())).into());
    }
    let mut result = (*first).clone();
    for operand in rest {
        result = binary(node, &result, operand, budget)?;
    }
    Ok(result)
}

/// The sum of two constants.
pub(in super::super) fn add(
    node: &Node,
    a: &Constant,
    b: &Constant,
    budget: &mut Budget,
) -> Result<Constant, OpError> {
    elementwise(node, a, b, budget, |x, y| x + y, |x, y| x.checked_add(y))
}

/// One function of every element.
pub(super) fn unary(node: &Node, x: &Constant, budget: &mut Budget) -> Result<Constant, OpError> {
    let f: fn(f64) -> f64 = match node.op.as_str() {
        "Neg" => |v| -v,
        "Abs" => f64::abs,
        "Sqrt" => f64::sqrt,
        "Reciprocal" => f64::recip,
        "Exp" => f64::exp,
        "Log" => f64::ln,
        "Floor" => f64::floor,
        "Ceil" => f64::ceil,
        "Round" => f64::round_ties_even,
        "Sign" => |v| if v == 0.0 { 0.0 } else { v.signum() },
        "Sin" => f64::sin,
        "Cos" => f64::cos,
        "Tanh" => f64::tanh,
        "Sigmoid" => |v| 1.0 / (1.0 + (-v).exp()),
        "Relu" => |v| v.max(0.0),
        _ => return Err(Reason::Operator.into()),
    };
    budget.take(node, &x.dims)?;
    let values = x.to_vec().into_iter().map(f);
    Ok(match x.data {
        Data::Int(_) => {
            Constant { dims: x.dims.clone(), data: Data::Int(values.map(|v| v as i64).collect()) }
        }
        Data::F32(_) | Data::F64(_) => Constant::f64(x.dims.clone(), values.collect()),
    })
}

/// Where: one of two constants, by a third.
pub(super) fn choose(
    node: &Node,
    operands: &[Option<Constant>],
    budget: &mut Budget,
) -> Result<Constant, OpError> {
    let [Some(condition), Some(a), Some(b)] = operands else {
        return Err(node.malformed("needs three operands").into());
    };
    let dims = broadcast(&a.dims, &b.dims).and_then(|dims| broadcast(&dims, &condition.dims));
    let dims = dims.ok_or_else(|| node.malformed("has operands that do not broadcast"))?;
    let n = budget.take(node, &dims)?;
    let walks = [condition, a, b].map(|x| Walk::new(&x.dims, &dims));
    let is_left = |i: usize| condition.get(walks[0].at(i)) != 0.0;
    if let (Data::Int(x), Data::Int(y)) = (&a.data, &b.data) {
        let values = (0..n).map(|i| if is_left(i) { x[walks[1].at(i)] } else { y[walks[2].at(i)] }).collect();
        return Ok(Constant { dims, data: Data::Int(values) });
    }
    let value = |i: usize| if is_left(i) { a.get(walks[1].at(i)) } else { b.get(walks[2].at(i)) };
    let values = (0..n).map(value).collect();
    Ok(Constant::f64(dims, values))
}

/// Weights that a file keeps as integers: what is above the zero point, times a scale; one of both for all, or for every index
/// of an axis.
pub(super) fn dequantize(
    node: &Node,
    operands: &[Option<Constant>],
    budget: &mut Budget,
) -> Result<Constant, OpError> {
    let [Some(x), Some(scale), rest @ ..] = operands else {
        return Err(node.malformed("needs integers and a scale").into());
    };
    if node.int("block_size", 0)? != 0 {
        return Err(Reason::Quantized.into());
    }
    let n = budget.take(node, &x.dims)?;
    let foreign = || node.malformed("has scales that do not belong to its integers");
    let (extent, inner) = match scale.len() {
        1 => (1, n.max(1)),
        n_scales => {
            let axis = super::super::ops::axis(node, node.int("axis", 1)?, x.dims.len())?;
            if x.dims[axis] != n_scales {
                return Err(foreign().into());
            }
            (n_scales.max(1), x.dims[axis + 1..].iter().product::<usize>().max(1))
        }
    };
    let zero = rest.first().and_then(Option::as_ref);
    if zero.is_some_and(|zero| zero.len() != scale.len()) {
        return Err(foreign().into());
    }
    let value = |i: usize| {
        let of = i / inner % extent;
        (x.get(i) - zero.map_or(0.0, |zero| zero.get(of))) * scale.get(of)
    };
    Ok(Constant::f64(x.dims.clone(), (0..n).map(value).collect()))
}

/// Comparisons, whose results are zeros and ones.
pub(super) fn compare(
    node: &Node,
    operands: &[Option<Constant>],
    budget: &mut Budget,
) -> Result<Constant, OpError> {
    let truths = |a: &Constant,
                  b: &Constant,
                  budget: &mut Budget,
                  holds: fn(f64, f64) -> bool|
     -> Result<Constant, OpError> {
        let dims = broadcast(&a.dims, &b.dims)
            .ok_or_else(|| node.malformed("has operands that do not broadcast"))?;
        let n = budget.take(node, &dims)?;
        let (left, right) = (Walk::new(&a.dims, &dims), Walk::new(&b.dims, &dims));
        let values = (0..n).map(|i| i64::from(holds(a.get(left.at(i)), b.get(right.at(i))))).collect();
        Ok(Constant { dims, data: Data::Int(values) })
    };
    match (node.op.as_str(), operands) {
        ("Not", [Some(a)]) => truths(a, &Constant::scalar(0.0), budget, |x, y| x == y),
        ("Equal", [Some(a), Some(b)]) => truths(a, b, budget, |x, y| x == y),
        ("Greater", [Some(a), Some(b)]) => truths(a, b, budget, |x, y| x > y),
        ("GreaterOrEqual", [Some(a), Some(b)]) => truths(a, b, budget, |x, y| x >= y),
        ("Less", [Some(a), Some(b)]) => truths(a, b, budget, |x, y| x < y),
        ("LessOrEqual", [Some(a), Some(b)]) => truths(a, b, budget, |x, y| x <= y),
        ("And", [Some(a), Some(b)]) => truths(a, b, budget, |x, y| x != 0.0 && y != 0.0),
        ("Or", [Some(a), Some(b)]) => truths(a, b, budget, |x, y| x != 0.0 || y != 0.0),
        ("Xor", [Some(a), Some(b)]) => truths(a, b, budget, |x, y| (x != 0.0) != (y != 0.0)),
        _ => Err(node.malformed("has another number of operands").into()),
    }
}

fn binary(node: &Node, a: &Constant, b: &Constant, budget: &mut Budget) -> Result<Constant, OpError> {
    match node.op.as_str() {
        "Add" | "Sum" => add(node, a, b, budget),
        "Sub" => elementwise(node, a, b, budget, |x, y| x - y, |x, y| x.checked_sub(y)),
        "Mul" => elementwise(node, a, b, budget, |x, y| x * y, |x, y| x.checked_mul(y)),
        "Div" => elementwise(node, a, b, budget, |x, y| x / y, |x, y| x.checked_div(y)),
        "Pow" => elementwise(node, a, b, budget, f64::powf, |x, y| x.checked_pow(u32::try_from(y).ok()?)),
        "Min" => elementwise(node, a, b, budget, f64::min, |x, y| Some(x.min(y))),
        "Max" => elementwise(node, a, b, budget, f64::max, |x, y| Some(x.max(y))),
        _ => Err(Reason::Operator.into()),
    }
}

fn elementwise(
    node: &Node,
    a: &Constant,
    b: &Constant,
    budget: &mut Budget,
    float: impl Fn(f64, f64) -> f64,
    int: impl Fn(i64, i64) -> Option<i64>,
) -> Result<Constant, OpError> {
    let dims =
        broadcast(&a.dims, &b.dims).ok_or_else(|| node.malformed("has operands that do not broadcast"))?;
    let n = budget.take(node, &dims)?;
    let (left, right) = (Walk::new(&a.dims, &dims), Walk::new(&b.dims, &dims));
    if let (Data::Int(x), Data::Int(y)) = (&a.data, &b.data) {
        let values = (0..n).map(|i| int(x[left.at(i)], y[right.at(i)])).collect::<Option<Vec<_>>>();
        let values = values.ok_or_else(|| node.malformed("overflows or divides by zero"))?;
        return Ok(Constant { dims, data: Data::Int(values.into()) });
    }
    let values = (0..n).map(|i| float(a.get(left.at(i)), b.get(right.at(i)))).collect();
    Ok(Constant::f64(dims, values))
}

/// The extents two tensors broadcast to.
pub(super) fn broadcast(a: &[usize], b: &[usize]) -> Option<Vec<usize>> {
    let rank = a.len().max(b.len());
    let extent = |dims: &[usize], i: usize| (i + dims.len()).checked_sub(rank).map_or(1, |i| dims[i]);
    (0..rank)
        .map(|i| match (extent(a, i), extent(b, i)) {
            (x, y) if x == y => Some(x),
            (1, y) => Some(y),
            (x, 1) => Some(x),
            _ => None,
        })
        .collect()
}

/// Positions of a tensor as a larger one it broadcasts to is walked.
pub(super) struct Walk<'d> {
    dims: &'d [usize],
    strides: Vec<usize>,
}

impl<'d> Walk<'d> {
    /// A walk over `dims` by a tensor of extents `own`.
    pub(super) fn new(own: &[usize], dims: &'d [usize]) -> Self {
        let mut strides = vec![0; dims.len()];
        let mut stride = 1;
        for (extent, slot) in own.iter().rev().zip(strides.iter_mut().rev()) {
            *slot = if *extent == 1 { 0 } else { stride };
            stride *= extent;
        }
        Walk { dims, strides }
    }

    /// The tensor's position at the flat position `i` of the walk.
    pub(super) fn at(&self, mut i: usize) -> usize {
        let mut position = 0;
        for (extent, stride) in self.dims.iter().zip(&self.strides).rev() {
            position += i % extent * stride;
            i /= extent;
        }
        position
    }
}
