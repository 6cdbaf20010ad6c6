//! Takes channels out of the nodes of a group and of the layers that read them.

use std::collections::BTreeMap;

use fhec_ir::{Conv2d, Graph, Linear, MemberIdx, NodeId, Op, Shape, Tensor, TensorId, Value, eval};

use super::{Group, NAME};
use crate::pass::PassError;

pub(super) fn apply(graph: &mut Graph, group: &Group, images: &Images) -> Result<(), PassError> {
    let readers: Vec<(NodeId, NodeId)> = group
        .nodes
        .iter()
        .flat_map(|&id| graph.uses(id).into_iter().map(move |(reader, _)| (id, reader)))
        .filter(|(_, reader)| matches!(graph.op(*reader), Op::Conv2d(_) | Op::Linear(_)))
        .collect();
    for &(source, reader) in &readers {
        hold_constant(graph, source, reader, images)?;
    }
    let kept: Vec<usize> = (0..graph.shape(group.nodes[0]).c).filter(|c| !group.pruned.contains(c)).collect();
    for &(source, reader) in &readers {
        drop_inputs(graph, reader, graph.shape(source), &kept)?;
    }
    for &id in &group.nodes {
        drop_channels(graph, id, &kept)?;
    }
    for &(_, reader) in &readers {
        let op = graph.op(reader).clone();
        graph.set_op(reader, op, NAME)?;
    }
    Ok(())
}

/// What the pruned channels of nodes hold, zero elsewhere, by member.
pub(super) type Images = Vec<BTreeMap<NodeId, Value>>;

/// The pruned channels of every node that a layer reads. They are the same for any input, so a zero input shows them.
pub(super) fn constant_images(graph: &Graph, groups: &[Group]) -> Result<Images, PassError> {
    let mut pruned: BTreeMap<NodeId, &[usize]> = BTreeMap::new();
    for group in groups {
        pruned.extend(group.nodes.iter().map(|&id| (id, group.pruned.as_slice())));
    }
    let zeros: Vec<Vec<f64>> = graph.inputs().iter().map(|&id| vec![0.0; graph.shape(id).len()]).collect();
    let slices: Vec<&[f64]> = zeros.iter().map(Vec::as_slice).collect();
    let mut members = Vec::new();
    for member in graph.members() {
        let mut images = BTreeMap::new();
        eval::evaluate_with(graph, &slices, member, |id, value| {
            if let Some(pruned) = pruned.get(&id) {
                let area = value.shape.area();
                let keep = |(i, x): (usize, &f64)| if pruned.contains(&(i / area)) { *x } else { 0.0 };
                let data = value.data.iter().enumerate().map(keep).collect();
                images.insert(id, Value { shape: value.shape, data });
            }
        })?;
        members.push(images);
    }
    Ok(members)
}

/// The new bias of a reader is what it makes of the constant channels alone.
fn hold_constant(
    graph: &mut Graph,
    source: NodeId,
    reader: NodeId,
    images: &Images,
) -> Result<(), PassError> {
    let shape = graph.shape(reader);
    let biases: Vec<Value> = images
        .iter()
        .enumerate()
        .map(|(m, images)| {
            let image = &images[&source];
            eval::apply(graph, reader, &[image], MemberIdx(m as u32))
        })
        .collect();
    let per_channel =
        biases.iter().all(|b| b.data.chunks(shape.area()).all(|c| c.iter().all(|x| *x == c[0])));
    let tensors = biases.into_iter().map(|b| {
        if per_channel {
            Tensor::vector(b.data.into_iter().step_by(shape.area()).collect::<Vec<_>>())
        } else {
            Tensor::from_f64(shape.dims().to_vec(), b.data).expect("a bias has the shape of the value")
        }
    });
    let tensors = tensors.collect();
    let bias = Some(graph.add_member_tensors(tensors));
    let op = match graph.op(reader).clone() {
        Op::Conv2d(conv) => Op::Conv2d(Conv2d { bias, ..conv }),
        Op::Linear(linear) => Op::Linear(Linear { bias, ..linear }),
        other => unreachable!("{} is no layer", other.mnemonic()),
    };
    graph.set_op(reader, op, NAME)?;
    Ok(())
}

/// A layer without the weights of pruned channels. Its shape is checked once its operand has shrunk.
fn drop_inputs(graph: &mut Graph, reader: NodeId, source: Shape, kept: &[usize]) -> Result<(), PassError> {
    let op = match graph.op(reader).clone() {
        Op::Conv2d(conv) => {
            let taps: usize = graph.tensor(conv.weight).dims()[2..].iter().product();
            let weight = take(graph, conv.weight, 1, taps, kept);
            Op::Conv2d(Conv2d { weight, ..conv })
        }
        Op::Linear(linear) => {
            let weight = take(graph, linear.weight, 1, source.area(), kept);
            Op::Linear(Linear { weight, ..linear })
        }
        other => unreachable!("{} is no layer", other.mnemonic()),
    };
    graph.node_mut(reader).op = op;
    Ok(())
}

/// A node of the group with the kept channels only.
fn drop_channels(graph: &mut Graph, id: NodeId, kept: &[usize]) -> Result<(), PassError> {
    let channels = graph.shape(id).c;
    let old = graph.op(id).clone();
    let axis = old.channel_axis();
    let op = old.map_tensors(|tensor| {
        let t = graph.tensor(tensor);
        let width = if axis == 0 { t.len() / channels } else { 1 };
        if t.dims()[axis] == 1 { tensor } else { take(graph, tensor, axis, width, kept) }
    });
    if let Some(range) = &mut graph.node_mut(id).range {
        range.lo = kept.iter().map(|&c| range.lo[c]).collect();
        range.hi = kept.iter().map(|&c| range.hi[c]).collect();
    }
    graph.set_op(id, op, NAME)?;
    Ok(())
}

/// The kept indices of one axis; `width` consecutive numbers belong to an index.
fn take(graph: &mut Graph, id: TensorId, axis: usize, width: usize, kept: &[usize]) -> TensorId {
    let shrink = |t: &Tensor| {
        let n = if axis == 0 { t.len() } else { t.len() / t.dims()[0] };
        let values = t.to_f64();
        let data: Vec<f64> = values
            .chunks(n)
            .flat_map(|row| kept.iter().flat_map(move |&c| row[c * width..(c + 1) * width].iter().copied()))
            .collect();
        let mut dims = t.dims().to_vec();
        let per_index = n / width;
        dims[axis] = dims[axis] / per_index * kept.len();
        Tensor::from_f64(dims, data).expect("the extents follow the numbers")
    };
    let members: Vec<Tensor> = graph.weights().members(id).iter().map(shrink).collect();
    graph.add_member_tensors(members)
}
