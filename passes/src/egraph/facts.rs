//! What the e-graph knows about each class: extent and sharing of values, numbers of constants.
//!
//! Classes of constants that differ by rounding only are united, so that moving a factor there and back ends.

use std::collections::BTreeMap;
use std::sync::Arc;

use egg::{Analysis, DidMerge, Id};
use fhec_ir::cost::{OperandCosts, Work};
use fhec_ir::{Op, Shape};

use super::constants::constant_fact;
use super::language::{ConstantId, Lang, constant};
use crate::small::{ROUNDING, Small};

/// The e-graph of this crate.
pub(crate) type EGraph = egg::EGraph<Lang, Facts>;

/// What is known about a class.
#[derive(Clone, Debug)]
pub(crate) enum Fact {
    /// A value that flows along an edge.
    Value(ValueFact),
    /// A vector, per-element constant or coefficient table.
    Small(Arc<Small>),
    /// A weight of the graph with factors on its axes.
    Weight(Arc<WeightFact>),
    /// Attributes of the original node of that number.
    Attribute(u32),
    /// A missing bias.
    Absent,
}

/// Facts about a value.
#[derive(Clone, Debug)]
pub(crate) struct ValueFact {
    pub(crate) shape: Shape,
    /// Whether more than one consumer reads it. An e-class has no consumers, so this comes from the graph.
    pub(crate) shared: bool,
    /// The original node it is a multiple of, and the factor.
    pub(crate) source: Option<(u32, Arc<Small>)>,
}

/// A weight with factors on its output and input axes.
#[derive(Clone, Debug)]
pub(crate) struct WeightFact {
    pub(crate) leaf: ConstantId,
    pub(crate) dims: Vec<usize>,
    pub(crate) out: Small,
    pub(crate) input: Small,
}

/// Facts about an original node.
#[derive(Clone, Debug)]
pub(crate) struct NodeFact {
    pub(crate) op: Op,
    pub(crate) shape: Shape,
    /// For a join: which operands lie on the longest path, if every operation were normalized.
    pub(crate) long: [bool; 2],
    /// Whether a factor per channel passes it as it is: it is linear and works channel by channel.
    pub(crate) even: bool,
    /// Depth that it adds to each operand, and products per number of its result.
    pub(crate) costs: (OperandCosts, Work),
}

/// The e-graph analysis: tables about the original graph, and the constants met so far.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    pub(crate) nodes: BTreeMap<u32, NodeFact>,
    pub(crate) constants: BTreeMap<ConstantId, Fact>,
    /// Classes of constants by kind and signature.
    known: BTreeMap<(Vec<u64>, u64), Vec<Id>>,
}

impl Fact {
    /// A vector of equal numbers becomes the single number that stands for every channel, so that classes unite.
    pub(crate) fn of_small(small: Small) -> Self {
        let uniform = small.dims.len() == 1 && small.members().iter().all(|m| m.iter().all(|x| *x == m[0]));
        Self::Small(Arc::new(if uniform { small.rebuild(vec![1], |m| vec![m[0]]) } else { small }))
    }

    pub(crate) fn small(&self) -> &Small {
        match self {
            Self::Small(small) => small,
            other => panic!("a constant was expected where {other:?} stands"),
        }
    }

    pub(crate) fn weight(&self) -> &WeightFact {
        match self {
            Self::Weight(weight) => weight,
            other => panic!("a weight was expected where {other:?} stands"),
        }
    }

    pub(crate) fn value(&self) -> &ValueFact {
        match self {
            Self::Value(value) => value,
            other => panic!("a value was expected where {other:?} stands"),
        }
    }

    pub(crate) fn attribute(&self) -> u32 {
        match self {
            Self::Attribute(node) => *node,
            other => panic!("attributes were expected where {other:?} stands"),
        }
    }
}

impl WeightFact {
    /// Moves what all inputs have in common to the outputs, so that equal weights have equal factors.
    pub(super) fn gather_scalar(&mut self) {
        let common = self.input.rebuild(vec![1], |v| vec![if v[0] == 0.0 { 1.0 } else { v[0] }]);
        self.input = self.input.zip(&common, |a, b| a / b);
        self.out = self.out.zip(&common, |a, b| a * b);
    }
}

impl Analysis<Lang> for Facts {
    type Data = Fact;

    fn make(egraph: &mut EGraph, enode: &Lang, _id: Id) -> Fact {
        constant_fact(egraph, enode).unwrap_or_else(|| Fact::Value(value_fact(egraph, enode)))
    }

    fn merge(&mut self, a: &mut Fact, b: Fact) -> DidMerge {
        let (Fact::Value(a), Fact::Value(b)) = (a, b) else { return DidMerge(false, false) };
        let shared = a.shared || b.shared;
        let did = DidMerge(
            shared != a.shared || (a.source.is_none() && b.source.is_some()),
            shared != b.shared || (b.source.is_none() && a.source.is_some()),
        );
        a.shared = shared;
        if a.source.is_none() {
            a.source = b.source;
        }
        did
    }

    fn modify(egraph: &mut EGraph, id: Id) {
        match egraph[id].data.clone() {
            Fact::Small(small) => {
                let header = small.dims.iter().map(|&d| d as u64).collect();
                unite(
                    egraph,
                    id,
                    header,
                    small.signature(),
                    |fact| matches!(fact, Fact::Small(other) if other.is_near(&small)),
                );
            }
            Fact::Weight(w) => {
                let header = vec![u64::MAX, u64::from(w.leaf.0)];
                unite(
                    egraph,
                    id,
                    header,
                    w.out.signature() * w.input.signature(),
                    |fact| matches!(fact, Fact::Weight(o) if o.out.is_near(&w.out) && o.input.is_near(&w.input)),
                );
            }
            Fact::Value(value) => inform_scaled(egraph, id, &value),
            Fact::Absent => unite(egraph, id, vec![], 0.0, |fact| matches!(fact, Fact::Absent)),
            Fact::Attribute(_) => {}
        }
    }
}

/// Unites a class of constants with an earlier one that differs by rounding only.
fn unite(egraph: &mut EGraph, id: Id, header: Vec<u64>, signature: f64, is_same: impl Fn(&Fact) -> bool) {
    let bits = |factor: f64| (signature * factor).to_bits();
    let nearby = (header.clone(), bits(1.0 - 4.0 * ROUNDING))..=(header.clone(), bits(1.0 + 4.0 * ROUNDING));
    let candidates = egraph.analysis.known.range(nearby).flat_map(|(_, ids)| ids.iter().copied());
    let other = candidates.into_iter().find(|&other| is_same(&egraph[other].data));
    match other {
        Some(other) => {
            egraph.union(other, id);
        }
        None => egraph.analysis.known.entry((header, bits(1.0))).or_default().push(id),
    }
}

/// Tells the operand of every scale in a class what follows from the facts of the class.
fn inform_scaled(egraph: &mut EGraph, id: Id, value: &ValueFact) {
    let scales: Vec<[Id; 2]> = egraph[id]
        .nodes
        .iter()
        .filter_map(|n| if let Lang::Scale(c) = n { Some(*c) } else { None })
        .collect();
    for [factor, operand] in scales {
        let mut fact = egraph[operand].data.value().clone();
        let before = (fact.shared, fact.source.is_some());
        fact.shared |= value.shared;
        let factor = egraph[factor].data.small();
        if fact.source.is_none()
            && factor.is_invertible()
            && let Some((node, known)) = &value.source
        {
            fact.source = Some((*node, Arc::new(known.zip(factor, |a, b| a / b))));
        }
        if before != (fact.shared, fact.source.is_some()) {
            egraph.set_analysis_data(operand, Fact::Value(fact));
        }
    }
}

fn value_fact(egraph: &EGraph, enode: &Lang) -> ValueFact {
    let of = |id: &Id| egraph[*id].data.value().shape;
    let original = |node: u32| egraph.analysis.nodes[&node].shape;
    let attribute = |id: &Id| original(egraph[*id].data.attribute());
    let mut source = None;
    let shape = match enode {
        Lang::Input(input) => original(input.0),
        Lang::Conv([a, ..]) | Lang::Linear([a, ..]) | Lang::Pool([a, ..]) => attribute(a),
        Lang::Slice([a, _]) | Lang::Pad([a, _]) => attribute(a),
        Lang::Other(children) => attribute(&children[0]),
        Lang::Scale([v, x]) => {
            let factor = egraph[*v].data.small();
            source = egraph[*x].data.value().source.clone();
            source = source.map(|(node, known)| (node, Arc::new(known.zip(factor, |a, b| a * b))));
            of(x)
        }
        Lang::Concat([x, y]) => Shape { c: of(x).c + of(y).c, ..of(x) },
        Lang::Flatten([x]) => Shape::vector(of(x).len()),
        Lang::Outputs(_) => Shape::vector(1),
        Lang::Bn([.., x])
        | Lang::Poly([.., x])
        | Lang::Bivar([.., x])
        | Lang::Shift([.., x])
        | Lang::Add([.., x])
        | Lang::Prod([.., x]) => of(x),
        constant!() => unreachable!("{enode} is a constant, and constants have facts of their own"),
    };
    ValueFact { shape, shared: false, source }
}
