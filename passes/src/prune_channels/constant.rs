//! Which channels of every value do not depend on the input.

use fhec_ir::{Channels, Graph, NodeId, TensorId, channels};

/// For every node and channel, whether its numbers are the same for every input, in every member.
pub(super) fn constant_channels(graph: &Graph) -> Vec<Vec<bool>> {
    let mut table: Vec<Vec<bool>> = vec![Vec::new(); graph.bound()];
    for id in graph.topo_order() {
        table[id.index()] = of_node(graph, id, &table);
    }
    table
}

fn of_node(graph: &Graph, id: NodeId, table: &[Vec<bool>]) -> Vec<bool> {
    let operands = graph.operands(id);
    let is_constant = |slot: usize, channel: usize| table[operands[slot].index()][channel];
    let op = graph.op(id);
    let all = 0..graph.shape(id).c;
    match channels(graph, id) {
        Channels::Outside => vec![false; all.len()],
        Channels::Mixed { .. } => all.map(|c| is_zero_row(graph, op.tensors()[0], c)).collect(),
        Channels::Each => all
            .map(|c| {
                let of_operands = (0..operands.len()).all(|slot| is_constant(slot, c));
                of_operands || op.factor().is_some_and(|factor| is_zero_row(graph, factor, c))
            })
            .collect(),
        Channels::Moved(from) => {
            from.iter().map(|from| from.is_none_or(|(slot, c)| is_constant(slot, c))).collect()
        }
    }
}

/// Whether the numbers of one output channel are all zero; a single number stands for every channel.
pub(super) fn is_zero_row(graph: &Graph, id: TensorId, channel: usize) -> bool {
    graph.weights().members(id).iter().all(|t| {
        let width = t.len() / t.dims()[0];
        let first = if t.dims()[0] == 1 { 0 } else { channel * width };
        (first..first + width).all(|i| t.get(i) == 0.0)
    })
}
