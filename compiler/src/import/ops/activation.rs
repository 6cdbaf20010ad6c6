//! Activations that are no polynomials: replaced on request, refused otherwise.

use std::collections::HashMap;

use crate::fit::fit;
use crate::import::coefficient::Coefficient;
use crate::import::error::Malformed;
use crate::import::function::Kind;
use crate::import::node::Node;
use crate::import::reason::Reason;
use crate::import::translate::Translator;
use crate::import::value::{Encrypted, OpError};
use crate::import::{Note, Replacement};

/// The activation a node is, if it resembles ReLU.
pub(super) fn function(node: &Node) -> Result<Option<Kind>, Malformed> {
    Ok(Kind::of(node, &HashMap::new())?.filter(Kind::is_rectifier))
}

/// Replaces an activation if the caller asked for it, or refuses it and goes on.
pub(super) fn replace(cx: &mut Translator<'_>, node: &Node) -> Result<Encrypted, OpError> {
    let x = cx.encrypted(node, 0)?;
    match function(node)? {
        Some(kind) => replaced(cx, node, x, &kind, kind.name().unwrap_or("this function")),
        None => Err(Reason::Operator.into()),
    }
}

fn replaced(
    cx: &mut Translator<'_>,
    node: &Node,
    x: Encrypted,
    kind: &Kind,
    name: &'static str,
) -> Result<Encrypted, OpError> {
    let Some(spec) = cx.options.relu else {
        cx.refuse(node, Some(x.view.dims()), Reason::Activation(name));
        return Ok(x);
    };
    let fit = fit(spec, |x| kind.eval(&[x])).map_err(Reason::Fit)?;
    let x = cx.committed(x)?;
    let mut result = x.polynomial.scaled(&Coefficient::ZERO);
    for c in fit.coefficients().into_iter().rev() {
        let raised = result.times(&x.polynomial).ok_or_else(|| node.malformed("has too high a degree"))?;
        result = raised.shifted(&Coefficient::Scalar(c));
    }
    let replacement = Replacement { node: node.name.clone(), function: name, spec, fit };
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
        return replaced(cx, node, x, &Kind::Clip { min, max }, "clipped ReLU");
    }
    cx.refuse(node, Some(x.view.dims()), Reason::Clip { min, max });
    Ok(x)
}
