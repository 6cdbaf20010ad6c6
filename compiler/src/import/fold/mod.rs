//! Constant folding: what exporters compute from weights and shapes at run time is known here.

mod arithmetic;
mod layout;
mod reduce;
mod select;

use super::constant::{Constant, Data};
use super::limits::{Budget, MAX_RANK};
use super::node::Node;
use super::reason::Reason;
use super::value::{OpError, Value};

pub(super) use arithmetic::add;

/// Values for the outputs of a node all of whose operands are constant; `None` stands for one that is left out.
pub(super) fn fold(
    node: &Node,
    operands: &[Option<Constant>],
    budget: &mut Budget,
) -> Result<Vec<Value>, OpError> {
    if !node.domain.is_empty() {
        return Err(Reason::Domain(node.domain.clone()).into());
    }
    let first = || {
        let found = operands.first().and_then(Option::as_ref);
        found.ok_or_else(|| OpError::from(node.malformed("has no operand")))
    };
    let operand = |slot: usize| operands.get(slot).and_then(Option::as_ref);
    let result = match node.op.as_str() {
        "Constant" => literal(node)?,
        "ConstantOfShape" => constant_of_shape(node, first()?, budget)?,
        "Identity" | "Dropout" | "CastLike" => first()?.clone(),
        "Cast" => cast(node, first()?, node.int("to", 1)?, budget)?,
        "Shape" => layout::shape(node, first()?)?,
        "Size" => Constant::ints(vec![first()?.len() as i64]).with_dims(Vec::new()),
        "Reshape" => layout::reshape(node, first()?, operand(1))?,
        "Flatten" => layout::flatten(node, first()?)?,
        "Squeeze" => layout::squeeze(node, first()?, operand(1))?,
        "Unsqueeze" => layout::unsqueeze(node, first()?, operand(1))?,
        "Transpose" => layout::transpose(node, first()?, budget)?,
        "Concat" => layout::concat(node, operands, budget)?,
        "Slice" => layout::slice(node, operands, budget)?,
        "Gather" => layout::gather(node, first()?, operand(1), budget)?,
        "Expand" => layout::expand(node, first()?, operand(1), budget)?,
        "Tile" => layout::tile(node, first()?, operand(1), budget)?,
        "GatherElements" | "GatherND" | "ScatterElements" | "Scatter" | "ScatterND" | "Trilu"
        | "ReverseSequence" | "Compress" | "CenterCropPad" => select::select(node, operands, budget)?,
        "ReduceSum" | "ReduceMean" | "ReduceProd" | "ReduceMax" | "ReduceMin" | "ReduceSumSquare"
        | "ReduceL1" | "ReduceL2" => reduce::reduce(node, first()?, operand(1), budget)?,
        "MatMul" => match operand(1) {
            Some(right) => reduce::matmul(node, first()?, right, budget)?,
            None => return Err(node.malformed("needs two operands").into()),
        },
        "Range" => range(node, operands, budget)?,
        "DequantizeLinear" => arithmetic::dequantize(node, operands, budget)?,
        "QuantizeLinear" | "DynamicQuantizeLinear" => return Err(Reason::Quantized.into()),
        "Where" => arithmetic::choose(node, operands, budget)?,
        "Equal" | "Greater" | "GreaterOrEqual" | "Less" | "LessOrEqual" | "And" | "Or" | "Xor" | "Not" => {
            arithmetic::compare(node, operands, budget)?
        }
        "Add" | "Sub" | "Mul" | "Div" | "Pow" | "Min" | "Max" | "Sum" => {
            arithmetic::combine(node, operands, budget)?
        }
        "Neg" | "Abs" | "Sqrt" | "Reciprocal" | "Exp" | "Log" | "Floor" | "Ceil" | "Round" | "Sign"
        | "Sin" | "Cos" | "Tanh" | "Sigmoid" | "Relu" => arithmetic::unary(node, first()?, budget)?,
        "If" | "Loop" | "Scan" => return Err(Reason::ControlFlow.into()),
        _ => return Err(Reason::Operator.into()),
    };
    Ok(vec![Value::Constant(result)])
}

/// The value of a Constant node.
fn literal(node: &Node) -> Result<Constant, OpError> {
    if let Some(tensor) = node.tensor("value") {
        return Ok(tensor.clone());
    }
    if node.has("value_float") {
        return Ok(Constant::scalar(node.float("value_float", 0.0)?));
    }
    if node.has("value_int") {
        return Ok(Constant::ints(vec![node.int("value_int", 0)?]).with_dims(Vec::new()));
    }
    if let Some(values) = node.floats("value_floats")? {
        return Ok(Constant::f64(vec![values.len()], values.iter().map(|&v| f64::from(v)).collect()));
    }
    if let Some(values) = node.ints("value_ints")? {
        return Ok(Constant::ints(values.to_vec()));
    }
    Err(node.malformed("has no value").into())
}

fn constant_of_shape(node: &Node, shape: &Constant, budget: &mut Budget) -> Result<Constant, OpError> {
    let dims = extents(node, shape)?;
    let n = budget.take(node, &dims)?;
    let value = node.tensor("value").cloned().unwrap_or_else(|| Constant::scalar(0.0));
    if value.len() != 1 {
        return Err(node.malformed("has a value that is no scalar").into());
    }
    Ok(value.gather(dims, std::iter::repeat_n(0, n)))
}

fn cast(node: &Node, x: &Constant, to: i64, budget: &mut Budget) -> Result<Constant, OpError> {
    let to_float = matches!(to, 1 | 10 | 11 | 16);
    match (&x.data, to_float) {
        (Data::F32(_) | Data::F64(_), true) | (Data::Int(_), false) => Ok(x.clone()),
        (Data::Int(_), true) => {
            budget.take(node, &x.dims)?;
            Ok(Constant::f64(x.dims.clone(), x.to_vec()))
        }
        (Data::F32(_) | Data::F64(_), false) => {
            budget.take(node, &x.dims)?;
            Ok(as_integers(x))
        }
    }
}

/// Numbers without their fractions.
fn as_integers(x: &Constant) -> Constant {
    let values = x.to_vec().into_iter().map(|v| v as i64).collect();
    Constant { dims: x.dims.clone(), data: Data::Int(values) }
}

/// Numbers from a start to a limit by steps.
fn range(node: &Node, operands: &[Option<Constant>], budget: &mut Budget) -> Result<Constant, OpError> {
    let [Some(start), Some(limit), Some(step)] = operands else {
        return Err(node.malformed("needs start, limit and step").into());
    };
    if [start, limit, step].iter().any(|c| c.len() != 1) || step.get(0) == 0.0 {
        return Err(node.malformed("needs numbers, and a step that is not zero").into());
    }
    let count = ((limit.get(0) - start.get(0)) / step.get(0)).ceil().max(0.0);
    let n = budget.take(node, &[count as usize])?;
    let values = (0..n).map(|i| start.get(0) + i as f64 * step.get(0)).collect();
    let result = Constant::f64(vec![n], values);
    Ok(if start.as_ints().is_some() { as_integers(&result) } else { result })
}

/// A constant list of integers as extents.
fn extents(node: &Node, constant: &Constant) -> Result<Vec<usize>, OpError> {
    let values = constant.as_ints().ok_or_else(|| node.malformed("has a shape that holds no integers"))?;
    if values.len() > MAX_RANK {
        return Err(node.malformed(format!("makes a tensor of rank {}", values.len())).into());
    }
    let dims = values.iter().map(|&v| usize::try_from(v)).collect::<Result<Vec<_>, _>>();
    dims.map_err(|_| node.malformed("has a negative extent").into())
}
