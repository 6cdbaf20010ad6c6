//! A multiple of a value, computed beside it.
//!
//! Layers are linear, so a factor per channel of a value is a factor on weights of a copy of the layer that makes it. Values
//! that are ready earlier than they are needed take the factor as a scale of its own, which is cheaper than a copy of their
//! layer. Nothing that is there already changes.

use std::collections::BTreeMap;

use fhec_ir::cost::{Depths, operand_costs};
use fhec_ir::{Conv2d, Graph, Linear, NodeId, Op, ShapeError};

use crate::passage;
use crate::scale_flow::{scale_range, scale_small, scale_weight};
use crate::small::Small;

/// Where multiples are made. One that was made is made no second time, however many ways lead to its value.
pub(crate) struct Beside<'d> {
    /// The depth of every value that is there already.
    pub(crate) depths: &'d Depths,
    /// The pass that asks.
    pub(crate) pass: &'static str,
    made: BTreeMap<(NodeId, u32), Vec<(Small, NodeId)>>,
}

impl<'d> Beside<'d> {
    /// Nothing yet.
    pub(crate) fn new(depths: &'d Depths, pass: &'static str) -> Self {
        Self { depths, pass, made: BTreeMap::new() }
    }

    /// `v` times a value, at no more than the depth `limit` if any layer before it can take the factor.
    pub(crate) fn multiple(
        &mut self,
        graph: &mut Graph,
        id: NodeId,
        v: &Small,
        limit: u32,
    ) -> Result<NodeId, ShapeError> {
        if v.is_all(1.0) {
            return Ok(id);
        }
        let known = self.made.get(&(id, limit)).and_then(|made| made.iter().find(|(factor, _)| factor == v));
        if let Some((_, made)) = known {
            return Ok(*made);
        }
        // Padding is a view of what it reads: the factor goes before it, where those that come from further up meet it.
        let has_slack = self.depths.of(id) < limit && !matches!(graph.op(id), Op::Pad(_));
        let made = if has_slack { None } else { self.copied(graph, id, v, limit)? };
        let made = match made {
            Some(made) => made,
            None => {
                let factor = v.store(graph);
                graph.add_node(Op::Scale { factor }, &[id], Vec::new(), vec![self.pass])?
            }
        };
        graph.node_mut(made).range = graph.node(id).range.clone().map(|mut range| {
            scale_range(&mut range, v);
            range
        });
        self.made.entry((id, limit)).or_default().push((v.clone(), made));
        Ok(made)
    }

    /// The operation of a value once more, with the factor in its constants or in those before it.
    fn copied(
        &mut self,
        graph: &mut Graph,
        id: NodeId,
        v: &Small,
        limit: u32,
    ) -> Result<Option<NodeId>, ShapeError> {
        let operands = graph.operands(id);
        let one = Small::scalar(1.0);
        let before = limit.saturating_sub(operand_costs(graph.op(id), graph.weights()).max());
        let (op, factors) = match graph.op(id).clone() {
            Op::Conv2d(conv) => {
                let weight = scale_weight(graph, conv.weight, v, &one);
                let bias = conv.bias.map(|b| scale_small(graph, b, v));
                (Op::Conv2d(Conv2d { weight, bias, ..conv }), vec![one])
            }
            Op::Linear(linear) => {
                let weight = scale_weight(graph, linear.weight, v, &one);
                let bias = linear.bias.map(|b| scale_small(graph, b, v));
                (Op::Linear(Linear { weight, bias }), vec![one])
            }
            Op::BatchNorm { scale, shift } => {
                let (scale, shift) = (scale_small(graph, scale, v), scale_small(graph, shift, v));
                (Op::BatchNorm { scale, shift }, vec![one])
            }
            Op::Scale { factor } => (Op::Scale { factor: scale_small(graph, factor, v) }, vec![one]),
            Op::AddConst { value } => (Op::AddConst { value: scale_small(graph, value, v) }, vec![v.clone()]),
            op @ Op::Add => (op, vec![v.clone(); 2]),
            op @ Op::Pool(_) => (op, vec![v.clone()]),
            Op::Pad(pad) => (Op::Pad(pad), vec![passage::unpadded(v, &pad)]),
            op @ Op::Concat => {
                let ends = operands.iter().scan(0, |end, o| {
                    *end += graph.shape(*o).c;
                    Some(*end)
                });
                let parts =
                    ends.zip(&operands).map(|(end, o)| passage::part(v, end - graph.shape(*o).c, end));
                (op, parts.collect())
            }
            op @ Op::Flatten if v.len() == 1 => (op, vec![v.clone()]),
            Op::Input { .. }
            | Op::Poly { .. }
            | Op::Bivar { .. }
            | Op::Mul
            | Op::Slice(_)
            | Op::Flatten
            | Op::Output => return Ok(None),
        };
        let mut from = Vec::new();
        for (operand, factor) in operands.into_iter().zip(&factors) {
            from.push(self.multiple(graph, operand, factor, before)?);
        }
        let origins = graph.node(id).origins.clone();
        Ok(Some(graph.add_node(op, &from, origins, vec![self.pass])?))
    }
}
