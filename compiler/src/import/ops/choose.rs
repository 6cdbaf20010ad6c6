//! Where by a constant condition: one operand times a mask of ones and zeros, plus the other times what is left of it.

use super::arithmetic::{sum, with_constant};
use super::expand::{broadcast, expanded};
use crate::import::constant::Constant;
use crate::import::fold;
use crate::import::node::Node;
use crate::import::reason::Reason;
use crate::import::translate::Translator;
use crate::import::value::{Encrypted, OpError, Value};

/// Where: the numbers of the first operand where the condition holds, of the second elsewhere.
pub(super) fn choose(cx: &mut Translator<'_>, node: &Node) -> Result<Encrypted, OpError> {
    let Some(Value::Constant(condition)) = cx.operand(node, 0) else { return Err(Reason::Comparison.into()) };
    let (left, right) = (Side::of(cx, node, 1)?, Side::of(cx, node, 2)?);
    let dims = broadcast(left.dims(), right.dims()).and_then(|dims| broadcast(&dims, &condition.dims));
    let dims = dims.ok_or_else(|| node.malformed("has operands that do not broadcast"))?;
    cx.budget.take(node, &condition.dims)?;
    let mask = |is_left: bool| {
        let values = condition.to_vec().iter().map(|&v| f64::from(u8::from((v != 0.0) == is_left))).collect();
        Constant::f64(condition.dims.clone(), values)
    };
    let masked = |cx: &mut Translator<'_>, x: Encrypted, is_left: bool| {
        let x = expanded(cx, node, x, &dims)?;
        with_constant(cx, node, "Mul", x, &mask(is_left))
    };
    let zero = || Some(Constant::scalar(0.0));
    let (x, rest) = match (left, right) {
        (Side::Encrypted(x), Side::Encrypted(y)) => {
            let (x, y) = (masked(cx, x, true)?, masked(cx, y, false)?);
            return sum(cx, node, x, y);
        }
        (Side::Encrypted(x), Side::Constant(c)) => (masked(cx, x, true)?, [zero(), Some(c)]),
        (Side::Constant(c), Side::Encrypted(y)) => (masked(cx, y, false)?, [Some(c), zero()]),
        (Side::Constant(_), Side::Constant(_)) => return Err(Reason::Comparison.into()),
    };
    let [left, right] = rest;
    match &fold::fold(node, &[Some(condition), left, right], &mut cx.budget)?[..] {
        [Value::Constant(rest)] => with_constant(cx, node, "Add", x, rest),
        _ => Err(Reason::Operator.into()),
    }
}

/// One of the two that are chosen from.
enum Side {
    Encrypted(Encrypted),
    Constant(Constant),
}

impl Side {
    fn of(cx: &Translator<'_>, node: &Node, slot: usize) -> Result<Self, OpError> {
        match cx.operand(node, slot) {
            Some(Value::Constant(constant)) => Ok(Self::Constant(constant)),
            _ => cx.encrypted(node, slot).map(Self::Encrypted),
        }
    }

    fn dims(&self) -> &[usize] {
        match self {
            Self::Encrypted(x) => x.view.dims(),
            Self::Constant(c) => &c.dims,
        }
    }
}
