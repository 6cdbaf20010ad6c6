//! Moves added constants into biases (ours).
//!
//! A constant before an activation goes backward into the bias of the layer before it. A constant after an activation goes
//! forward: through joins and re-arrangements into the bias of the next layer, where it depends on the position if the
//! layer pads with zeros. So ciphertexts hold no constants that only cost range.
//!
//! Before: verified tensor graph. After: same outputs and depth; a constant stays only where no bias can hold it.

use std::collections::BTreeSet;

use fhec_ir::{Conv2d, Graph, Linear, NodeId, Op, ShapeError, Tensor, TensorId, Value, eval};

use crate::pass::{Changed, Pass, PassCx, PassError};
use crate::small::{Small, broadcast};

/// The pass.
pub struct MoveConstants;

const NAME: &str = "move-constants";

impl Pass for MoveConstants {
    fn name(&self) -> &'static str {
        NAME
    }

    fn summary(&self) -> &'static str {
        "move added constants into the biases of the layers before or after them"
    }

    fn run(&self, graph: &mut Graph, cx: &mut PassCx) -> Result<Changed, PassError> {
        let mut changed = Changed::No;
        // Moving a constant ends in a bias or in a constant further down, so every constant settles.
        let mut settled = BTreeSet::new();
        while let Some((id, value)) = next_constant(graph, &settled) {
            let moved = move_backward(graph, id, value)? || move_forward(graph, id, value)?;
            if moved {
                changed = Changed::Yes;
                cx.count("constants", 1);
            }
            if graph.contains(id) {
                settled.insert(id);
            }
        }
        graph.remove_dead();
        Ok(changed)
    }
}

fn next_constant(graph: &Graph, settled: &BTreeSet<NodeId>) -> Option<(NodeId, TensorId)> {
    graph.topo_order().into_iter().find_map(|id| match graph.op(id) {
        Op::AddConst { value } if !settled.contains(&id) => Some((id, *value)),
        _ => None,
    })
}

/// Adds the constant to a bias (or another constant) before it. Every value on the way must have no other consumer.
fn move_backward(graph: &mut Graph, id: NodeId, value: TensorId) -> Result<bool, ShapeError> {
    let operand = graph.operands(id)[0];
    let Some(path) = path_to_bias(graph, operand) else { return Ok(false) };
    let target = *path.last().expect("a path ends in a layer");
    let constant = Small::of(graph, value);
    add_to_bias(graph, target, &constant)?;
    for &node in &path {
        graph.node_mut(node).range = None;
    }
    graph.node_mut(operand).range = graph.node(id).range.clone();
    graph.bypass(id);
    Ok(true)
}

/// The values from an operand back to a layer that can hold a constant.
fn path_to_bias(graph: &Graph, id: NodeId) -> Option<Vec<NodeId>> {
    graph.sole_use(id)?;
    let mut path = vec![id];
    match graph.op(id) {
        Op::Conv2d(_) | Op::Linear(_) | Op::AddConst { .. } => {}
        Op::Add => path.extend(graph.operands(id).into_iter().find_map(|o| path_to_bias(graph, o))?),
        _ => return None,
    }
    Some(path)
}

fn add_to_bias(graph: &mut Graph, id: NodeId, constant: &Small) -> Result<(), ShapeError> {
    let old = match graph.op(id) {
        Op::Conv2d(Conv2d { bias, .. }) | Op::Linear(Linear { bias, .. }) => *bias,
        Op::AddConst { value } => Some(*value),
        other => unreachable!("{} has no bias", other.mnemonic()),
    };
    let channels = graph.shape(id).c;
    let zero = Small::scalar(0.0).rebuild(vec![channels], |_| vec![0.0; channels]);
    let old = old.map_or(zero.clone(), |t| Small::of(graph, t)).zip(&zero, |a, b| a + b);
    let sum = old.zip(constant, |a, b| a + b).store(graph);
    set_bias(graph, id, sum)
}

fn set_bias(graph: &mut Graph, id: NodeId, tensor: TensorId) -> Result<(), ShapeError> {
    let op = match graph.op(id).clone() {
        Op::Conv2d(conv) => Op::Conv2d(Conv2d { bias: Some(tensor), ..conv }),
        Op::Linear(linear) => Op::Linear(Linear { bias: Some(tensor), ..linear }),
        Op::AddConst { .. } => Op::AddConst { value: tensor },
        other => unreachable!("{} has no bias", other.mnemonic()),
    };
    graph.set_op(id, op, NAME)
}

/// Moves the constant past every consumer that lets it through; the others keep it.
fn move_forward(graph: &mut Graph, id: NodeId, value: TensorId) -> Result<bool, ShapeError> {
    let operand = graph.operands(id)[0];
    let constant = Small::of(graph, value);
    let mut moved = false;
    for (consumer, slot) in graph.uses(id) {
        match graph.op(consumer) {
            Op::Conv2d(_) | Op::Linear(_) => {
                let bias = through(graph, consumer, slot, &constant).store(graph);
                graph.set_operand(consumer, slot, operand);
                set_bias(graph, consumer, bias)?;
            }
            Op::AddConst { .. } => {
                graph.set_operand(consumer, slot, operand);
                add_to_bias(graph, consumer, &constant)?;
            }
            op if op.is_linear() => {
                let value = through(graph, consumer, slot, &constant).store(graph);
                graph.set_operand(consumer, slot, operand);
                let range = graph.node_mut(consumer).range.take();
                let after = graph.add_node(Op::AddConst { value }, &[consumer], Vec::new(), vec![NAME])?;
                graph.replace_uses(consumer, after);
                graph.node_mut(after).range = range;
            }
            _ => continue,
        }
        graph.touch(consumer, NAME);
        moved = true;
    }
    if graph.uses(id).is_empty() {
        graph.remove(id);
    }
    Ok(moved)
}

/// What a consumer makes of the constant in one operand and zero in the others. For a layer that is its new bias.
fn through(graph: &Graph, consumer: NodeId, slot: usize, constant: &Small) -> Small {
    let shapes: Vec<_> = graph.operands(consumer).iter().map(|&o| graph.shape(o)).collect();
    let images = graph.members().map(|m| {
        let values: Vec<Value> = shapes
            .iter()
            .enumerate()
            .map(|(i, &shape)| {
                let fill =
                    |k| if i == slot { broadcast(constant.member(m.index()), k, shape.len()) } else { 0.0 };
                Value { shape, data: (0..shape.len()).map(fill).collect() }
            })
            .collect();
        eval::apply(graph, consumer, &values.iter().collect::<Vec<_>>(), m)
    });
    let images: Vec<Value> = images.collect();
    let shape = images[0].shape;
    let area = shape.area();
    let per_channel = images.iter().all(|v| v.data.chunks(area).all(|c| c.iter().all(|x| *x == c[0])));
    let tensors = images.into_iter().map(|v| {
        if per_channel {
            Tensor::vector(v.data.into_iter().step_by(area).collect::<Vec<_>>())
        } else {
            Tensor::from_f64(shape.dims().to_vec(), v.data).expect("an image has its shape")
        }
    });
    Small::from_tensors(&tensors.collect::<Vec<_>>())
}
