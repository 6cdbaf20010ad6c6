//! Text of a model as it may reach a terminal.
//!
//! Names, class labels and the exporter's name come from whoever wrote the file. Characters that move a cursor, change
//! colors or turn the direction of a line are spelled out here, where they enter, so that no message has to think of them.

use fhe_bytecode::text::harmless;
use fhec_onnx::{ModelProto, TensorProto};

/// The text with every such character written as its number, such as `\u{1b}`.
pub(super) fn clean(text: &mut String) {
    *text = harmless(text);
}

/// Cleans every text of a model that the import reads.
pub(super) fn clean_model(model: &mut ModelProto) {
    clean(&mut model.producer_name);
    for entry in &mut model.metadata_props {
        clean(&mut entry.key);
    }
    let Some(graph) = &mut model.graph else { return };
    graph.initializer.iter_mut().for_each(clean_tensor);
    for sparse in &mut graph.sparse_initializer {
        sparse.values.iter_mut().for_each(clean_tensor);
    }
    for info in graph.input.iter_mut().chain(&mut graph.output).chain(&mut graph.value_info) {
        clean(&mut info.name);
    }
    for node in &mut graph.node {
        for text in [&mut node.name, &mut node.op_type, &mut node.domain] {
            clean(text);
        }
        node.input.iter_mut().chain(&mut node.output).for_each(clean);
        for attribute in &mut node.attribute {
            clean(&mut attribute.name);
            attribute.t.iter_mut().for_each(clean_tensor);
        }
    }
}

fn clean_tensor(tensor: &mut TensorProto) {
    clean(&mut tensor.name);
    for entry in &mut tensor.external_data {
        clean(&mut entry.key);
        clean(&mut entry.value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_spelled_out() {
        let cases = [
            ("plain/name:0", "plain/name:0"),
            ("größe", "größe"),
            ("a\u{1b}[2Jb", "a\\u{1b}[2Jb"),
            ("line\nbreak\r", "line\\u{a}break\\u{d}"),
            ("\u{9b}31m", "\\u{9b}31m"),
            ("gpj\u{202e}exe", "gpj\\u{202e}exe"),
        ];
        for (text, expected) in cases {
            let mut text = text.to_owned();
            clean(&mut text);
            assert_eq!(text, expected);
        }
    }
}
