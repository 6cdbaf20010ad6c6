//! Operators that only move numbers: what they do to positions they do to an encrypted value.
//!
//! Such an operator is linear in its data. One operand at a time holds its positions, counted from one, and other data are
//! zeros: what comes out of constant folding says which number goes where, and zero is a gap. What constants lead to beside
//! zeros is added.

use super::linear_map::{LinearMap, vector};
use crate::import::constant::{Constant, Data};
use crate::import::fold;
use crate::import::node::Node;
use crate::import::reason::Reason;
use crate::import::translate::Translator;
use crate::import::value::{Encrypted, OpError, Value};

/// An operator whose first operand, and the one at `more`, are data; all others are settings.
pub(super) fn moved(cx: &mut Translator<'_>, node: &Node, more: Option<usize>) -> Result<Encrypted, OpError> {
    let mut operands = Vec::with_capacity(node.inputs.len());
    for slot in 0..node.inputs.len() {
        let is_data = slot == 0 || Some(slot) == more;
        operands.push(match cx.operand(node, slot) {
            Some(Value::Encrypted(_)) if is_data => {
                let x = cx.encrypted(node, slot)?;
                let x = cx.committed(x)?;
                // Operands of a sum have one shape: all are vectors before they are placed.
                Operand::Encrypted(if more.is_some() { vector(cx, node, x)? } else { x })
            }
            Some(Value::Constant(constant)) if is_data => Operand::Data(constant),
            Some(Value::Constant(constant)) => Operand::Setting(Some(constant)),
            None => Operand::Setting(None),
            Some(_) => return Err(Reason::NotConstant("list of places").into()),
        });
    }
    let mut sum: Option<Encrypted> = None;
    for slot in 0..operands.len() {
        let Operand::Encrypted(x) = &operands[slot] else { continue };
        let part = part(cx, node, &operands, slot, x, sum.is_none())?;
        sum = Some(match sum {
            None => part,
            Some(before) => super::arithmetic::sum(cx, node, before, part)?,
        });
    }
    sum.ok_or_else(|| Reason::NotConstant("list of places").into())
}

enum Operand {
    Encrypted(Encrypted),
    Data(Constant),
    Setting(Option<Constant>),
}

/// What of the result comes from one operand, and from constants where they are asked for.
fn part(
    cx: &mut Translator<'_>,
    node: &Node,
    operands: &[Operand],
    slot: usize,
    x: &Encrypted,
    with_constants: bool,
) -> Result<Encrypted, OpError> {
    let alone = |cx: &mut Translator<'_>, own: fn(i64) -> i64| {
        folded(cx, node, operands, |at, dims, _| numbers(dims, if at == slot { own } else { |_| 0 }))
    };
    let places = alone(cx, |i| i + 1)?;
    // Positions say nothing where an operator adds two of them.
    if slot > 0 && alone(cx, |_| 1)?.to_vec().iter().any(|&n| n > 1.0) {
        return Err(Reason::Attribute("it adds several numbers at one place".into()).into());
    }
    let mut map = LinearMap::new(cx, node, x, places.dims.clone())?;
    for out in 0..places.len() {
        let place = places.get(out) as usize;
        if place > 0 {
            map.add(out, place - 1, 1.0);
        }
    }
    let has_constants = with_constants && operands.iter().any(|o| matches!(o, Operand::Data(_)));
    let bias = match has_constants {
        true => {
            let constants = folded(cx, node, operands, |_, dims, constant| {
                constant.cloned().unwrap_or_else(|| numbers(dims, |_| 0))
            })?;
            Some(constants.to_vec()).filter(|bias| bias.iter().any(|v| *v != 0.0))
        }
        false => None,
    };
    map.apply(cx, node, x, bias)
}

/// The result with other tensors in place of the data.
fn folded(
    cx: &mut Translator<'_>,
    node: &Node,
    operands: &[Operand],
    data: impl Fn(usize, &[usize], Option<&Constant>) -> Constant,
) -> Result<Constant, OpError> {
    let mut given = Vec::with_capacity(operands.len());
    for (slot, operand) in operands.iter().enumerate() {
        given.push(match operand {
            Operand::Encrypted(x) => {
                cx.budget.take(node, x.view.dims())?;
                Some(data(slot, x.view.dims(), None))
            }
            Operand::Data(constant) => {
                cx.budget.take(node, &constant.dims)?;
                Some(data(slot, &constant.dims, Some(constant)))
            }
            Operand::Setting(constant) => constant.clone(),
        });
    }
    match &fold::fold(node, &given, &mut cx.budget)?[..] {
        [Value::Constant(found)] => Ok(found.clone()),
        _ => Err(Reason::Operator.into()),
    }
}

/// Integers by their position.
fn numbers(dims: &[usize], number: impl Fn(i64) -> i64) -> Constant {
    let n = dims.iter().product::<usize>() as i64;
    Constant { dims: dims.to_vec(), data: Data::Int((0..n).map(number).collect()) }
}
