//! The textual form: one line per node in topological order, ids renumbered, attributes in a fixed order, six significant
//! digits, constants as extents and fingerprint.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use indexmap::IndexSet;

use crate::nature::attributes;
use crate::{Graph, NodeId, TensorId};

/// What a printed graph shows besides operations and shapes.
#[derive(Clone, Copy, Debug, Default)]
pub struct PrintOptions {
    /// The lines of the constants after the nodes.
    pub tensors: bool,
    /// The model's names and the passes of every node.
    pub origins: bool,
}

impl fmt::Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&print(self, PrintOptions { tensors: true, origins: false }))
    }
}

/// The text of a whole graph.
#[must_use]
pub fn print(graph: &Graph, options: PrintOptions) -> String {
    let names = Names::new(graph);
    let mut text = String::new();
    for &id in names.nodes.keys() {
        text.push_str(&line(graph, &names, id));
        if options.origins {
            let node = graph.node(id);
            let _ = write!(text, "  // {} ({})", node.origins.join(", "), node.history.join(", "));
        }
        text.push('\n');
    }
    if options.tensors {
        for (number, id) in names.tensors.iter().enumerate() {
            let members = graph.weights().members(*id);
            let shown: Vec<_> = members.iter().map(ToString::to_string).collect();
            let _ = writeln!(text, "w{number} : {}", shown.join(" | "));
        }
    }
    text
}

/// The text of one node, with the ids of the whole printed graph.
#[must_use]
pub fn print_node(graph: &Graph, id: NodeId) -> String {
    line(graph, &Names::new(graph), id)
}

/// Six significant digits.
#[must_use]
pub fn number(x: f64) -> String {
    if x == 0.0 {
        return "0".into();
    }
    let exponent = x.abs().log10().floor();
    if (-5.0..7.0).contains(&exponent) {
        let decimals = (5.0 - exponent).clamp(0.0, 12.0) as usize;
        let text = format!("{x:.decimals$}");
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').into() } else { text }
    } else {
        format!("{x:.5e}")
    }
}

/// Printed numbers of nodes and tensors.
struct Names {
    nodes: indexmap::IndexMap<NodeId, usize>,
    tensors: IndexSet<TensorId>,
}

impl Names {
    fn new(graph: &Graph) -> Self {
        let mut order = graph.topo_order();
        let reached: BTreeMap<NodeId, ()> = order.iter().map(|&id| (id, ())).collect();
        order.extend(graph.ids().filter(|id| !reached.contains_key(id)));
        let tensors = order.iter().flat_map(|&id| graph.op(id).tensors()).collect();
        Self { nodes: order.into_iter().enumerate().map(|(n, id)| (id, n)).collect(), tensors }
    }

    fn tensor(&self, id: TensorId) -> String {
        format!("w{}", self.tensors.get_index_of(&id).expect("every constant of a node is numbered"))
    }
}

fn line(graph: &Graph, names: &Names, id: NodeId) -> String {
    let node = graph.node(id);
    let mut text = format!("%{} = {}", names.nodes[&id], node.op.mnemonic());
    let operands = graph.operands(id).into_iter().map(|o| format!("%{}", names.nodes[&o]));
    let constants = node.op.tensors().into_iter().map(|t| names.tensor(t));
    let arguments: Vec<_> = operands.chain(constants).collect();
    if !arguments.is_empty() {
        let _ = write!(text, " {}", arguments.join(", "));
    }
    let attributes = attributes(graph, &node.op);
    if !attributes.is_empty() {
        let _ = write!(text, " {{{}}}", attributes.join(", "));
    }
    let _ = write!(text, " : {}", node.shape);
    if let Some(range) = &node.range {
        let lo = range.lo.iter().copied().fold(f64::INFINITY, f64::min);
        let hi = range.hi.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let _ = write!(text, " in [{}, {}]", number(lo), number(hi));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn numbers_have_six_significant_digits() {
        let shown: Vec<_> = [0.0, 1.0, -0.25, 1234567.0, 2.7654321, 1.5e-9].map(number).into();
        assert_eq!(shown, ["0", "1", "-0.25", "1234567", "2.76543", "1.50000e-9"]);
    }
}
