//! The clear evaluator: what a graph computes, in f64. Every rewrite is judged against it.
//!
//! Deterministic and sequential; callers that have many inputs run many evaluations in parallel.

mod elementwise;
mod kernel;

use crate::{Graph, MemberIdx, NodeId, Op, Shape};

/// A value in channel, row, column order.
#[derive(Clone, Debug, PartialEq)]
pub struct Value {
    /// Extent.
    pub shape: Shape,
    /// Numbers.
    pub data: Vec<f64>,
}

/// Why an evaluation cannot start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EvalError {
    /// Wrong number of inputs.
    #[error("the graph has {expected} input(s), {actual} were given")]
    InputCount {
        /// Inputs of the graph.
        expected: usize,
        /// Inputs given.
        actual: usize,
    },
    /// An input of the wrong size.
    #[error("input {node} has shape {expected}, {actual} numbers were given")]
    InputSize {
        /// The input node.
        node: NodeId,
        /// Its shape.
        expected: Shape,
        /// Numbers given.
        actual: usize,
    },
}

/// Outputs of a graph (by id of the output node) for inputs given by id of the input node.
///
/// # Errors
/// When the inputs do not fit the graph.
pub fn evaluate(graph: &Graph, inputs: &[&[f64]], member: MemberIdx) -> Result<Vec<Value>, EvalError> {
    let outputs = graph.outputs();
    let mut results = vec![None; outputs.len()];
    evaluate_with(graph, inputs, member, |id, value| {
        if let Some(i) = outputs.iter().position(|&o| o == id) {
            results[i] = Some(value.clone());
        }
    })?;
    Ok(results.into_iter().map(|v| v.expect("every output is in the topological order")).collect())
}

/// Evaluates a graph and shows every value, in topological order, to `observe`. A value is freed after its last use.
///
/// # Errors
/// When the inputs do not fit the graph.
pub fn evaluate_with(
    graph: &Graph,
    inputs: &[&[f64]],
    member: MemberIdx,
    mut observe: impl FnMut(NodeId, &Value),
) -> Result<(), EvalError> {
    let input_ids = graph.inputs();
    if input_ids.len() != inputs.len() {
        return Err(EvalError::InputCount { expected: input_ids.len(), actual: inputs.len() });
    }
    for (&node, data) in input_ids.iter().zip(inputs) {
        let expected = graph.shape(node);
        if expected.len() != data.len() {
            return Err(EvalError::InputSize { node, expected, actual: data.len() });
        }
    }
    let mut values: Vec<Option<Value>> = vec![None; graph.bound()];
    let mut pending: Vec<usize> = vec![0; graph.bound()];
    for id in graph.ids() {
        pending[id.index()] = graph.uses(id).len();
    }
    for id in graph.topo_order() {
        let operand_ids = graph.operands(id);
        let value = if let Some(i) = input_ids.iter().position(|&input| input == id) {
            Value { shape: graph.shape(id), data: inputs[i].to_vec() }
        } else {
            let operands: Vec<&Value> = operand_ids
                .iter()
                .map(|o| {
                    values[o.index()].as_ref().expect("operands come first and live until their last use")
                })
                .collect();
            apply(graph, id, &operands, member)
        };
        observe(id, &value);
        for operand in operand_ids {
            pending[operand.index()] -= 1;
            if pending[operand.index()] == 0 {
                values[operand.index()] = None;
            }
        }
        if pending[id.index()] > 0 {
            values[id.index()] = Some(value);
        }
    }
    Ok(())
}

/// The value of one node from the values of its operands.
///
/// # Panics
/// When the operands do not have the shapes of the node's operands.
#[must_use]
pub fn apply(graph: &Graph, id: NodeId, operands: &[&Value], member: MemberIdx) -> Value {
    let shape = graph.shape(id);
    let tensor = |id| graph.weights().member(id, member);
    let data = match graph.op(id) {
        Op::Input { .. } => Vec::new(),
        Op::Conv2d(conv) => {
            kernel::conv2d(conv, tensor(conv.weight), conv.bias.map(tensor), operands[0], shape)
        }
        Op::Linear(linear) => kernel::linear(tensor(linear.weight), linear.bias.map(tensor), operands[0]),
        Op::Pool(pool) => kernel::pool(pool, operands[0], shape),
        Op::BatchNorm { scale, shift } => {
            let (b1, b0) = (tensor(*scale), tensor(*shift));
            elementwise::map(operands[0], |x, c| elementwise::at(b1, c) * x + elementwise::at(b0, c))
        }
        Op::Scale { factor } => {
            let v = tensor(*factor);
            elementwise::map(operands[0], |x, c| elementwise::at(v, c) * x)
        }
        Op::AddConst { value } => elementwise::add_const(operands[0], tensor(*value)),
        Op::Poly { coeffs } => elementwise::poly(operands[0], tensor(*coeffs)),
        Op::Bivar { coeffs } => elementwise::bivar(operands[0], operands[1], tensor(*coeffs)),
        Op::Add => operands[0].data.iter().zip(&operands[1].data).map(|(x, y)| x + y).collect(),
        Op::Mul => operands[0].data.iter().zip(&operands[1].data).map(|(x, y)| x * y).collect(),
        Op::Concat => operands.iter().flat_map(|v| v.data.iter().copied()).collect(),
        Op::Slice(slice) => elementwise::slice(operands[0], slice, shape),
        Op::Pad(pad) => elementwise::pad(operands[0], pad, shape),
        Op::Flatten | Op::Output => operands[0].data.clone(),
    };
    Value { shape, data }
}
