//! Element-wise arithmetic: sums, products and powers of encrypted values and constants.

use fhec_ir::{Conv2d, Linear, Op, Tensor};

use super::expand::{broadcast as broadcast_dims, expanded};
use super::linear_map;
use crate::import::coefficient::Coefficient;
use crate::import::constant::Constant;
use crate::import::limits::MAX_EXPONENT;
use crate::import::node::Node;
use crate::import::polynomial::Polynomial;
use crate::import::reason::Reason;
use crate::import::translate::Translator;
use crate::import::value::{Encrypted, OpError, Value};
use crate::import::view::View;

/// Add, Sub, Mul, Div of two operands; Sum and Mean of any number.
pub(super) fn combine(cx: &mut Translator<'_>, node: &Node) -> Result<Encrypted, OpError> {
    let n = node.inputs.len();
    let is_variadic = matches!(node.op.as_str(), "Sum" | "Mean");
    if (n != 2 && !is_variadic) || n == 0 {
        return Err(node.malformed(format!("has {n} operands")).into());
    }
    let mut result = required(cx, node, 0)?;
    for slot in 1..n {
        let operand = required(cx, node, slot)?;
        let op = if is_variadic { "Add" } else { node.op.as_str() };
        result = binary(cx, node, op, result, operand)?;
    }
    match result {
        Value::Encrypted(x) if node.op == "Mean" => {
            let polynomial = x.polynomial.scaled(&Coefficient::Scalar(1.0 / n as f64));
            Ok(x.with_polynomial(polynomial))
        }
        Value::Encrypted(x) => Ok(x),
        _ => Err(Reason::Operator.into()),
    }
}

/// -x.
pub(super) fn negate(cx: &mut Translator<'_>, node: &Node) -> Result<Encrypted, OpError> {
    let x = cx.encrypted(node, 0)?;
    cx.charge(node, x.polynomial.len())?;
    Ok(x.with_polynomial(x.polynomial.scaled(&Coefficient::Scalar(-1.0))))
}

/// x to a small integer power.
pub(super) fn power(cx: &mut Translator<'_>, node: &Node) -> Result<Encrypted, OpError> {
    let exponent = cx.constant(node, 1, "exponent")?;
    let x = cx.encrypted(node, 0)?;
    let value = cx.uniform(node, &exponent)?.ok_or(Reason::Attribute("its exponents differ".into()))?;
    if value.fract() != 0.0 || !(0.0..=f64::from(MAX_EXPONENT)).contains(&value) {
        return Err(Reason::Exponent(value).into());
    }
    power_of(cx, node, &x, value as u32)
}

/// x times itself so many times.
pub(super) fn power_of(
    cx: &mut Translator<'_>,
    node: &Node,
    x: &Encrypted,
    exponent: u32,
) -> Result<Encrypted, OpError> {
    let mut result: Option<Encrypted> = None;
    for _ in 0..exponent {
        result = Some(match result {
            None => x.clone(),
            Some(power) => product(cx, node, power, x.clone())?,
        });
    }
    Ok(result.unwrap_or_else(|| {
        let one = x.polynomial.scaled(&Coefficient::ZERO).shifted(&Coefficient::ONE);
        x.with_polynomial(one)
    }))
}

fn required(cx: &Translator<'_>, node: &Node, slot: usize) -> Result<Value, OpError> {
    match cx.operand(node, slot) {
        Some(Value::Encrypted(_)) => cx.encrypted(node, slot).map(Value::Encrypted),
        Some(value) => Ok(value),
        None => Err(node.malformed(format!("has no operand {slot}")).into()),
    }
}

fn binary(
    cx: &mut Translator<'_>,
    node: &Node,
    op: &str,
    left: Value,
    right: Value,
) -> Result<Value, OpError> {
    let value = match (left, right) {
        (Value::Encrypted(x), Value::Constant(c)) => with_constant(cx, node, op, x, &c)?,
        (Value::Constant(c), Value::Encrypted(x)) => match op {
            "Sub" => {
                let negative = x.with_polynomial(x.polynomial.scaled(&Coefficient::Scalar(-1.0)));
                with_constant(cx, node, "Add", negative, &c)?
            }
            "Div" => return Err(Reason::DivisionByEncrypted.into()),
            _ => with_constant(cx, node, op, x, &c)?,
        },
        (Value::Encrypted(x), Value::Encrypted(y)) => match op {
            "Add" => sum(cx, node, x, y)?,
            "Sub" => {
                let negative = y.with_polynomial(y.polynomial.scaled(&Coefficient::Scalar(-1.0)));
                sum(cx, node, x, negative)?
            }
            "Mul" => product(cx, node, x, y)?,
            _ => return Err(Reason::DivisionByEncrypted.into()),
        },
        (Value::Constant(a), Value::Constant(b)) => {
            let sum = crate::import::fold::add(node, &a, &b, &mut cx.budget)?;
            return Ok(Value::Constant(sum));
        }
        _ => return Err(Reason::Operator.into()),
    };
    Ok(Value::Encrypted(value))
}

/// x with a constant added, taken away, multiplied or divided by.
pub(super) fn with_constant(
    cx: &mut Translator<'_>,
    node: &Node,
    op: &str,
    x: Encrypted,
    constant: &Constant,
) -> Result<Encrypted, OpError> {
    let x = match broadcast_dims(x.view.dims(), &constant.dims) {
        Some(dims) if dims.iter().product::<usize>() > x.view.shape().len() => expanded(cx, node, x, &dims)?,
        _ => x,
    };
    let (mut x, mut coefficient) = broadcast(cx, node, x, constant)?;
    let multiplies = matches!(op, "Mul" | "Div");
    if multiplies && matches!(coefficient, Coefficient::Full(_)) && x.view.is_flat() {
        // One factor per feature of a flattened image is one per channel of a vector.
        x = as_vector(cx, x)?;
        (x, coefficient) = broadcast(cx, node, x, constant)?;
    }
    let is_positional = matches!(coefficient, Coefficient::Full(_));
    if let (true, Coefficient::Full(values)) = (multiplies, &coefficient) {
        if op == "Div" && values.contains(&0.0) {
            return Err(node.malformed("divides by zero").into());
        }
        let mut factors = vec![0.0; values.len()];
        for (position, &value) in x.view.positions().zip(values) {
            factors[position] = if op == "Div" { 1.0 / value } else { value };
        }
        return linear_map::scaled(cx, node, x, |position| factors[position], None);
    }
    cx.charge(node, x.polynomial.n_terms().saturating_mul(coefficient.values().len()))?;
    let polynomial = match op {
        "Mul" => x.polynomial.scaled(&coefficient),
        "Div" if coefficient.values().contains(&0.0) => return Err(node.malformed("divides by zero").into()),
        "Div" => x.polynomial.scaled(&coefficient.map(|v| 1.0 / v)),
        _ => {
            let addend = if op == "Sub" { coefficient.map(|v| -v) } else { coefficient };
            if x.is_exclusive && absorb(cx, node, &x, &addend) {
                return Ok(x);
            }
            let polynomial = x.polynomial.shifted(&addend);
            if x.is_exclusive && x.polynomial.is_multiple_per_channel() {
                // A layer's result times a constant plus a constant is a batch normalization.
                return Ok(cx.committed(x.with_polynomial(polynomial))?);
            }
            polynomial
        }
    };
    if is_positional {
        return Ok(cx.committed(x.with_polynomial(polynomial))?);
    }
    // A factor keeps the node open, so that a normalization spelled as Mul and Add is seen.
    let is_exclusive = multiplies && x.is_exclusive;
    Ok(Encrypted { is_exclusive, ..x.with_polynomial(polynomial) })
}

/// Makes a constant the bias of the layer `x` is the plain result of, if the layer has none. Returns whether it did.
///
/// A constant that is the same for all channels is not taken for a bias: it is part of a polynomial like (x + 1)².
fn absorb(cx: &mut Translator<'_>, node: &Node, x: &Encrypted, addend: &Coefficient) -> bool {
    let Some(id) = x.polynomial.as_source() else { return false };
    let graph = &mut cx.emitter.graph;
    let channels = graph.shape(id).c;
    let is_bias = matches!(addend, Coefficient::Channel(_)) || channels == 1;
    if !is_bias || !graph.uses(id).is_empty() || !addend.values().iter().all(|v| v.is_finite()) {
        return false;
    }
    let tensor = Tensor::vector(addend.values());
    match graph.op(id).clone() {
        Op::Conv2d(conv) if conv.bias.is_none() => {
            let bias = Some(graph.add_tensor(tensor));
            graph.node_mut(id).op = Op::Conv2d(Conv2d { bias, ..conv });
        }
        Op::Linear(linear) if linear.bias.is_none() => {
            let bias = Some(graph.add_tensor(tensor));
            graph.node_mut(id).op = Op::Linear(Linear { bias, ..linear });
        }
        _ => return false,
    }
    graph.node_mut(id).origins.push(node.name.clone());
    true
}

/// The value with as many dimensions as ONNX broadcasting gives it, and the constant as its coefficient.
fn broadcast(
    cx: &mut Translator<'_>,
    node: &Node,
    x: Encrypted,
    constant: &Constant,
) -> Result<(Encrypted, Coefficient), OpError> {
    let missing = constant.dims.len().saturating_sub(x.view.dims().len());
    let dims = std::iter::repeat_n(1, missing).chain(x.view.dims().iter().copied()).collect();
    let view = x.view.reshape(dims).ok_or_else(|| node.malformed("has operands that do not broadcast"))?;
    let coefficient = cx.coefficient(node, constant, &view)?;
    let differ = || Reason::Broadcast { left: view.dims().to_vec(), right: constant.dims.clone() };
    let coefficient = coefficient.ok_or_else(differ)?;
    // A uniform constant has one coefficient, but must not enlarge the value either.
    let skip = view.dims().len() - constant.dims.len();
    if constant.dims.iter().zip(&view.dims()[skip..]).any(|(&c, &v)| c > 1 && c != v) {
        return Err(differ().into());
    }
    Ok((x.with_view(view), coefficient))
}

/// x + y.
pub(super) fn sum(
    cx: &mut Translator<'_>,
    node: &Node,
    x: Encrypted,
    y: Encrypted,
) -> Result<Encrypted, OpError> {
    let (x, y) = aligned(cx, node, x, y)?;
    cx.charge(node, x.polynomial.len() + y.polynomial.len())?;
    if let Some(polynomial) = x.polynomial.plus(&y.polynomial) {
        return Ok(x.with_polynomial(polynomial));
    }
    let (x, y) = (cx.committed(x)?, cx.committed(y)?);
    finish(node, &x, x.polynomial.plus(&y.polynomial))
}

/// x · y.
pub(super) fn product(
    cx: &mut Translator<'_>,
    node: &Node,
    x: Encrypted,
    y: Encrypted,
) -> Result<Encrypted, OpError> {
    let (x, y) = aligned(cx, node, x, y)?;
    cx.charge(node, x.polynomial.product_len(&y.polynomial))?;
    // A sum of separate polynomials is a value of its own; expanding its square would only raise the degree.
    let is_entangled = |p: &Polynomial| p.sources().len() == 1 || p.degree() < 2 || !p.is_separable();
    if is_entangled(&x.polynomial)
        && is_entangled(&y.polynomial)
        && let Some(polynomial) = x.polynomial.times(&y.polynomial)
    {
        return Ok(x.with_polynomial(polynomial));
    }
    let is_square = x.polynomial == y.polynomial;
    let x = cx.committed(x)?;
    let y = if is_square { x.clone() } else { cx.committed(y)? };
    finish(node, &x, x.polynomial.times(&y.polynomial))
}

fn finish(node: &Node, x: &Encrypted, polynomial: Option<Polynomial>) -> Result<Encrypted, OpError> {
    let polynomial = polynomial.ok_or_else(|| node.malformed("combines too many values"))?;
    Ok(x.with_polynomial(polynomial))
}

/// Two values of one shape whose numbers lie in one order; the smaller one is repeated as ONNX broadcasts it.
fn aligned(
    cx: &mut Translator<'_>,
    node: &Node,
    x: Encrypted,
    y: Encrypted,
) -> Result<(Encrypted, Encrypted), OpError> {
    let (left, right) = (x.view.dims().to_vec(), y.view.dims().to_vec());
    let dims = broadcast_dims(&left, &right).ok_or(Reason::Broadcast { left, right })?;
    let (mut x, mut y) = (expanded(cx, node, x, &dims)?, expanded(cx, node, y, &dims)?);
    if !x.view.is_like(&y.view) {
        // One of them came through a map, or was flattened: an image if ONNX sees one, a vector otherwise.
        (x, y) = match x.view.is_image() || y.view.is_image() {
            true => (linear_map::image(cx, node, x)?, linear_map::image(cx, node, y)?),
            false => (linear_map::vector(cx, node, x)?, linear_map::vector(cx, node, y)?),
        };
    }
    Ok((x, y))
}

/// A flattened image as a vector of the graph.
pub(super) fn as_vector(cx: &mut Translator<'_>, x: Encrypted) -> Result<Encrypted, Reason> {
    if x.view.shape().is_vector() {
        return Ok(x);
    }
    if !x.view.is_canonical() {
        return Err(Reason::Rearranges("flattening with channels last"));
    }
    let operand = cx.node_of(&x)?;
    let id = cx.emitter.add(Op::Flatten, &[operand], &x.origin)?;
    let view = View::vector(x.view.dims().to_vec());
    Ok(Encrypted::new(Polynomial::source(id, view.shape()), view, &x.origin))
}
