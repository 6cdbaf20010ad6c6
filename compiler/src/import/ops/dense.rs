//! Dense layers: Gemm, MatMul, and the MatMul over channels that is a 1x1 convolution.

use fhec_ir::{Conv2d, Linear, Op, Pads};

use super::contract::{self, Factor};
use crate::import::constant::Constant;
use crate::import::node::Node;
use crate::import::reason::Reason;
use crate::import::translate::Translator;
use crate::import::value::{Encrypted, OpError, Value};
use crate::import::view::{Axis, View};

/// alpha·A·B + beta·C with either A or B encrypted.
pub(super) fn gemm(cx: &mut Translator<'_>, node: &Node) -> Result<Encrypted, OpError> {
    let (alpha, beta) = (node.float("alpha", 1.0)?, node.float("beta", 1.0)?);
    let (turn_a, turn_b) = (node.int("transA", 0)? != 0, node.int("transB", 0)? != 0);
    let (x, weight, is_left) = operands(cx, node)?;
    if x.view.dims().len() != 2 || weight.dims.len() != 2 {
        return Err(node.malformed("needs matrices").into());
    }
    // With x on the left the result is x·B, so the weight rows are B's columns; on the right they are A's rows.
    let is_turned = if is_left { !turn_b } else { turn_a };
    let batch = if is_left { usize::from(turn_a) } else { usize::from(!turn_b) };
    if x.view.dims()[batch] != 1 {
        return Err(Reason::Rearranges("more than one row").into());
    }
    cx.budget.take(node, &weight.dims)?;
    let weight = if is_turned { transposed(&weight) } else { weight };
    let weight = if alpha == 1.0 { weight } else { scaled(&weight, alpha) };
    let out = weight.dims[0];
    let bias = match cx.optional_constant(node, 2, "bias")? {
        Some(bias) if beta != 0.0 => Some(scaled(&broadcast(node, &bias, out)?, beta)),
        _ => None,
    };
    linear(cx, node, &x, &weight, bias.as_ref(), if is_left { vec![1, out] } else { vec![out, 1] })
}

/// x·B over the last dimension of x, A·x, or the product of two encrypted matrices.
pub(super) fn matmul(cx: &mut Translator<'_>, node: &Node) -> Result<Encrypted, OpError> {
    let (left, right) = (factor(cx, node, 0)?, factor(cx, node, 1)?);
    let (x, weight, is_left) = match (&left, &right) {
        (Factor::Encrypted(x), Factor::Constant(weight)) => (x.clone(), weight.clone(), true),
        (Factor::Constant(weight), Factor::Encrypted(x)) => (x.clone(), weight.clone(), false),
        _ => return contract::matmul(cx, node, left, right),
    };
    let Some(matrix) = as_matrix(&weight, is_left) else {
        return contract::matmul(cx, node, left, right);
    };
    let dims = x.view.dims();
    let (features, rest) = if is_left {
        dims.split_last().map(|(last, rest)| (*last, rest))
    } else {
        dims.len().checked_sub(if dims.len() > 1 { 2 } else { 1 }).map(|i| (dims[i], &dims[i + 1..]))
    }
    .ok_or_else(|| node.malformed("multiplies a scalar"))?;
    cx.budget.take(node, &matrix.dims)?;
    let weight = if is_left { transposed(&matrix) } else { matrix };
    if weight.dims[1] != features {
        return Err(node
            .malformed(format!("multiplies {features} features by {} rows", weight.dims[1]))
            .into());
    }
    let out = weight.dims[0];
    if x.view.shape().len() == features {
        let dims = if is_left {
            rest.iter().copied().chain([out]).collect()
        } else {
            dims[..dims.len() - rest.len() - 1]
                .iter()
                .copied()
                .chain([out])
                .chain(rest.iter().copied())
                .collect()
        };
        return linear(cx, node, &x, &weight, None, dims);
    }
    let groups = x.view.groups();
    let is_over_channels = groups.is_some_and(|g| g.last().map(Vec::as_slice) == Some(&[Axis::C]));
    match is_left && is_over_channels {
        true => per_position(cx, node, &x, &weight),
        false => contract::matmul(cx, node, left, right),
    }
}

/// Einsum of one operand or two.
pub(super) fn einsum(cx: &mut Translator<'_>, node: &Node) -> Result<Encrypted, OpError> {
    let left = factor(cx, node, 0)?;
    match node.inputs.len() {
        1 => contract::einsum(cx, node, &left, None),
        2 => {
            let right = factor(cx, node, 1)?;
            contract::einsum(cx, node, &left, Some(&right))
        }
        n => {
            Err(Reason::Attribute(format!("it has {n} operands, and two are the most that are read")).into())
        }
    }
}

/// An operand, encrypted or constant.
fn factor(cx: &Translator<'_>, node: &Node, slot: usize) -> Result<Factor, OpError> {
    match cx.operand(node, slot) {
        Some(Value::Constant(constant)) => Ok(Factor::Constant(constant)),
        _ => cx.encrypted(node, slot).map(Factor::Encrypted),
    }
}

/// A dense layer over the channels of every position.
fn per_position(
    cx: &mut Translator<'_>,
    node: &Node,
    x: &Encrypted,
    weight: &Constant,
) -> Result<Encrypted, OpError> {
    let [out, channels] = weight.dims[..] else { return Err(node.malformed("needs a matrix").into()) };
    let weight = cx.weight(node, &weight.with_dims(vec![out, channels, 1, 1]))?;
    let op = Conv2d { weight, bias: None, stride: [1, 1], pads: Pads::NONE, dilation: [1, 1], groups: 1 };
    let mut dims = x.view.dims().to_vec();
    if let Some(last) = dims.last_mut() {
        *last = out;
    }
    let order = x.view.order().to_vec();
    let operand = cx.node_of(x)?;
    let mut y = cx.add(Op::Conv2d(op), &[operand], node, |shape| View::new(dims, &order, shape))?;
    y.is_exclusive = true;
    Ok(y)
}

/// The encrypted operand, the constant one, and whether the encrypted one is on the left.
fn operands(cx: &Translator<'_>, node: &Node) -> Result<(Encrypted, Constant, bool), OpError> {
    match (cx.operand(node, 0), cx.operand(node, 1)) {
        (Some(Value::Encrypted(_)), Some(Value::Constant(weight))) => {
            Ok((cx.encrypted(node, 0)?, weight, true))
        }
        (Some(Value::Constant(weight)), Some(Value::Encrypted(_))) => {
            Ok((cx.encrypted(node, 1)?, weight, false))
        }
        (Some(_), Some(_)) => Err(Reason::EncryptedMatrices.into()),
        _ => Err(node.malformed("needs two operands").into()),
    }
}

/// A layer `weight`·x (+ bias) with columns in the order ONNX flattens x.
pub(super) fn linear(
    cx: &mut Translator<'_>,
    node: &Node,
    x: &Encrypted,
    weight: &Constant,
    bias: Option<&Constant>,
    dims: Vec<usize>,
) -> Result<Encrypted, OpError> {
    let [out, features] = weight.dims[..] else { return Err(node.malformed("needs a matrix").into()) };
    if x.view.shape().len() != features || out == 0 {
        return Err(node.malformed(format!("multiplies {:?} by {:?}", x.view.dims(), weight.dims)).into());
    }
    let weight = if x.view.is_canonical() {
        weight.clone()
    } else {
        cx.budget.take(node, &[out.max(1), features])?;
        let columns: Vec<usize> = x.view.positions().collect();
        let positions = (0..out).flat_map(|row| columns.iter().map(move |column| row * features + column));
        weight.gather(vec![out, features], positions)
    };
    let weight = cx.weight(node, &weight)?;
    let bias = match bias {
        Some(bias) => Some(cx.weight(node, bias)?),
        None => None,
    };
    let operand = cx.node_of(x)?;
    let mut y = cx.add(Op::Linear(Linear { weight, bias }), &[operand], node, |_| View::vector(dims))?;
    y.is_exclusive = true;
    Ok(y)
}

fn transposed(matrix: &Constant) -> Constant {
    let [rows, columns] = [matrix.dims[0], matrix.dims[1]];
    let positions = (0..columns).flat_map(|c| (0..rows).map(move |r| r * columns + c));
    matrix.gather(vec![columns, rows], positions)
}

fn scaled(constant: &Constant, factor: f64) -> Constant {
    if factor == 1.0 {
        return constant.clone();
    }
    Constant::f64(constant.dims.clone(), constant.to_vec().into_iter().map(|v| v * factor).collect())
}

/// A bias for `out` features.
fn broadcast(node: &Node, bias: &Constant, out: usize) -> Result<Constant, OpError> {
    match bias.len() {
        n if n == out => Ok(bias.with_dims(vec![out])),
        1 if out <= crate::import::limits::MAX_VALUE_LEN => {
            Ok(bias.gather(vec![out], std::iter::repeat_n(0, out)))
        }
        n => Err(node.malformed(format!("has a bias of {n} numbers for {out} features")).into()),
    }
}

/// A constant operand of MatMul without leading ones; a vector is a column on the right, a row on the left.
fn as_matrix(constant: &Constant, is_right: bool) -> Option<Constant> {
    match constant.dims[..] {
        [n] => Some(constant.with_dims(if is_right { vec![n, 1] } else { vec![1, n] })),
        [.., rows, columns] if constant.len() == rows * columns => {
            Some(constant.with_dims(vec![rows, columns]))
        }
        _ => None,
    }
}
