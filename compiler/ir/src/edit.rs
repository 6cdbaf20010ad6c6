//! Changes to a graph: what a rewrite may do to nodes and edges.

use std::collections::BTreeSet;

use petgraph::Direction;
use petgraph::visit::EdgeRef;

use crate::graph::{Slot, index};
use crate::infer::{ShapeError, infer};
use crate::{Graph, NodeId, Op, Shape};

impl Graph {
    /// Replaces the operation of a node and notes the pass that did it. Shapes downstream must not change.
    ///
    /// # Errors
    /// When the operands do not fit the new operation.
    pub fn set_op(&mut self, id: NodeId, op: Op, pass: &'static str) -> Result<(), ShapeError> {
        let shapes: Vec<Shape> = self.operands(id).iter().map(|&o| self.shape(o)).collect();
        let shape = infer(&op, &shapes, &self.weights)?;
        let node = self.node_mut(id);
        node.op = op;
        node.shape = shape;
        self.touch(id, pass);
        Ok(())
    }

    /// Notes that a pass changed a node.
    pub fn touch(&mut self, id: NodeId, pass: &'static str) {
        let history = &mut self.node_mut(id).history;
        if history.last() != Some(&pass) {
            history.push(pass);
        }
    }

    /// Lets a consumer read another value in one operand slot.
    pub fn set_operand(&mut self, consumer: NodeId, slot: usize, value: NodeId) {
        let edge = self
            .nodes
            .edges_directed(index(consumer), Direction::Incoming)
            .find(|e| *e.weight() as usize == slot)
            .map(|e| e.id());
        if let Some(edge) = edge {
            self.nodes.remove_edge(edge);
        }
        self.nodes.add_edge(index(value), index(consumer), slot as Slot);
    }

    /// Lets every consumer of `old` read `new`, except `new` itself.
    pub fn replace_uses(&mut self, old: NodeId, new: NodeId) {
        for (consumer, slot) in self.uses(old) {
            if consumer != new {
                self.set_operand(consumer, slot, new);
            }
        }
    }

    /// Puts a new node between a value and one of its uses.
    ///
    /// # Errors
    /// When the value does not fit the operation.
    pub fn insert_before(
        &mut self,
        (consumer, slot): (NodeId, usize),
        op: Op,
        pass: &'static str,
    ) -> Result<NodeId, ShapeError> {
        let value = self.operands(consumer)[slot];
        let node = self.add_node(op, &[value], Vec::new(), vec![pass])?;
        self.set_operand(consumer, slot, node);
        Ok(node)
    }

    /// Removes a node and its edges.
    pub fn remove(&mut self, id: NodeId) {
        self.nodes.remove_node(index(id));
    }

    /// Takes a node with one operand out of the graph; its consumers read the operand, which inherits its origins.
    pub fn bypass(&mut self, id: NodeId) {
        let operand = self.operands(id)[0];
        self.replace_uses(id, operand);
        let origins = std::mem::take(&mut self.node_mut(id).origins);
        self.node_mut(operand).origins.extend(origins);
        self.remove(id);
    }

    /// Removes nodes no output depends on (inputs stay) and returns the memory of constants nobody reads.
    pub fn remove_dead(&mut self) {
        for id in self.topo_order().into_iter().rev() {
            let keep = matches!(self.op(id), Op::Output | Op::Input { .. });
            if !keep && self.uses(id).is_empty() {
                self.remove(id);
            }
        }
        let mut used = BTreeSet::new();
        for id in self.ids() {
            used.extend(self.op(id).tensors());
        }
        self.weights.retain(|id| used.contains(&id));
    }
}
