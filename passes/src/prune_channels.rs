//! Removes channels that hold the same numbers whatever the input (ours).
//!
//! A batch normalization with b1 = 0 makes its channel constant, and so is everything computed from it channel by channel;
//! what it multiplies by zero is not read at all. Such a channel leaves the layers that make it, and what it means
//! to the layers after it goes into their biases.
//! Channels that joins and activations tie together go together, so all of them must be constant.
//!
//! Before: verified tensor graph. After: same outputs, same depth, fewer channels.

mod constant;
mod shrink;

use std::collections::BTreeMap;

use fhec_ir::{Channels, Graph, NodeId, channels};

use crate::pass::{Changed, Pass, PassCx, PassError};

/// The pass.
pub struct PruneChannels;

const NAME: &str = "prune-channels";

impl Pass for PruneChannels {
    fn name(&self) -> &'static str {
        NAME
    }

    fn summary(&self) -> &'static str {
        "remove channels that do not depend on the input"
    }

    fn run(&self, graph: &mut Graph, cx: &mut PassCx) -> Result<Changed, PassError> {
        let groups = find(graph);
        let images = if groups.is_empty() { Vec::new() } else { shrink::constant_images(graph, &groups)? };
        for group in &groups {
            shrink::apply(graph, group, &images)?;
            cx.count("channels", group.pruned.len() as u64);
        }
        Ok(if groups.is_empty() { Changed::No } else { Changed::Yes })
    }
}

/// Nodes whose channels are tied together, and the channels that leave all of them.
struct Group {
    /// By topological order.
    nodes: Vec<NodeId>,
    pruned: Vec<usize>,
}

fn find(graph: &Graph) -> Vec<Group> {
    let constant = constant::constant_channels(graph);
    let mut groups: BTreeMap<NodeId, Vec<NodeId>> = BTreeMap::new();
    for (id, leader) in leaders(graph) {
        groups.entry(leader).or_default().push(id);
    }
    let prunable = |nodes: &[NodeId]| -> Vec<usize> {
        if nodes.iter().any(|&id| !can_shrink(graph, id)) {
            return Vec::new();
        }
        let channels = graph.shape(nodes[0]).c;
        let mut pruned: Vec<usize> = (0..channels)
            .filter(|&c| nodes.iter().all(|&id| constant[id.index()][c] || is_unread(graph, id, c)))
            .collect();
        // A value keeps at least one channel.
        pruned.truncate(channels - 1);
        pruned
    };
    groups
        .into_values()
        .map(|nodes| Group { pruned: prunable(&nodes), nodes })
        .filter(|group| !group.pruned.is_empty())
        .collect()
}

/// Whether every consumer multiplies the channel by zero.
fn is_unread(graph: &Graph, id: NodeId, channel: usize) -> bool {
    let mut uses = graph.uses(id).into_iter();
    uses.all(|(consumer, _)| {
        graph.op(consumer).factor().is_some_and(|factor| constant::is_zero_row(graph, factor, channel))
    })
}

/// For every node in topological order, the first node its channels are tied to: operations that work channel by
/// channel tie their operands.
fn leaders(graph: &Graph) -> Vec<(NodeId, NodeId)> {
    fn root(parent: &[Option<NodeId>], mut id: NodeId) -> NodeId {
        while let Some(up) = parent[id.index()] {
            id = up;
        }
        id
    }
    let mut parent: Vec<Option<NodeId>> = vec![None; graph.bound()];
    for id in graph.topo_order() {
        let ties = channels(graph, id) == Channels::Each;
        for operand in graph.operands(id).into_iter().filter(|_| ties) {
            let (a, b) = (root(&parent, id), root(&parent, operand));
            if a != b {
                parent[a.max(b).index()] = Some(a.min(b));
            }
        }
    }
    graph.topo_order().into_iter().map(|id| (id, root(&parent, id))).collect()
}

/// Whether the channels of a node may go: it does not come from outside, and every consumer can do without them.
fn can_shrink(graph: &Graph, id: NodeId) -> bool {
    takes_any_channels(graph, id)
        && graph.uses(id).into_iter().all(|(consumer, _)| takes_any_channels(graph, consumer))
}

/// Whether an operation can be written for other channels than it has: neither their number nor their order is given
/// from outside.
fn takes_any_channels(graph: &Graph, id: NodeId) -> bool {
    match channels(graph, id) {
        Channels::Mixed { groups } => groups == 1,
        Channels::Each => true,
        Channels::Outside | Channels::Moved(_) => false,
    }
}
