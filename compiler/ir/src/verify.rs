//! The judge of a tensor graph. The next stage takes [`Verified`], so a graph that was not checked does not compile.
//!
//! Invariants:
//! 1. There is at least one output, and no cycle.
//! 2. Operand slots of every node are 0, 1, 2, … without a gap or a double.
//! 3. Operand and constant extents fit the operation, and the stored shape is the inferred one.
//! 4. Every constant exists, is finite, and has one value, or one per member, of equal extents.
//! 5. An output has no consumer.
//! 6. Divisors of pooling are finite and not zero.
//! 7. A recorded range has one pair of bounds per channel, lower not above upper.

use std::fmt;
use std::ops::Deref;

use crate::infer::{ShapeError, infer};
use crate::print::print_node;
use crate::{Divisor, Graph, NodeId, Op, Shape, TensorId};

/// A graph that keeps every invariant.
#[derive(Clone, Copy, Debug)]
pub struct Verified<'g>(&'g Graph);

impl Deref for Verified<'_> {
    type Target = Graph;

    fn deref(&self) -> &Graph {
        self.0
    }
}

/// Everything that is wrong with a graph.
#[derive(Clone, Debug, PartialEq)]
pub struct VerifyErrors(pub Vec<VerifyError>);

/// One broken invariant, with the printed line where it is broken.
#[derive(Clone, Debug, PartialEq)]
pub struct VerifyError {
    /// The node, if one is to blame.
    pub node: Option<NodeId>,
    /// Its printed line, or nothing.
    pub line: String,
    /// What is wrong.
    pub fault: Fault,
}

/// What is wrong.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// Nothing to compute.
    #[error("the graph has no output")]
    NoOutput,
    /// The node depends on itself.
    #[error("the node lies on a cycle")]
    Cycle,
    /// Operand slots have a gap or a double.
    #[error("operand slots are {0:?}")]
    Slots(Vec<u32>),
    /// Operands or constants do not fit.
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// The stored shape is not the inferred one.
    #[error("the shape is {stored} but {inferred} follows from the operands")]
    StaleShape {
        /// Shape on the node.
        stored: Shape,
        /// Shape from inference.
        inferred: Shape,
    },
    /// A constant holds an infinity or a NaN.
    #[error("constant {0} is not finite")]
    NotFinite(TensorId),
    /// A constant has neither one value nor one per member.
    #[error("constant {tensor} has {actual} values for {expected} members")]
    Members {
        /// The constant.
        tensor: TensorId,
        /// Members of the graph.
        expected: usize,
        /// Values of the constant.
        actual: usize,
    },
    /// An output is read.
    #[error("an output has consumers")]
    OutputUsed,
    /// A divisor is zero or not finite.
    #[error("the divisor is {0}")]
    Divisor(f64),
    /// A range does not fit the value.
    #[error("the recorded range does not fit the value")]
    Range,
}

impl fmt::Display for VerifyErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, error) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str("; ")?;
            }
            write!(f, "{}", error.fault)?;
            if !error.line.is_empty() {
                write!(f, " at `{}`", error.line)?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for VerifyErrors {}

/// Checks every invariant.
///
/// # Errors
/// With all broken ones.
pub fn verify(graph: &Graph) -> Result<Verified<'_>, VerifyErrors> {
    let mut errors = Vec::new();
    if graph.outputs().is_empty() {
        errors.push(VerifyError { node: None, line: String::new(), fault: Fault::NoOutput });
    }
    let order = graph.topo_order();
    let mut reached = vec![false; graph.bound()];
    for id in &order {
        reached[id.index()] = true;
    }
    for id in graph.ids() {
        let mut faults = Vec::new();
        if !reached[id.index()] {
            faults.push(Fault::Cycle);
        }
        check_node(graph, id, &mut faults);
        errors.extend(faults.into_iter().map(|fault| VerifyError {
            node: Some(id),
            line: print_node(graph, id),
            fault,
        }));
    }
    if errors.is_empty() { Ok(Verified(graph)) } else { Err(VerifyErrors(errors)) }
}

fn check_node(graph: &Graph, id: NodeId, faults: &mut Vec<Fault>) {
    let node = graph.node(id);
    let slots = graph.operand_slots(id);
    if slots.iter().enumerate().any(|(i, &slot)| i as u32 != slot) {
        faults.push(Fault::Slots(slots));
    }
    let shapes: Vec<Shape> = graph.operands(id).iter().map(|&o| graph.shape(o)).collect();
    match infer(&node.op, &shapes, graph.weights()) {
        Ok(inferred) if inferred == node.shape => {}
        Ok(inferred) => faults.push(Fault::StaleShape { stored: node.shape, inferred }),
        Err(error) => faults.push(error.into()),
    }
    for tensor in node.op.tensors() {
        if !graph.weights().contains(tensor) {
            continue;
        }
        let members = graph.weights().members(tensor);
        if members.len() != 1 && members.len() != graph.n_members() {
            faults.push(Fault::Members { tensor, expected: graph.n_members(), actual: members.len() });
        }
        if !members.iter().all(crate::Tensor::is_finite) {
            faults.push(Fault::NotFinite(tensor));
        }
    }
    if matches!(node.op, Op::Output) && !graph.uses(id).is_empty() {
        faults.push(Fault::OutputUsed);
    }
    if let Op::Pool(pool) = &node.op
        && let Divisor::Constant(k) = pool.divisor
        && (k == 0.0 || !k.is_finite())
    {
        faults.push(Fault::Divisor(k));
    }
    if let Some(range) = &node.range {
        let ordered = range.lo.iter().zip(&range.hi).all(|(lo, hi)| lo <= hi);
        if range.lo.len() != node.shape.c || range.hi.len() != node.shape.c || !ordered {
            faults.push(Fault::Range);
        }
    }
}
