//! Which channels of every value do not depend on the input.

use fhec_ir::{Graph, NodeId, Op, TensorId};

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
    let x = |slot: usize| &table[operands[slot].index()];
    let channels = 0..graph.shape(id).c;
    match graph.op(id) {
        Op::Input { .. } => vec![false; channels.len()],
        Op::Conv2d(conv) => channels.map(|c| is_zero_row(graph, conv.weight, c)).collect(),
        Op::Linear(linear) => channels.map(|c| is_zero_row(graph, linear.weight, c)).collect(),
        Op::BatchNorm { scale: factor, .. } | Op::Scale { factor } => {
            channels.map(|c| x(0)[c] || is_zero_row(graph, *factor, c)).collect()
        }
        Op::Poly { .. } | Op::AddConst { .. } | Op::Pool(_) | Op::Output => x(0).clone(),
        Op::Bivar { .. } | Op::Add | Op::Mul => channels.map(|c| x(0)[c] && x(1)[c]).collect(),
        Op::Concat => (0..operands.len()).flat_map(|slot| x(slot).clone()).collect(),
        Op::Slice(slice) => (slice.start[0]..slice.end[0]).step_by(slice.step[0]).map(|c| x(0)[c]).collect(),
        Op::Pad(pad) => {
            let inside = |c: usize| c.checked_sub(pad.before[0]).and_then(|c| x(0).get(c)).copied();
            channels.map(|c| inside(c).unwrap_or(true)).collect()
        }
        Op::Flatten => {
            let area = graph.shape(operands[0]).area();
            channels.map(|c| x(0)[c / area]).collect()
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
