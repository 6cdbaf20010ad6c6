//! Declares the outputs of the graph.

use std::collections::HashSet;

use fhec_ir::{NodeId, Op};

use super::Note;
use super::error::Refusal;
use super::reason::Reason;
use super::translate::Translator;
use super::value::{Encrypted, Scores, Value};

/// Makes one output per distinct result and returns the ONNX names of their values. Results that only post-process the
/// same scores share an output.
pub(super) fn declare_all(cx: &mut Translator<'_>) -> Vec<String> {
    let (mut made, mut names) = (HashSet::new(), Vec::new());
    for name in &cx.model.outputs {
        let (value, source) = match cx.value(name) {
            Some(Value::Encrypted(value)) => (value, name.clone()),
            Some(Value::Postprocessed(Scores { value, name: source, op, .. })) => {
                cx.notes.push(Note::Dropped { output: name.clone(), op, scores: source.clone() });
                (value, source)
            }
            Some(Value::Constant(_) | Value::Text) | None => {
                cx.notes.push(Note::ConstantOutput(name.clone()));
                continue;
            }
            Some(Value::Unknown) => continue,
        };
        match declare(cx, name, &value, &mut made) {
            Ok(true) => names.push(source),
            Ok(false) => {}
            Err(reason) => {
                let shape = Some(value.view.dims().to_vec());
                cx.refuse_end(Refusal { node: name.clone(), op: "graph output".into(), shape, reason });
            }
        }
    }
    names
}

/// Makes an output of a value; `false` if there is one already.
fn declare(
    cx: &mut Translator<'_>,
    name: &str,
    value: &Encrypted,
    made: &mut HashSet<NodeId>,
) -> Result<bool, Reason> {
    if !value.view.is_canonical() {
        return Err(Reason::Rearranges("an output with channels last"));
    }
    let id = cx.node_of(value)?;
    let is_new = made.insert(id);
    if is_new {
        cx.emitter.add(Op::Output, &[id], name)?;
    }
    Ok(is_new)
}
