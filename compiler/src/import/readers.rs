//! Who reads a value of the model: how many, and whether anything but element-wise arithmetic does.

use std::collections::{HashMap, HashSet};

use super::model::Model;
use super::node::Node;

/// Facts about the readers of every value.
#[derive(Debug)]
pub(super) struct Readers<'m> {
    counts: HashMap<&'m str, usize>,
    pending: HashMap<&'m str, usize>,
    structural: HashSet<&'m str>,
    first: HashMap<&'m str, &'m Node>,
}

impl<'m> Readers<'m> {
    /// Computes the facts for a model.
    pub(super) fn new(model: &'m Model) -> Self {
        let mut counts: HashMap<&str, usize> = HashMap::new();
        let mut structural: HashSet<&str> = HashSet::new();
        for name in &model.outputs {
            *counts.entry(name).or_default() += 1;
            structural.insert(name);
        }
        let mut first = HashMap::new();
        for node in model.nodes.iter().rev() {
            let shows_through =
                is_transparent(&node.op) && node.outputs.iter().any(|o| structural.contains(o.as_str()));
            let is_structural = shows_through || !(is_transparent(&node.op) || is_arithmetic(&node.op));
            for name in node.inputs.iter().filter(|n| !n.is_empty()) {
                *counts.entry(name).or_default() += 1;
                first.insert(name.as_str(), node);
                if is_structural {
                    structural.insert(name);
                }
            }
        }
        Readers { pending: counts.clone(), counts, structural, first }
    }

    /// How many nodes and outputs read a value.
    pub(super) fn count(&self, name: &str) -> usize {
        self.counts.get(name).copied().unwrap_or(0)
    }

    /// The first node that reads a value.
    pub(super) fn first(&self, name: &str) -> Option<&'m Node> {
        self.first.get(name).copied()
    }

    /// Notes that one reader of a value is done; returns whether it was the last.
    pub(super) fn done(&mut self, name: &str) -> bool {
        self.pending.get_mut(name).is_some_and(|left| {
            *left = left.saturating_sub(1);
            *left == 0
        })
    }

    /// Whether a convolution, a pool, an output or the like reads a value, directly or through a change of view.
    pub(super) fn is_structural(&self, name: &str) -> bool {
        self.structural.contains(name)
    }
}

/// Operators that pass the same numbers on.
fn is_transparent(op: &str) -> bool {
    matches!(
        op,
        "Identity"
            | "Dropout"
            | "Cast"
            | "CastLike"
            | "Flatten"
            | "Reshape"
            | "Squeeze"
            | "Unsqueeze"
            | "Transpose"
    )
}

/// Operators that polynomial arithmetic covers, and those that only look at a shape.
fn is_arithmetic(op: &str) -> bool {
    matches!(op, "Add" | "Sub" | "Mul" | "Div" | "Neg" | "Pow" | "Sum" | "Mean" | "Shape" | "Size")
}
