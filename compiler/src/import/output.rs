//! Declares the output of the graph: one, in which the model's outputs lie one behind the other.
//!
//! Outputs that only post-process the same scores share them. Values of one size of image, and vectors, are joined along
//! the channels; others are flattened first.

use fhe_bytecode::{Port, Tail};
use fhec_ir::{NodeId, Op};

use super::Note;
use super::error::Refusal;
use super::limits::written;
use super::node::Node;
use super::ops::{identity, vector};
use super::translate::Translator;
use super::value::{Encrypted, OpError, Scores, Value};
use super::view::Axis;

/// Most outputs of a model, and most tails.
const MAX_OUTPUTS: usize = fhe_bytecode::program::MAX_PORTS;

/// One value behind outputs of the model.
struct Scored {
    node: NodeId,
    value: Encrypted,
    /// What the port is called.
    name: String,
    /// The model's output that it stands for first.
    output: String,
}

/// Makes the output; returns the ONNX names of the values in it, their ports, and the tails.
pub(super) fn declare_all(cx: &mut Translator<'_>) -> (Vec<String>, Vec<Port>, Vec<Tail>) {
    let (mut results, mut tails, mut sources) = (Vec::new(), Vec::new(), Vec::new());
    let n_outputs = cx.model.outputs.len();
    if n_outputs > MAX_OUTPUTS {
        let why = format!("the model has {n_outputs} outputs, more than {MAX_OUTPUTS}");
        refuse(cx, "outputs", Vec::new(), super::Reason::Attribute(why).into());
        return (sources, Vec::new(), tails);
    }
    for name in &cx.model.outputs {
        let (value, source, scores) = match cx.value(name) {
            Some(Value::Encrypted(value)) => (value, name.clone(), None),
            Some(Value::Postprocessed(scores)) => (scores.value.clone(), scores.name.clone(), Some(scores)),
            Some(Value::Constant(_) | Value::Text(_)) | None => {
                cx.notes.push(Note::ConstantOutput(name.clone()));
                continue;
            }
            Some(Value::Unknown) => continue,
        };
        let dims = value.view.dims().to_vec();
        match port_of(cx, name, value, &source, &mut results) {
            Ok((port, is_new)) => {
                if is_new {
                    sources.push(source.clone());
                }
                if let Some(scores) = scores {
                    postprocessed(cx, name, &scores, port, &mut tails);
                }
            }
            Err(error) => refuse(cx, name, dims, error),
        }
    }
    match joined(cx, results) {
        Ok(ports) => (sources, ports, tails),
        Err(error) => {
            refuse(cx, "outputs", Vec::new(), error);
            (sources, Vec::new(), tails)
        }
    }
}

fn refuse(cx: &mut Translator<'_>, name: &str, dims: Vec<usize>, error: OpError) {
    let reason = match error {
        OpError::Refused(reason) => reason,
        OpError::Malformed(error) => super::Reason::Attribute(error.to_string()),
    };
    let shape = (!dims.is_empty()).then_some(dims);
    cx.refuse_end(Refusal { node: name.to_owned(), op: "graph output".into(), shape, reason });
}

/// A tail for an output, or a note that there is none.
fn postprocessed(cx: &mut Translator<'_>, output: &str, scores: &Scores, port: usize, tails: &mut Vec<Tail>) {
    let (output, op, name) = (output.to_owned(), scores.op.clone(), scores.name.clone());
    let tail = scores.steps.clone().map(|steps| {
        let classes = scores.classes.clone();
        Tail { name: output.clone(), port: written(port), steps, classes }
    });
    let n = scores.value.view.shape().len();
    match tail.filter(|tail| tail.fits(n)) {
        Some(tail) => {
            tails.push(tail);
            cx.notes.push(Note::Tail { output, op, scores: name });
        }
        None => cx.notes.push(Note::Dropped { output, op, scores: name }),
    }
}

/// The position of a value among the results, and whether it is a new one.
fn port_of(
    cx: &mut Translator<'_>,
    output: &str,
    value: Encrypted,
    source: &str,
    results: &mut Vec<Scored>,
) -> Result<(usize, bool), OpError> {
    let value = cx.committed(value)?;
    let node = cx.node_of(&value)?;
    if let Some(known) = results.iter().position(|result| result.node == node) {
        return Ok((known, false));
    }
    let name = if source.is_empty() { output } else { source };
    results.push(Scored { node, value, name: name.to_owned(), output: output.to_owned() });
    Ok((results.len() - 1, true))
}

/// Whether the model has channels last and the graph, as always, first.
fn is_channels_last(value: &Encrypted) -> bool {
    let view = &value.view;
    let c = view.shape().c;
    view.order() == [Axis::H, Axis::W, Axis::C] && view.dims().last() == Some(&c)
}

/// One output node of all results, and where each lies in it.
fn joined(cx: &mut Translator<'_>, results: Vec<Scored>) -> Result<Vec<Port>, OpError> {
    let Some(first) = results.first() else { return Ok(Vec::new()) };
    let area = first.value.view.shape();
    let is_alike = |r: &Scored| {
        let shape = r.value.view.shape();
        (shape.h, shape.w) == (area.h, area.w)
    };
    let is_alike = results.iter().all(is_alike);
    let output = first.output.clone();
    let (mut ports, mut parts, mut offset) = (Vec::new(), Vec::new(), 0);
    for result in &results {
        let node = Node::end(&result.name, "graph output");
        let mut value = result.value.clone();
        if !value.view.is_canonical() && !is_channels_last(&value) {
            value = identity(cx, &node, &value)?;
        }
        if !is_alike {
            value = vector(cx, &node, value)?;
        }
        let channels_last = !value.view.is_canonical();
        let dims: Vec<u32> = value.view.dims().iter().map(|&d| written(d)).collect();
        // A scalar is a vector of one number to clients.
        let dims = if dims.is_empty() { vec![1] } else { dims };
        let name = result.name.clone();
        ports.push(Port { name, dims, channels_last, offset: written(offset) });
        offset += value.view.shape().len();
        parts.push(cx.node_of(&value)?);
    }
    let joined = match parts[..] {
        [only] => only,
        _ => cx.emitter.add(Op::Concat, &parts, "outputs")?,
    };
    cx.emitter.add(Op::Output, &[joined], &output)?;
    Ok(ports)
}
