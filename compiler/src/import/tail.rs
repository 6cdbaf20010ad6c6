//! What a client computes from the scores: operators behind the network become the steps of a tail.
//!
//! A softmax, an argmax and what follows them belong to the client, who applies them to decrypted scores. A sigmoid does if
//! nothing behind it belongs to the network. Re-arrangements pass through it to the scores, and 1 - sigmoid(x) is
//! sigmoid(-x), so that class probabilities put together from sigmoids are one sigmoid of joined scores.

use std::collections::HashSet;

use fhe_bytecode::TailStep;

use super::coefficient::Coefficient;
use super::constant::Constant;
use super::input::reshaped;
use super::limits::written;
use super::node::Node;
use super::ops;
use super::translate::Translator;
use super::value::{Encrypted, OpError, Scores, Value};

/// Operators that a client can apply, with words for it or without.
fn is_for_client(op: &str) -> bool {
    is_rearrangement(op)
        || matches!(
            op,
            "Softmax"
                | "LogSoftmax"
                | "Hardmax"
                | "ArgMax"
                | "TopK"
                | "Sub"
                | "ZipMap"
                | "LabelEncoder"
                | "Normalizer"
                | "LpNormalization"
                | "Binarizer"
                | "Greater"
                | "GreaterOrEqual"
                | "Less"
                | "LessOrEqual"
        )
}

/// Operators that put numbers elsewhere and change none.
fn is_rearrangement(op: &str) -> bool {
    matches!(
        op,
        "Identity"
            | "Cast"
            | "Reshape"
            | "Squeeze"
            | "Unsqueeze"
            | "Flatten"
            | "Transpose"
            | "Slice"
            | "Split"
            | "Concat"
            | "Gather"
            | "ArrayFeatureExtractor"
    )
}

/// Whether everything that depends on a node's result is for the client.
pub(super) fn is_behind(cx: &Translator<'_>, node: &Node) -> bool {
    let mut reached: HashSet<&str> = node.outputs.iter().map(String::as_str).collect();
    for later in &cx.model.nodes {
        if later.inputs.iter().any(|name| reached.contains(name.as_str())) {
            if !is_for_client(&later.op) {
                return false;
            }
            reached.extend(later.outputs.iter().map(String::as_str));
        }
    }
    true
}

/// A tail begins at a node whose operand is encrypted.
pub(super) fn begin(cx: &mut Translator<'_>, node: &Node) -> Result<Vec<Value>, OpError> {
    let value = cx.encrypted(node, 0)?;
    let value = cx.committed(value)?;
    let name = node.input(0).unwrap_or_default();
    next(cx, node, &Scores::new(node, value, name))
}

/// The results of a node of which some operands are a client's; `None` if there are none.
pub(super) fn results(
    cx: &mut Translator<'_>,
    node: &Node,
    operands: &[Value],
) -> Result<Option<Vec<Value>>, OpError> {
    let scores: Vec<&Scores> = operands.iter().filter_map(of_client).collect();
    let Some(&first) = scores.first() else { return Ok(None) };
    let is_last = operands.iter().all(|v| !matches!(v, Value::Encrypted(_) | Value::Unknown));
    if is_last && is_for_client(&node.op) {
        return match through(cx, node, &scores)? {
            Some(values) => Ok(Some(values)),
            None => next(cx, node, first).map(Some),
        };
    }
    cx.refuse_inner(first);
    Ok(Some(vec![Value::Encrypted(first.value.clone())]))
}

fn of_client(value: &Value) -> Option<&Scores> {
    match value {
        Value::Postprocessed(scores) => Some(scores),
        _ => None,
    }
}

impl Scores {
    /// Scores that a client does something with, beginning at `node`.
    pub(super) fn new(node: &Node, value: Encrypted, name: &str) -> Self {
        let dims = value.view.dims().to_vec();
        let (node, op) = (node.name.clone(), node.op.clone());
        Scores { value, name: name.to_owned(), node, op, steps: Some(Vec::new()), dims, classes: Vec::new() }
    }

    /// The same with one step more.
    pub(super) fn then(mut self, step: TailStep) -> Self {
        self.steps.iter_mut().for_each(|steps| steps.push(step));
        self
    }

    /// The same with names for classes.
    pub(super) fn named(mut self, classes: Vec<String>) -> Self {
        self.classes = classes;
        self
    }

    /// The index of the best class along the last dimension.
    pub(super) fn best(mut self) -> Self {
        let length = written(self.dims.pop().unwrap_or(1));
        self.then(TailStep::ArgMax { length, inner: 1 })
    }

    fn is_index(&self) -> bool {
        matches!(self.steps.as_deref(), Some([.., TailStep::ArgMax { .. }]))
    }
}

/// A re-arrangement of sigmoids is the sigmoid of re-arranged scores.
fn through(cx: &mut Translator<'_>, node: &Node, scores: &[&Scores]) -> Result<Option<Vec<Value>>, OpError> {
    let is_element_wise = |s: &&Scores| s.steps.as_deref() == Some(&[TailStep::Sigmoid {}]);
    if !scores.iter().all(is_element_wise) {
        return Ok(None);
    }
    let first = scores[0];
    let again = |x: Encrypted| {
        let scores = Scores::new(node, x, &first.name).then(TailStep::Sigmoid {});
        Value::Postprocessed(Scores { node: first.node.clone(), op: first.op.clone(), ..scores })
    };
    if node.op == "Sub" {
        let one = cx.optional_constant(node, 0, "minuend").ok().flatten();
        let is_one = match one {
            Some(constant) => cx.uniform(node, &constant)? == Some(1.0) && constant.len() == 1,
            None => false,
        };
        let polynomial = first.value.polynomial.scaled(&Coefficient::Scalar(-1.0));
        return Ok(is_one.then(|| vec![again(first.value.with_polynomial(polynomial))]));
    }
    if !is_rearrangement(&node.op) {
        return Ok(None);
    }
    let encrypted = |name: &String| match cx.value(name) {
        Some(Value::Postprocessed(scores)) => Some((name.clone(), Value::Encrypted(scores.value))),
        _ => None,
    };
    let operands: Vec<(String, Value)> = node.inputs.iter().filter_map(encrypted).collect();
    let translated = cx.translate_on(node, &operands)?;
    let wrapped = translated.into_iter().map(|value| match value {
        Value::Encrypted(x) => again(x),
        other => other,
    });
    Ok(Some(wrapped.collect()))
}

/// One operator more for the client.
fn next(cx: &mut Translator<'_>, node: &Node, scores: &Scores) -> Result<Vec<Value>, OpError> {
    let scores = scores.clone();
    let after = match node.op.as_str() {
        "Softmax" | "LogSoftmax" if !scores.is_index() => {
            let old = cx.model.opset < 13;
            let axis = ops::axis(node, node.int("axis", if old { 1 } else { -1 })?, scores.dims.len())?;
            // Older operator sets take all dimensions from the axis on as one.
            let inner = if old { 1 } else { scores.dims[axis + 1..].iter().product() };
            let length = if old { scores.dims[axis..].iter().product() } else { scores.dims[axis] };
            let (length, inner) = (written(length), written(inner));
            scores.then(match node.op.as_str() {
                "Softmax" => TailStep::Softmax { length, inner },
                _ => TailStep::LogSoftmax { length, inner },
            })
        }
        "Sigmoid" => scores.then(TailStep::Sigmoid {}),
        "ArgMax" if !scores.is_index() && node.int("select_last_index", 0)? == 0 => arg_max(node, scores)?,
        "Identity" | "Cast" => scores,
        "Reshape" | "Squeeze" | "Unsqueeze" | "Flatten" => reshape(cx, node, scores),
        "ArrayFeatureExtractor" | "Gather" if scores.is_index() => look_up(cx, node, scores),
        "ZipMap" => {
            let classes = class_names(node, ["classlabels_strings", "classlabels_int64s"])?;
            scores.named(classes)
        }
        "LabelEncoder" if scores.is_index() => encoded(node, scores)?,
        "Normalizer" if node.text("norm", "MAX")? == "L1" && !scores.is_index() => {
            let axis = ops::axis(node, -1, scores.dims.len())?;
            normalized(scores, axis)
        }
        "LpNormalization" if node.int("p", 2)? == 1 && !scores.is_index() => {
            let axis = ops::axis(node, node.int("axis", -1)?, scores.dims.len())?;
            normalized(scores, axis)
        }
        _ => Scores { steps: None, ..scores },
    };
    Ok(vec![Value::Postprocessed(after); node.outputs.len().max(1)])
}

fn arg_max(node: &Node, mut scores: Scores) -> Result<Scores, OpError> {
    let axis = ops::axis(node, node.int("axis", 0)?, scores.dims.len())?;
    let inner = written(scores.dims[axis + 1..].iter().product());
    let length = written(scores.dims[axis]);
    match node.int("keepdims", 1)? {
        0 => drop(scores.dims.remove(axis)),
        _ => scores.dims[axis] = 1,
    }
    Ok(scores.then(TailStep::ArgMax { length, inner }))
}

/// Only extents change; where they cannot be told, all numbers lie in one dimension.
fn reshape(cx: &Translator<'_>, node: &Node, mut scores: Scores) -> Scores {
    let target = node.input(1).and_then(|name| cx.model.constants.get(name)).and_then(Constant::as_ints);
    let n = scores.dims.iter().product();
    let dims = target.filter(|_| node.op == "Reshape").and_then(|target| reshaped(&scores.dims, target));
    scores.dims = dims.unwrap_or_else(|| vec![1, n]);
    scores
}

/// A sum of one already has nothing to be divided by.
fn normalized(scores: Scores, axis: usize) -> Scores {
    let inner = written(scores.dims[axis + 1..].iter().product());
    let length = written(scores.dims[axis]);
    match scores.steps.as_deref() {
        Some([.., TailStep::Softmax { length: l, inner: i }]) if (*l, *i) == (length, inner) => scores,
        _ => scores.then(TailStep::Normalize { length, inner }),
    }
}

/// Constant names, looked up by the index of the best class.
fn look_up(cx: &Translator<'_>, node: &Node, scores: Scores) -> Scores {
    let classes = match cx.operand(node, 0) {
        Some(Value::Constant(constant)) => (0..constant.len()).map(|i| constant.get(i).to_string()).collect(),
        Some(Value::Text(names)) => names.to_vec(),
        _ => return Scores { steps: None, ..scores },
    };
    scores.named(classes)
}

/// Names for integers, by a table.
fn encoded(node: &Node, scores: Scores) -> Result<Scores, OpError> {
    let (keys, values) = (node.ints("keys_int64s")?.unwrap_or_default(), node.texts("values_strings"));
    let name = |class: String| {
        let found = keys.iter().position(|key| key.to_string() == class).and_then(|i| values.get(i));
        found.cloned().unwrap_or(class)
    };
    let count = match scores.steps.as_deref() {
        Some([.., TailStep::ArgMax { length, .. }]) => *length as usize,
        _ => 0,
    };
    let before = if scores.classes.is_empty() {
        (0..count).map(|i| i.to_string()).collect()
    } else {
        scores.classes.clone()
    };
    Ok(scores.named(before.into_iter().map(name).collect()))
}

/// Names of classes from attributes: strings or integers.
pub(super) fn class_names(node: &Node, [strings, ints]: [&str; 2]) -> Result<Vec<String>, OpError> {
    let names = node.texts(strings);
    match names.is_empty() {
        false => Ok(names.to_vec()),
        true => Ok(node.ints(ints)?.unwrap_or_default().iter().map(i64::to_string).collect()),
    }
}
