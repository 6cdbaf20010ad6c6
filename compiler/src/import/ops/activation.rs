//! Activations that are no polynomials: replaced on request, dropped behind the result, refused otherwise.

use crate::fit::fit;
use crate::import::coefficient::Coefficient;
use crate::import::error::Malformed;
use crate::import::node::Node;
use crate::import::reason::Reason;
use crate::import::translate::Translator;
use crate::import::value::{Encrypted, OpError, Scores, Value};
use crate::import::{Note, Replacement};

/// A scalar activation that resembles ReLU.
pub(super) struct Activation {
    /// How messages call it.
    pub(super) name: &'static str,
    f: Box<dyn Fn(f64) -> f64>,
}

/// The activation a node is, if it resembles ReLU.
pub(super) fn function(node: &Node) -> Result<Option<Activation>, Malformed> {
    let make = |name, f: Box<dyn Fn(f64) -> f64>| Ok(Some(Activation { name, f }));
    match node.op.as_str() {
        "Relu" => make("ReLU", Box::new(|x| x.max(0.0))),
        "LeakyRelu" => {
            let slope = node.float("alpha", 0.01)?;
            make("leaky ReLU", Box::new(move |x| if x < 0.0 { slope * x } else { x }))
        }
        "ThresholdedRelu" => {
            let threshold = node.float("alpha", 1.0)?;
            make("thresholded ReLU", Box::new(move |x| if x > threshold { x } else { 0.0 }))
        }
        "Elu" => {
            let alpha = node.float("alpha", 1.0)?;
            make("ELU", Box::new(move |x| if x < 0.0 { alpha * x.exp_m1() } else { x }))
        }
        "Softplus" => make("softplus", Box::new(|x| x.exp().ln_1p())),
        "HardSwish" => make("hard swish", Box::new(|x| x * (x / 6.0 + 0.5).clamp(0.0, 1.0))),
        "Gelu" => {
            let inner = (2.0 / std::f64::consts::PI).sqrt();
            make("GELU", Box::new(move |x| 0.5 * x * (1.0 + (inner * (x + 0.044_715 * x.powi(3))).tanh())))
        }
        _ => Ok(None),
    }
}

/// Replaces an activation if the caller asked for it, or refuses it and goes on.
pub(super) fn replace(cx: &mut Translator<'_>, node: &Node) -> Result<Encrypted, OpError> {
    let x = cx.encrypted(node, 0)?;
    match function(node)? {
        Some(activation) => replaced(cx, node, x, &activation),
        None => Err(Reason::Operator.into()),
    }
}

fn replaced(
    cx: &mut Translator<'_>,
    node: &Node,
    x: Encrypted,
    activation: &Activation,
) -> Result<Encrypted, OpError> {
    let Some(spec) = cx.options.relu else {
        cx.refuse(node, Some(x.view.dims()), Reason::Activation(activation.name));
        return Ok(x);
    };
    let fit = fit(spec, &activation.f).map_err(Reason::Fit)?;
    let x = cx.committed(x)?;
    let mut result = x.polynomial.scaled(&Coefficient::ZERO);
    for c in fit.coefficients().into_iter().rev() {
        let raised = result.times(&x.polynomial).ok_or_else(|| node.malformed("has too high a degree"))?;
        result = raised.shifted(&Coefficient::Scalar(c));
    }
    let replacement = Replacement { node: node.name.clone(), function: activation.name, spec, fit };
    cx.notes.push(Note::Replaced(replacement));
    Ok(x.with_polynomial(result))
}

/// Clip without limits is the identity; with a lower limit of zero it resembles ReLU.
pub(super) fn clip(cx: &mut Translator<'_>, node: &Node) -> Result<Encrypted, OpError> {
    let x = cx.encrypted(node, 0)?;
    let mut limits = [node.float("min", f32::MIN)?, node.float("max", f32::MAX)?];
    for (slot, limit) in limits.iter_mut().enumerate() {
        if let Some(constant) = cx.optional_constant(node, slot + 1, "limit")? {
            let value = cx.uniform(node, &constant)?;
            *limit = value.ok_or_else(|| node.malformed("has no single limit"))?;
        }
    }
    let [min, max] = limits;
    if min <= f64::from(f32::MIN) && max >= f64::from(f32::MAX) {
        return Ok(x);
    }
    if min == 0.0 && cx.options.relu.is_some() {
        let activation = Activation { name: "clipped ReLU", f: Box::new(move |x| x.max(0.0).min(max)) };
        return replaced(cx, node, x, &activation);
    }
    cx.refuse(node, Some(x.view.dims()), Reason::Clip { min, max });
    Ok(x)
}

/// Softmax and its like behind the network: the client computes them from the scores.
pub(super) fn postprocess(cx: &mut Translator<'_>, node: &Node) -> Result<Vec<Value>, OpError> {
    let value = cx.encrypted(node, 0)?;
    let name = node.input(0).unwrap_or_default().to_owned();
    let scores = Value::Postprocessed(Scores { value, name, node: node.name.clone(), op: node.op.clone() });
    Ok(vec![scores; node.outputs.len().max(1)])
}
