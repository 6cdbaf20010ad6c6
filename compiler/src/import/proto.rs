//! Decodes the protobuf of a model into what the import and the oracle read.
//!
//! After it: no more memory was taken than the file is in proportion to; texts are fit for a terminal; no value is made
//! twice; nodes no output depends on, training graphs and local functions are gone.

use std::collections::HashMap;

use fhec_onnx::{GraphProto, ModelProto};
use prost::Message;

use super::clean::clean_model;
use super::error::Malformed;
use super::wire;

/// Decodes a model.
///
/// # Errors
/// When the bytes are no model, or one whose structures would take much more memory than they do.
pub fn decode(bytes: &[u8]) -> Result<ModelProto, Malformed> {
    wire::check(bytes)?;
    let mut model = ModelProto::decode(bytes).map_err(|e| Malformed::Decode(e.to_string()))?;
    model.training_info.clear();
    model.functions.clear();
    clean_model(&mut model);
    if let Some(graph) = &mut model.graph {
        remove_dead(graph)?;
    }
    Ok(model)
}

/// Keeps the nodes some output depends on, and names those without a name by operator and position.
fn remove_dead(graph: &mut GraphProto) -> Result<(), Malformed> {
    for (position, node) in graph.node.iter_mut().enumerate() {
        if node.name.is_empty() {
            node.name = format!("{}#{position}", node.op_type);
        }
    }
    let mut makers: HashMap<&str, usize> = HashMap::new();
    for (i, node) in graph.node.iter().enumerate() {
        for output in node.output.iter().filter(|o| !o.is_empty()) {
            if makers.insert(output, i).is_some() {
                return Err(Malformed::MadeTwice(output.clone()));
            }
        }
    }
    let mut is_live = vec![false; graph.node.len()];
    let mut wanted: Vec<&str> = graph.output.iter().map(|o| o.name.as_str()).collect();
    while let Some(value) = wanted.pop() {
        if let Some(&maker) = makers.get(value)
            && !std::mem::replace(&mut is_live[maker], true)
        {
            wanted.extend(graph.node[maker].input.iter().map(String::as_str));
        }
    }
    let mut kept = is_live.into_iter();
    graph.node.retain(|_| kept.next().unwrap_or(false));
    Ok(())
}
