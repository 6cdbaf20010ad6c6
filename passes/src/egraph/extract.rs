//! From the cheapest terms of an e-graph back to a tensor graph. Constants are computed here, once.

use std::collections::BTreeMap;

use egg::{Id, Language};
use fhec_ir::{Conv2d, Divisor, Graph, Linear, NodeId, Op, Pool, Shape, TensorId, ValueRange};

use super::facts::{EGraph, Fact};
use super::language::{Lang, constant};
use super::select::Selection;
use crate::pass::PassError;
use crate::scale_flow::scale_weight;
use crate::small::{Small, broadcast};

/// Rebuilds a graph from the best node of every class the outputs need.
pub(super) fn extract(
    graph: &Graph,
    egraph: &EGraph,
    selection: &Selection<'_>,
    root: Id,
    pass: &'static str,
) -> Result<Graph, PassError> {
    let mut rebuild = Rebuild {
        old: graph,
        new: graph.empty_like(),
        egraph,
        ids: graph.ids().map(|id| (id.index() as u32, id)).collect(),
        done: BTreeMap::new(),
        stored: BTreeMap::new(),
        pass,
    };
    for input in graph.inputs() {
        let node = graph.node(input);
        let id = rebuild.new.add_node(node.op.clone(), &[], node.origins.clone(), node.history.clone())?;
        rebuild.new.node_mut(id).range = node.range.clone();
        let class = egraph.lookup(Lang::Input(super::language::InputId(input.index() as u32)));
        rebuild.done.insert(egraph.find(class.expect("every input was added")), id);
    }
    let Lang::Outputs(outputs) = selection.node(root) else { unreachable!("the root holds the outputs") };
    for (output, class) in graph.outputs().into_iter().zip(outputs) {
        let value = rebuild.value(selection, *class)?;
        let node = graph.node(output);
        let id = rebuild.new.add_node(Op::Output, &[value], node.origins.clone(), node.history.clone())?;
        rebuild.new.node_mut(id).range = node.range.clone();
    }
    let mut new = rebuild.new;
    new.remove_dead();
    Ok(new)
}

struct Rebuild<'g> {
    old: &'g Graph,
    new: Graph,
    egraph: &'g EGraph,
    /// Original nodes by number.
    ids: BTreeMap<u32, NodeId>,
    /// Nodes of classes that are done.
    done: BTreeMap<Id, NodeId>,
    /// Tensors of constant classes that are stored, by the channels that they are for where that matters.
    stored: BTreeMap<(Id, usize), TensorId>,
    pass: &'static str,
}

impl Rebuild<'_> {
    /// The new node of a class; its operands first. A stack of its own, because networks are deep.
    fn value(&mut self, selection: &Selection<'_>, class: Id) -> Result<NodeId, PassError> {
        let mut stack = vec![self.egraph.find(class)];
        while let Some(&top) = stack.last() {
            if self.done.contains_key(&top) {
                stack.pop();
                continue;
            }
            let best = selection.node(top);
            let operands = self.operands(selection, best);
            let missing: Vec<Id> =
                operands.iter().rev().filter(|c| !self.done.contains_key(c)).copied().collect();
            if missing.is_empty() {
                let operands: Vec<NodeId> = operands.iter().map(|c| self.done[c]).collect();
                let node = self.node(best, &operands, top)?;
                self.done.insert(top, node);
                stack.pop();
            } else {
                stack.extend(missing);
            }
        }
        Ok(self.done[&self.egraph.find(class)])
    }

    /// The values that a node reads. Nested pairs become one concatenation again, and what is inside of it needs no node.
    fn operands(&self, selection: &Selection<'_>, node: &Lang) -> Vec<Id> {
        let is_value = |id: &&Id| matches!(self.egraph[**id].data, Fact::Value(_));
        let mut operands: Vec<Id> = node.children().iter().filter(is_value).copied().collect();
        if let Lang::Concat([first, rest]) = *node {
            operands = vec![first];
            let mut rest = rest;
            while let Lang::Concat([first, others]) = *selection.node(rest) {
                operands.push(first);
                rest = others;
            }
            operands.push(rest);
        }
        operands.into_iter().map(|id| self.egraph.find(id)).collect()
    }

    fn node(&mut self, best: &Lang, x: &[NodeId], class: Id) -> Result<NodeId, PassError> {
        let one = |id: &Id| super::cost::is_one(&self.egraph[*id].data);
        let c = self.egraph[class].data.value().shape.c;
        let op = match best {
            Lang::Conv([a, w, b, _]) => {
                let Op::Conv2d(conv) = self.original(*a).clone() else {
                    unreachable!("attributes of a convolution")
                };
                let (weight, bias) = (self.weight(*w), self.bias(*b, class));
                Op::Conv2d(Conv2d { weight, bias, ..conv })
            }
            Lang::Linear([_, w, b, _]) => {
                Op::Linear(Linear { weight: self.weight(*w), bias: self.bias(*b, class) })
            }
            Lang::Bn([s, t, _]) if one(s) => Op::AddConst { value: self.small(*t, c) },
            Lang::Bn([s, t, _]) => Op::BatchNorm { scale: self.small(*s, c), shift: self.small(*t, c) },
            Lang::Pool([a, f, _]) => return self.pool(*a, *f, x[0], class),
            Lang::Slice([a, _]) | Lang::Pad([a, _]) => self.original(*a).clone(),
            Lang::Other(children) => self.original(children[0]).clone(),
            Lang::Poly([coeffs, _]) => Op::Poly { coeffs: self.small(*coeffs, c) },
            Lang::Bivar([coeffs, ..]) => Op::Bivar { coeffs: self.small(*coeffs, c) },
            Lang::Scale([v, _]) if one(v) => return Ok(x[0]),
            Lang::Scale([v, _]) => Op::Scale { factor: self.small(*v, c) },
            Lang::Shift([t, _]) => Op::AddConst { value: self.small(*t, c) },
            Lang::Add(_) => Op::Add,
            Lang::Prod(_) => Op::Mul,
            Lang::Concat(_) => Op::Concat,
            Lang::Flatten(_) => Op::Flatten,
            constant!() | Lang::Input(_) | Lang::Outputs(_) => {
                unreachable!("{best} is no value that is rebuilt")
            }
        };
        let attribute = best.children().iter().find_map(|c| match self.egraph[*c].data {
            Fact::Attribute(node) => Some(node),
            Fact::Value(_) | Fact::Small(_) | Fact::Weight(_) | Fact::Absent => None,
        });
        self.push(op, x, class, attribute)
    }

    /// Appends a node with the names of the nodes it stands for, and the range of its value.
    fn push(&mut self, op: Op, x: &[NodeId], class: Id, attribute: Option<u32>) -> Result<NodeId, PassError> {
        let value = self.egraph[class].data.value();
        let same = value.source.as_ref().filter(|(_, factor)| factor.is_all(1.0)).map(|(node, _)| *node);
        let mut sources: Vec<u32> = attribute.into_iter().chain(same).collect();
        if sources.is_empty() {
            sources.extend(value.source.as_ref().map(|(node, _)| *node));
        }
        sources.dedup();
        let olds = sources.iter().map(|n| self.old.node(self.ids[n]));
        let mut origins: Vec<String> = Vec::new();
        let mut history: Vec<&'static str> = Vec::new();
        let mut unchanged = false;
        for old in olds {
            let fresh: Vec<String> = old.origins.iter().filter(|o| !origins.contains(o)).cloned().collect();
            origins.extend(fresh);
            let fresh: Vec<&'static str> =
                old.history.iter().filter(|h| !history.contains(h)).copied().collect();
            history.extend(fresh);
            unchanged |= self.is_unchanged(&old.op, &op);
        }
        if !unchanged {
            history.push(self.pass);
        }
        let range = self.range(class);
        let id = self.new.add_node(op, x, origins, history)?;
        self.new.node_mut(id).range = range;
        Ok(id)
    }

    /// Whether an operation is the old one; a small constant may have moved to an id of equal values.
    fn is_unchanged(&self, old: &Op, new: &Op) -> bool {
        let same = |(a, b): (&TensorId, &TensorId)| {
            a == b || self.old.weights().members(*a) == self.new.weights().members(*b)
        };
        let (old_ids, new_ids) = (old.tensors(), new.tensors());
        old_ids.len() == new_ids.len()
            && old.map_tensors(|_| old_ids[0]) == new.map_tensors(|_| old_ids[0])
            && old_ids.iter().zip(&new_ids).all(same)
    }

    /// The range of a value that is a multiple of an original one.
    fn range(&self, class: Id) -> Option<ValueRange> {
        let (node, factor) = self.egraph[class].data.value().source.clone()?;
        let range = self.old.node(self.ids[&node]).range.as_ref()?;
        let n = range.lo.len();
        let mut scaled = ValueRange { lo: vec![f64::INFINITY; n], hi: vec![f64::NEG_INFINITY; n] };
        for member in factor.members() {
            for c in 0..n {
                let v = broadcast(member, c, n);
                scaled.lo[c] = scaled.lo[c].min((range.lo[c] * v).min(range.hi[c] * v));
                scaled.hi[c] = scaled.hi[c].max((range.lo[c] * v).max(range.hi[c] * v));
            }
        }
        Some(scaled)
    }

    fn original(&self, attribute: Id) -> &Op {
        &self.egraph.analysis.nodes[&self.egraph[attribute].data.attribute()].op
    }

    /// A constant for `n_channels`. One number stands for equal numbers of however many channels, so a class may hold leaves
    /// of several lengths.
    fn small(&mut self, class: Id, n_channels: usize) -> TensorId {
        let class = self.egraph.find(class);
        let (old, egraph) = (self.old, self.egraph);
        let small = egraph[class].data.small();
        let length = if small.dims == [1] { n_channels } else { 0 };
        if let Some(&id) = self.stored.get(&(class, length)) {
            return id;
        }
        let fits = |id: &TensorId| {
            let dims = old.weights().get(*id).dims();
            dims == small.dims || dims == [length]
        };
        let constants = egraph[class].nodes.iter().filter_map(Lang::constant);
        let leaf = constants.filter_map(|c| old.weights().id_at(c.0 as usize)).find(fits);
        let id = leaf.unwrap_or_else(|| small.store(&mut self.new));
        self.stored.insert((class, length), id);
        id
    }

    fn weight(&mut self, class: Id) -> TensorId {
        let class = self.egraph.find(class);
        if let Some(&id) = self.stored.get(&(class, 0)) {
            return id;
        }
        let fact = self.egraph[class].data.weight();
        let leaf =
            self.old.weights().id_at(fact.leaf.0 as usize).expect("weights are leaves of the old graph");
        let id = if fact.out.is_all(1.0) && fact.input.is_all(1.0) {
            leaf
        } else {
            scale_weight(&mut self.new, leaf, &fact.out, &fact.input)
        };
        self.stored.insert((class, 0), id);
        id
    }

    /// A bias has one number per channel, or per position, or vanishes when it is zero.
    fn bias(&mut self, class: Id, conv: Id) -> Option<TensorId> {
        let Fact::Small(bias) = &self.egraph[class].data else { return None };
        if bias.is_all(0.0) {
            return None;
        }
        let Shape { c, .. } = self.egraph[conv].data.value().shape;
        if bias.len() >= c {
            return Some(self.small(class, c));
        }
        let expanded: Small = bias.rebuild(vec![c], |b| vec![b[0]; c]);
        Some(expanded.store(&mut self.new))
    }

    /// A pooling whose factor is not the same for all channels is a sum pooling and a scale.
    fn pool(&mut self, attribute: Id, factor: Id, x: NodeId, class: Id) -> Result<NodeId, PassError> {
        let Op::Pool(pool) = *self.original(attribute) else { unreachable!("attributes of a pooling") };
        let values = self.egraph[factor].data.small();
        let node = self.egraph[attribute].data.attribute();
        let first = values.member(0)[0];
        if values.is_all(first) {
            let op = Op::Pool(Pool { divisor: Divisor::Constant(reciprocal(first)), ..pool });
            return self.push(op, &[x], class, Some(node));
        }
        let sum = Op::Pool(Pool { divisor: Divisor::Constant(1.0), ..pool });
        let origins = self.old.node(self.ids[&node]).origins.clone();
        let sum = self.new.add_node(sum, &[x], origins, vec![self.pass])?;
        let c = self.egraph[class].data.value().shape.c;
        let factor = self.small(factor, c);
        self.push(Op::Scale { factor }, &[sum], class, None)
    }
}

/// 1/v, exact where v is the reciprocal of a whole number.
fn reciprocal(v: f64) -> f64 {
    let k = v.recip();
    if k.round().recip() == v { k.round() } else { k }
}
