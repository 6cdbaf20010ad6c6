//! Batch normalization and the feature scaling of scikit-learn.

use fhec_ir::{Op, ValueRange};

use crate::import::coefficient::Coefficient;
use crate::import::constant::Constant;
use crate::import::node::Node;
use crate::import::reason::Reason;
use crate::import::translate::Translator;
use crate::import::value::{Encrypted, OpError};
use crate::import::view::Axis;

/// γ·(x - μ)/√(σ² + ε) + β as b1·x + b0 with b1 = γ/√(σ² + ε), b0 = β - b1·μ.
pub(super) fn batch_norm(cx: &mut Translator<'_>, node: &Node) -> Result<Encrypted, OpError> {
    let x = cx.encrypted(node, 0)?;
    if node.int("training_mode", 0)? != 0 {
        return Err(Reason::TrainingMode.into());
    }
    let channels = x.view.shape().c;
    let axes = x.view.dimension_axes().ok_or(Reason::Rearranges("whole channels"))?;
    if axes.get(1) != Some(&Some(Axis::C)) {
        return Err(Reason::WrongAxis("an axis that is not the channels").into());
    }
    let mut parts = Vec::with_capacity(4);
    for (slot, what) in [(1, "scale"), (2, "bias"), (3, "mean"), (4, "variance")] {
        let part = cx.constant(node, slot, what)?;
        if part.len() != channels {
            return Err(node
                .malformed(format!("has {} numbers of {what} for {channels} channels", part.len()))
                .into());
        }
        parts.push(part);
    }
    cx.budget.take(node, &[8, channels])?;
    let epsilon = node.float("epsilon", 1e-5)?;
    let scale: Vec<f64> =
        (0..channels).map(|c| parts[0].get(c) / (parts[3].get(c) + epsilon).sqrt()).collect();
    let shift: Vec<f64> = (0..channels).map(|c| parts[1].get(c) - scale[c] * parts[2].get(c)).collect();
    if !parts.iter().all(|p| p.to_vec().iter().all(|v| v.is_finite())) {
        return Err(node.malformed("has statistics that are not finite numbers").into());
    }
    let scale = cx.weight(node, &Constant::f64(vec![channels], scale))?;
    let shift = cx.weight(node, &Constant::f64(vec![channels], shift))?;
    let operand = cx.node_of(&x)?;
    let view = x.view.clone();
    let y = cx.add(Op::BatchNorm { scale, shift }, &[operand], node, |_| view)?;
    if let Some(id) = y.polynomial.as_source() {
        // In training the result had mean β and deviation γ, so this is where nearly all of it lies.
        let bound =
            |sign: f64| (0..channels).map(|c| parts[1].get(c) + sign * 4.0 * parts[0].get(c).abs()).collect();
        let range = ValueRange { lo: bound(-1.0), hi: bound(1.0) };
        cx.emitter.graph.node_mut(id).range = Some(range);
    }
    Ok(y)
}

/// (x - offset)·scale per feature.
pub(super) fn scaler(cx: &mut Translator<'_>, node: &Node) -> Result<Encrypted, OpError> {
    let x = cx.encrypted(node, 0)?;
    let mut part = |name: &str, default: f32| -> Result<Coefficient, OpError> {
        let values = node.floats(name)?.unwrap_or_default();
        let values = if values.is_empty() {
            vec![f64::from(default)]
        } else {
            values.iter().map(|&v| f64::from(v)).collect()
        };
        let constant = Constant::f64(vec![values.len()], values);
        let coefficient = cx.coefficient(node, &constant, &x.view)?;
        coefficient.ok_or_else(|| node.malformed(format!("has a {name} of another length")).into())
    };
    let (offset, scale) = (part("offset", 0.0)?, part("scale", 1.0)?);
    let polynomial = x.polynomial.shifted(&offset.map(|v| -v)).scaled(&scale);
    Ok(x.with_polynomial(polynomial))
}
