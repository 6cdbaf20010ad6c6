//! The tensor graph: operations as nodes, values as edges, constants in a side table.
//!
//! Operand order is the edge weight. Node ids are stable under removal, and every traversal offered here has one
//! deterministic order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use petgraph::Direction;
use petgraph::stable_graph::{NodeIndex, StableDiGraph};
use petgraph::visit::EdgeRef;

use crate::infer::{ShapeError, infer};
use crate::{MemberIdx, NodeId, Op, Shape, Tensor, TensorId, Weights};

/// A network between import and scheduling.
#[derive(Clone, Debug)]
pub struct Graph {
    pub(crate) nodes: StableDiGraph<Node, Slot>,
    /// Constants the operations refer to.
    pub(crate) weights: Weights,
    n_members: usize,
}

/// Position of an operand at its consumer.
pub(crate) type Slot = u32;

/// An operation with what is known about its value.
#[derive(Clone, Debug)]
pub struct Node {
    /// What is computed.
    pub op: Op,
    /// Extent of the value.
    pub shape: Shape,
    /// Names of the model's nodes this one stands for, oldest first.
    pub origins: Vec<String>,
    /// Passes that changed this node, oldest first.
    pub history: Vec<&'static str>,
    /// Where the numbers of the value lie, if that is known.
    pub range: Option<ValueRange>,
}

/// Lower and upper bound of a value, per channel.
#[derive(Clone, Debug, PartialEq)]
pub struct ValueRange {
    /// Smallest number of each channel.
    pub lo: Vec<f64>,
    /// Largest number of each channel.
    pub hi: Vec<f64>,
}

impl Default for Graph {
    fn default() -> Self {
        Self::new()
    }
}

impl Graph {
    /// An empty graph of a single model.
    #[must_use]
    pub fn new() -> Self {
        Self::with_members(1)
    }

    /// An empty graph of `n_members` models that share a structure.
    #[must_use]
    pub fn with_members(n_members: usize) -> Self {
        Self { nodes: StableDiGraph::new(), weights: Weights::default(), n_members }
    }

    /// An empty graph with the weight table and members of this one, to rebuild a rewritten network in.
    #[must_use]
    pub fn empty_like(&self) -> Self {
        Self { nodes: StableDiGraph::new(), weights: self.weights.clone(), n_members: self.n_members }
    }

    /// How many models share the structure.
    #[must_use]
    pub fn n_members(&self) -> usize {
        self.n_members
    }

    /// The members in order.
    pub fn members(&self) -> impl Iterator<Item = MemberIdx> + use<> {
        (0..self.n_members as u32).map(MemberIdx)
    }

    /// Appends a node; its shape is inferred.
    ///
    /// # Errors
    /// When the operands or constants do not fit the operation.
    pub fn add(&mut self, op: Op, operands: &[NodeId], origin: &str) -> Result<NodeId, ShapeError> {
        let origins = if origin.is_empty() { Vec::new() } else { vec![origin.to_owned()] };
        self.add_node(op, operands, origins, Vec::new())
    }

    /// Appends a node with given origins and history; its shape is inferred.
    ///
    /// # Errors
    /// When the operands or constants do not fit the operation.
    pub fn add_node(
        &mut self,
        op: Op,
        operands: &[NodeId],
        origins: Vec<String>,
        history: Vec<&'static str>,
    ) -> Result<NodeId, ShapeError> {
        let shapes: Vec<Shape> = operands.iter().map(|&id| self.shape(id)).collect();
        let shape = infer(&op, &shapes, &self.weights)?;
        let ix = self.nodes.add_node(Node { op, shape, origins, history, range: None });
        for (slot, operand) in operands.iter().enumerate() {
            self.nodes.add_edge(index(*operand), ix, slot as Slot);
        }
        Ok(NodeId(ix.index() as u32))
    }

    /// Adds a constant that all members share.
    pub fn add_tensor(&mut self, tensor: Tensor) -> TensorId {
        self.weights.add(vec![tensor])
    }

    /// Adds a constant with one value per member.
    pub fn add_member_tensors(&mut self, members: Vec<Tensor>) -> TensorId {
        self.weights.add(members)
    }

    /// The constant of the first member.
    #[must_use]
    pub fn tensor(&self, id: TensorId) -> &Tensor {
        self.weights.get(id)
    }

    /// The whole weight table.
    #[must_use]
    pub fn weights(&self) -> &Weights {
        &self.weights
    }

    /// A node and its facts.
    ///
    /// # Panics
    /// When the node was removed; ids of this graph are valid until then.
    #[must_use]
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[index(id)]
    }

    /// A node, to change its facts. Use [`Graph::set_op`] to change the operation.
    pub fn node_mut(&mut self, id: NodeId) -> &mut Node {
        &mut self.nodes[index(id)]
    }

    /// The operation of a node.
    #[must_use]
    pub fn op(&self, id: NodeId) -> &Op {
        &self.node(id).op
    }

    /// The extent of a node's value.
    #[must_use]
    pub fn shape(&self, id: NodeId) -> Shape {
        self.node(id).shape
    }

    /// Whether the node is still there.
    #[must_use]
    pub fn contains(&self, id: NodeId) -> bool {
        self.nodes.contains_node(index(id))
    }

    /// How many nodes there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.node_count()
    }

    /// Whether there are no nodes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One past the largest node number, for tables indexed by node.
    #[must_use]
    pub fn bound(&self) -> usize {
        self.nodes.node_indices().next_back().map_or(0, |ix| ix.index() + 1)
    }

    /// All nodes by rising id.
    pub fn ids(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.nodes.node_indices().map(|ix| NodeId(ix.index() as u32))
    }

    /// The operands of a node in order.
    #[must_use]
    pub fn operands(&self, id: NodeId) -> Vec<NodeId> {
        let mut edges: Vec<(Slot, NodeId)> = self
            .nodes
            .edges_directed(index(id), Direction::Incoming)
            .map(|e| (*e.weight(), NodeId(e.source().index() as u32)))
            .collect();
        edges.sort_unstable();
        edges.into_iter().map(|(_, source)| source).collect()
    }

    /// Operand slots as stored, for the verifier.
    pub(crate) fn operand_slots(&self, id: NodeId) -> Vec<u32> {
        let mut slots: Vec<_> =
            self.nodes.edges_directed(index(id), Direction::Incoming).map(|e| *e.weight()).collect();
        slots.sort_unstable();
        slots
    }

    /// Every use of a node's value as (consumer, operand slot), by consumer id and slot.
    #[must_use]
    pub fn uses(&self, id: NodeId) -> Vec<(NodeId, usize)> {
        let mut uses: Vec<(NodeId, usize)> = self
            .nodes
            .edges_directed(index(id), Direction::Outgoing)
            .map(|e| (NodeId(e.target().index() as u32), *e.weight() as usize))
            .collect();
        uses.sort_unstable();
        uses
    }

    /// The only consumer of a node's value, if there is exactly one use.
    #[must_use]
    pub fn sole_use(&self, id: NodeId) -> Option<NodeId> {
        match self.uses(id)[..] {
            [(consumer, _)] => Some(consumer),
            _ => None,
        }
    }

    /// All inputs by id.
    #[must_use]
    pub fn inputs(&self) -> Vec<NodeId> {
        self.ids().filter(|&id| matches!(self.op(id), Op::Input { .. })).collect()
    }

    /// All outputs by id.
    #[must_use]
    pub fn outputs(&self) -> Vec<NodeId> {
        self.ids().filter(|&id| matches!(self.op(id), Op::Output)).collect()
    }

    /// Operands before consumers; among nodes that are ready, the smallest id first. Nodes on a cycle are left out.
    #[must_use]
    pub fn topo_order(&self) -> Vec<NodeId> {
        let mut missing = vec![0_usize; self.bound()];
        let mut ready = BinaryHeap::new();
        for id in self.ids() {
            missing[id.index()] = self.nodes.edges_directed(index(id), Direction::Incoming).count();
            if missing[id.index()] == 0 {
                ready.push(Reverse(id));
            }
        }
        let mut order = Vec::with_capacity(self.len());
        while let Some(Reverse(id)) = ready.pop() {
            order.push(id);
            for edge in self.nodes.edges_directed(index(id), Direction::Outgoing) {
                let target = NodeId(edge.target().index() as u32);
                missing[target.index()] -= 1;
                if missing[target.index()] == 0 {
                    ready.push(Reverse(target));
                }
            }
        }
        order
    }
}

pub(crate) fn index(id: NodeId) -> NodeIndex {
    NodeIndex::new(id.index())
}
