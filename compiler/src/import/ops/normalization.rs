//! Batch normalization and the feature scaling of scikit-learn.

use fhec_ir::{Op, ValueRange};

use super::linear_map;
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
    let dims = x.view.dims().to_vec();
    let Some(&channels) = dims.get(1) else { return Err(Reason::Rank(dims.len()).into()) };
    let is_plain = x.view.dimension_axes().is_some_and(|axes| axes[1] == Some(Axis::C));
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
    if !is_plain {
        // Its channels are rows, a part of the channels, or something else here.
        let at = |position: usize| linear_map::unflatten(position, &dims)[1];
        let along: Vec<usize> = [1, channels].into_iter().chain(dims.iter().skip(2).map(|_| 1)).collect();
        let of = |values: &[f64]| Constant::f64(along.clone(), values.to_vec());
        let factor = cx.coefficient(node, &of(&scale), &x.view)?;
        let addend = cx.coefficient(node, &of(&shift), &x.view)?;
        return match (factor, addend) {
            (Some(Coefficient::Full(_)), _) => {
                let bias = (0..x.view.shape().len()).map(|position| shift[at(position)]).collect();
                linear_map::scaled(cx, node, x, |position| scale[at(position)], Some(bias))
            }
            (Some(factor), Some(addend)) => {
                let polynomial = x.polynomial.scaled(&factor).shifted(&addend);
                Ok(cx.committed(x.with_polynomial(polynomial))?)
            }
            _ => Err(node.malformed("has statistics of another length than its operand").into()),
        };
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
