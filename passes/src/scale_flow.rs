//! Moves one given factor per channel out of an edge into the constants around it.
//!
//! Unlike the rules of redistribution this does not search: a factor goes as far as it must, and where no constant can
//! take it an explicit scale remains. The caller checks what that costs.

use std::collections::BTreeMap;
use std::ops::Range;

use fhec_ir::{Conv2d, Graph, Linear, NodeId, Op, ShapeError, TensorId, ValueRange};

use crate::passage;
use crate::small::{Small, broadcast};

/// Multiplies the operand of a use by `v`, inside the producer if nobody else reads it.
pub(crate) fn pull_scale(
    graph: &mut Graph,
    (consumer, slot): (NodeId, usize),
    v: &Small,
    pass: &'static str,
) -> Result<(), ShapeError> {
    let producer = graph.operands(consumer)[slot];
    if graph.sole_use(producer).is_none() {
        return keep_scale(graph, (consumer, slot), v, pass);
    }
    match graph.op(producer).clone() {
        Op::Conv2d(conv) => {
            let weight = scale_weight(graph, conv.weight, v, &Small::scalar(1.0));
            let bias = conv.bias.map(|b| scale_small(graph, b, v));
            graph.set_op(producer, Op::Conv2d(Conv2d { weight, bias, ..conv }), pass)?;
        }
        Op::Linear(linear) => {
            let weight = scale_weight(graph, linear.weight, v, &Small::scalar(1.0));
            let bias = linear.bias.map(|b| scale_small(graph, b, v));
            graph.set_op(producer, Op::Linear(Linear { weight, bias }), pass)?;
        }
        Op::AddConst { value } => {
            let value = scale_small(graph, value, v);
            graph.set_op(producer, Op::AddConst { value }, pass)?;
            pull_scale(graph, (producer, 0), v, pass)?;
        }
        Op::Scale { factor } => {
            let factor = scale_small(graph, factor, v);
            graph.set_op(producer, Op::Scale { factor }, pass)?;
        }
        Op::Add => {
            pull_scale(graph, (producer, 0), v, pass)?;
            pull_scale(graph, (producer, 1), v, pass)?;
        }
        Op::Pool(_) => pull_scale(graph, (producer, 0), v, pass)?,
        Op::Pad(pad) => pull_scale(graph, (producer, 0), &passage::unpadded(v, &pad), pass)?,
        Op::Concat => {
            for (slot, channels) in joined_channels(graph, producer).into_iter().enumerate() {
                let v = passage::part(v, channels.start, channels.end);
                pull_scale(graph, (producer, slot), &v, pass)?;
            }
        }
        Op::Input { .. }
        | Op::BatchNorm { .. }
        | Op::Poly { .. }
        | Op::Bivar { .. }
        | Op::Mul
        | Op::Slice(_)
        | Op::Flatten
        | Op::Output => return keep_scale(graph, (consumer, slot), v, pass),
    }
    graph.touch(producer, pass);
    if let Some(range) = &mut graph.node_mut(producer).range {
        scale_range(range, v);
    }
    Ok(())
}

/// Multiplies the operand of a use by `v` where no constant takes it.
fn keep_scale(
    graph: &mut Graph,
    (consumer, slot): (NodeId, usize),
    v: &Small,
    pass: &'static str,
) -> Result<(), ShapeError> {
    let range = graph.node(graph.operands(consumer)[slot]).range.clone();
    let factor = v.store(graph);
    let scale = graph.insert_before((consumer, slot), Op::Scale { factor }, pass)?;
    graph.node_mut(scale).range = range.map(|mut range| {
        scale_range(&mut range, v);
        range
    });
    Ok(())
}

/// Lets every consumer of a value read it times `v`. Operands come before what reads them, so a concatenation that the factor
/// reaches on several ways passes it on once.
pub(crate) fn push_scale(
    graph: &mut Graph,
    id: NodeId,
    v: &Small,
    pass: &'static str,
) -> Result<(), ShapeError> {
    let mut places = vec![0; graph.bound()];
    for (place, id) in graph.topo_order().into_iter().enumerate() {
        places[id.index()] = place;
    }
    let mut divided = BTreeMap::from([(places[id.index()], (id, v.clone()))]);
    while let Some((_, (id, v))) = divided.pop_first() {
        for (consumer, slot) in graph.uses(id) {
            let Some(passed) = push_into(graph, (consumer, slot), &v, pass)? else { continue };
            let place = places[consumer.index()];
            let all = divided.remove(&place).map_or(passed.clone(), |(_, f)| f.zip(&passed, |a, b| a * b));
            divided.insert(place, (consumer, all));
        }
    }
    Ok(())
}

/// Lets one consumer read its operand times `v`, and returns what is to be made good behind it.
fn push_into(
    graph: &mut Graph,
    (consumer, slot): (NodeId, usize),
    v: &Small,
    pass: &'static str,
) -> Result<Option<Small>, ShapeError> {
    let one = Small::scalar(1.0);
    let passed = match graph.op(consumer).clone() {
        Op::Conv2d(conv) => {
            let weight = scale_weight(graph, conv.weight, &one, v);
            return graph.set_op(consumer, Op::Conv2d(Conv2d { weight, ..conv }), pass).map(|()| None);
        }
        Op::Linear(linear) => {
            let each = passage::into_weight(v, graph.tensor(linear.weight).dims());
            let weight = scale_weight(graph, linear.weight, &one, &each);
            return graph.set_op(consumer, Op::Linear(Linear { weight, ..linear }), pass).map(|()| None);
        }
        Op::Scale { factor } => {
            let factor = scale_small(graph, factor, v);
            return graph.set_op(consumer, Op::Scale { factor }, pass).map(|()| None);
        }
        Op::AddConst { value } => {
            let value = scale_small(graph, value, &v.map(f64::recip));
            graph.set_op(consumer, Op::AddConst { value }, pass)?;
            v.clone()
        }
        Op::Pool(_) => v.clone(),
        Op::Flatten => passage::flattened(v, graph.shape(graph.operands(consumer)[0])),
        Op::Slice(slice) => passage::sliced(v, &slice),
        Op::Concat => {
            let channels = &joined_channels(graph, consumer)[slot];
            passage::placed(v, channels.clone(), graph.shape(consumer).c)
        }
        Op::Input { .. }
        | Op::BatchNorm { .. }
        | Op::Poly { .. }
        | Op::Bivar { .. }
        | Op::Add
        | Op::Mul
        | Op::Pad(_)
        | Op::Output => {
            let factor = v.store(graph);
            return graph.insert_before((consumer, slot), Op::Scale { factor }, pass).map(|_| None);
        }
    };
    graph.touch(consumer, pass);
    if let Some(range) = &mut graph.node_mut(consumer).range {
        scale_range(range, &passed.map(f64::recip));
    }
    Ok(Some(passed))
}

/// The channels of a concatenation that come from every operand.
fn joined_channels(graph: &Graph, concat: NodeId) -> Vec<Range<usize>> {
    let mut end = 0;
    let part = |operand: &NodeId| {
        let start = end;
        end += graph.shape(*operand).c;
        start..end
    };
    graph.operands(concat).iter().map(part).collect()
}

/// Multiplies a range by one factor per channel.
pub(crate) fn scale_range(range: &mut ValueRange, v: &Small) {
    let n = range.lo.len();
    for c in 0..n {
        let (lo, hi) = (range.lo[c], range.hi[c]);
        let ends = v.members().iter().map(|m| broadcast(m, c, n)).flat_map(|f| [lo * f, hi * f]);
        let ends: Vec<f64> = ends.collect();
        range.lo[c] = ends.iter().copied().fold(f64::INFINITY, f64::min);
        range.hi[c] = ends.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    }
}

/// The range of a sum with one constant per channel.
pub(crate) fn shifted(range: &ValueRange, shift: &Small) -> ValueRange {
    let n = range.lo.len();
    let extreme = |c: usize, pick: fn(f64, f64) -> f64| {
        shift.members().iter().map(|m| broadcast(m, c, n)).reduce(pick).unwrap_or(0.0)
    };
    ValueRange {
        lo: range.lo.iter().enumerate().map(|(c, lo)| lo + extreme(c, f64::min)).collect(),
        hi: range.hi.iter().enumerate().map(|(c, hi)| hi + extreme(c, f64::max)).collect(),
    }
}

/// A small constant with one factor per channel.
pub(crate) fn scale_small(graph: &mut Graph, id: TensorId, v: &Small) -> TensorId {
    Small::of(graph, id).zip(v, |a, b| a * b).store(graph)
}

/// A weight with factors on its outputs and inputs, for every member.
pub(crate) fn scale_weight(graph: &mut Graph, id: TensorId, out: &Small, input: &Small) -> TensorId {
    let shared =
        graph.weights().members(id).len() == 1 && out.members().len() == 1 && input.members().len() == 1;
    let members = graph.members().take(if shared { 1 } else { graph.n_members() });
    let scaled =
        members.map(|m| graph.weights().member(id, m).scaled(out.member(m.index()), input.member(m.index())));
    let scaled = scaled.collect();
    graph.add_member_tensors(scaled)
}
