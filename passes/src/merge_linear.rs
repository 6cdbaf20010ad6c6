//! Merges two linear layers in a row into one (ours).
//!
//! - flattening before a dense layer disappears: a dense layer reads images;
//! - pooling before a dense layer, and a dense layer before a dense layer, become one dense layer;
//! - pooling that still costs a level goes into the convolution after it, whose kernel grows to
//!   (k − 1)·s + p for a pooling window p ≤ s.
//!
//! Before: verified tensor graph. After: same outputs, never deeper.

use std::collections::BTreeSet;

use fhec_ir::{Conv2d, Divisor, Graph, Linear, NodeId, Op, Pads, Pool, Shape, Tensor, TensorId, Value, eval};

use crate::pass::{Changed, Pass, PassCx, PassError};

/// The pass.
pub struct MergeLinear;

const NAME: &str = "merge-linear";

/// A merged weight is not worth more memory than this many numbers.
const LARGEST_WEIGHT: usize = 1 << 22;

impl Pass for MergeLinear {
    fn name(&self) -> &'static str {
        NAME
    }

    fn summary(&self) -> &'static str {
        "merge pooling and dense layers into the linear layer after them"
    }

    fn run(&self, graph: &mut Graph, cx: &mut PassCx) -> Result<Changed, PassError> {
        let mut changed = Changed::No;
        let order = graph.topo_order();
        let mut places = vec![0; graph.bound()];
        order.iter().enumerate().for_each(|(place, id)| places[id.index()] = place);
        // By place: whoever may still merge with its consumer.
        let mut waiting: BTreeSet<usize> = (0..order.len()).collect();
        while let Some(place) = waiting.pop_first() {
            let first = order[place];
            let Some(merge) = find(graph, first) else { continue };
            // What is read by another node now may merge with that.
            let operands = graph.operands(first);
            apply(graph, first, merge)?;
            waiting.extend(operands.into_iter().map(|id| places[id.index()]));
            cx.count("merged", 1);
            changed = Changed::Yes;
        }
        graph.remove_dead();
        Ok(changed)
    }
}

/// What becomes of a node and its only consumer.
enum Merge {
    /// The node disappears.
    Drop,
    /// Both become one dense layer over the operand of the first.
    Dense(NodeId, Linear),
    /// Both become one convolution over the operand of the first.
    Conv(NodeId, Pool, Conv2d),
}

/// How a node merges with its consumer.
fn find(graph: &Graph, first: NodeId) -> Option<Merge> {
    let second = graph.sole_use(first)?;
    match (graph.op(first), graph.op(second)) {
        (Op::Flatten, Op::Linear(_)) => Some(Merge::Drop),
        (Op::Pool(_) | Op::Linear(_), Op::Linear(linear)) if dense_pays(graph, first, second) => {
            Some(Merge::Dense(second, linear.clone()))
        }
        (Op::Pool(pool), Op::Conv2d(conv)) if conv_pays(graph, first, pool, conv) => {
            Some(Merge::Conv(second, *pool, conv.clone()))
        }
        _ => None,
    }
}

/// The merged weight stays small, and merging two dense layers does not multiply more.
fn dense_pays(graph: &Graph, first: NodeId, second: NodeId) -> bool {
    let n_inputs = graph.shape(graph.operands(first)[0]).len();
    let n_outputs = graph.shape(second).c;
    let merged = n_inputs.saturating_mul(n_outputs);
    let hidden = graph.shape(first).len();
    merged <= LARGEST_WEIGHT
        && (matches!(graph.op(first), Op::Pool(_)) || merged <= hidden * (n_inputs + n_outputs))
}

/// The pooling costs a level, and zero padding of the convolution is zero padding of the operand.
fn conv_pays(graph: &Graph, first: NodeId, pool: &Pool, conv: &Conv2d) -> bool {
    let x = graph.shape(graph.operands(first)[0]);
    let y = graph.shape(first);
    let covers = |axis: usize, n: usize, m: usize| {
        pool.kernel[axis] <= pool.stride[axis] && n <= m * pool.stride[axis]
    };
    matches!(pool.divisor, Divisor::Constant(k) if k != 1.0)
        && pool.pads.is_none()
        && conv.dilation == [1, 1]
        && covers(0, x.h, y.h)
        && covers(1, x.w, y.w)
}

fn apply(graph: &mut Graph, first: NodeId, merge: Merge) -> Result<(), PassError> {
    match merge {
        Merge::Drop => graph.bypass(first),
        Merge::Dense(second, linear) => {
            let weight = map_members(graph, linear.weight, |graph, w, m| dense_weight(graph, first, w, m));
            let shape = graph.shape(graph.operands(first)[0]);
            let zero = Value { shape, data: vec![0.0; shape.len()] };
            // What both layers make of zero is the merged bias.
            let biases: Vec<Tensor> = graph
                .members()
                .map(|m| {
                    let hidden = eval::apply(graph, first, &[&zero], m);
                    Tensor::vector(eval::apply(graph, second, &[&hidden], m).data)
                })
                .collect();
            let bias = (!biases.iter().all(|b| b.is_all(0.0))).then(|| graph.add_member_tensors(biases));
            replace(graph, first, second, Op::Linear(Linear { weight, bias }))?;
        }
        Merge::Conv(second, pool, conv) => {
            let (x, y) = (graph.shape(graph.operands(first)[0]), graph.shape(first));
            let weight = map_members(graph, conv.weight, |_, w, _| conv_weight(&pool, w));
            let end = |axis: usize, n: usize, m: usize, pad: usize| {
                ((m - 1 + pad) * pool.stride[axis] + pool.kernel[axis]).saturating_sub(n)
            };
            let pads = Pads {
                top: conv.pads.top * pool.stride[0],
                left: conv.pads.left * pool.stride[1],
                bottom: end(0, x.h, y.h, conv.pads.bottom),
                right: end(1, x.w, y.w, conv.pads.right),
            };
            let stride = [conv.stride[0] * pool.stride[0], conv.stride[1] * pool.stride[1]];
            replace(graph, first, second, Op::Conv2d(Conv2d { weight, pads, stride, ..conv }))?;
        }
    }
    Ok(())
}

/// The second node computes both from the operand of the first.
fn replace(graph: &mut Graph, first: NodeId, second: NodeId, op: Op) -> Result<(), PassError> {
    let x = graph.operands(first)[0];
    graph.set_operand(second, 0, x);
    let mut origins = std::mem::take(&mut graph.node_mut(first).origins);
    origins.append(&mut graph.node_mut(second).origins);
    graph.node_mut(second).origins = origins;
    graph.set_op(second, op, NAME)?;
    graph.remove(first);
    Ok(())
}

/// A new weight from the old one of every member.
fn map_members(
    graph: &mut Graph,
    weight: TensorId,
    f: impl Fn(&Graph, &Tensor, fhec_ir::MemberIdx) -> Tensor,
) -> TensorId {
    let members: Vec<Tensor> =
        graph.members().map(|m| f(graph, graph.weights().member(weight, m), m)).collect();
    graph.add_member_tensors(members)
}

/// The weight of `second ∘ first` for a dense second layer.
fn dense_weight(graph: &Graph, first: NodeId, second: &Tensor, member: fhec_ir::MemberIdx) -> Tensor {
    let x = graph.shape(graph.operands(first)[0]);
    let y = graph.shape(first);
    let (n_outputs, w) = (second.dims()[0], second.to_f64());
    let mut merged = vec![0.0; n_outputs * x.len()];
    for (row, target) in w.chunks(y.len()).zip(merged.chunks_mut(x.len())) {
        match graph.op(first) {
            Op::Pool(pool) => spread_pool(pool, row, target, x, y),
            Op::Linear(linear) => {
                let inner = graph.weights().member(linear.weight, member);
                for (factor, inner) in row.iter().zip(inner.to_f64().chunks(x.len())) {
                    target.iter_mut().zip(inner).for_each(|(t, v)| *t += factor * v);
                }
            }
            other => unreachable!("{} does not merge", other.mnemonic()),
        }
    }
    Tensor::from_f64(vec![n_outputs, x.len()], merged).expect("one number per input and output")
}

/// Gives every cell under a window its share of the weight of the window.
fn spread_pool(pool: &Pool, row: &[f64], target: &mut [f64], x: Shape, y: Shape) {
    let window = |o: usize, axis: usize, pad: usize, extent: usize| {
        let first = o * pool.stride[axis];
        first.saturating_sub(pad)..(first + pool.kernel[axis]).saturating_sub(pad).min(extent)
    };
    for (i, weight) in row.iter().enumerate() {
        let rows = window(i % y.area() / y.w, 0, pool.pads.top, x.h);
        let columns = window(i % y.w, 1, pool.pads.left, x.w);
        let share = match pool.divisor {
            Divisor::Constant(k) => weight / k,
            Divisor::ExcludePad => weight / (rows.len() * columns.len()).max(1) as f64,
        };
        for r in rows {
            for c in columns.clone() {
                target[(i / y.area() * x.h + r) * x.w + c] += share;
            }
        }
    }
}

/// Every tap becomes a window of equal taps.
fn conv_weight(pool: &Pool, weight: &Tensor) -> Tensor {
    let Divisor::Constant(k) = pool.divisor else { unreachable!("only constant divisors merge") };
    let [out, channels, kh, kw] = *weight.dims() else { unreachable!("shape inference checked the weight") };
    let (h, w) = ((kh - 1) * pool.stride[0] + pool.kernel[0], (kw - 1) * pool.stride[1] + pool.kernel[1]);
    let mut merged = vec![0.0; out * channels * h * w];
    for (i, value) in weight.to_f64().iter().enumerate() {
        let (image, y, x) = (i / (kh * kw), i / kw % kh * pool.stride[0], i % kw * pool.stride[1]);
        for dy in 0..pool.kernel[0] {
            for dx in 0..pool.kernel[1] {
                merged[(image * h + y + dy) * w + x + dx] += value / k;
            }
        }
    }
    Tensor::from_f64(vec![out, channels, h, w], merged).expect("one number per tap")
}
