//! From a tensor graph to an e-graph, with the facts about sharing and slack that an e-graph cannot see.

use std::sync::Arc;

use egg::Id;
use fhec_ir::cost::{node_work, operand_costs, power_depth};
use fhec_ir::{Channels, Divisor, Graph, NodeId, Op, TensorId, channels};

use super::facts::{EGraph, Fact, Facts, NodeFact, WeightFact};
use super::language::{AttributeId, ConstantId, InputId, Lang};
use crate::small::Small;

/// The e-graph of a graph and the class of all its outputs.
pub(super) fn build(graph: &Graph) -> (EGraph, Id) {
    let mut facts = Facts::default();
    let long = long_operands(graph);
    for id in graph.ids() {
        let node = graph.node(id);
        let even = node.op.is_linear() && channels(graph, id) == Channels::Each;
        let costs = (operand_costs(&node.op, graph.weights()), node_work(graph, id));
        let (op, long) = (node.op.clone(), long[id.index()]);
        facts.nodes.insert(number(id), NodeFact { op, shape: node.shape, long, even, costs });
        for (position, tensor) in node.op.tensors().into_iter().enumerate() {
            let is_weight = position == 0 && matches!(node.op, Op::Conv2d(_) | Op::Linear(_));
            facts.constants.insert(constant(tensor), constant_fact(graph, tensor, is_weight));
        }
    }
    let mut egraph = EGraph::new(facts);
    // Factors that cancel find this class.
    egraph.add(Lang::One);
    let mut classes: Vec<Option<Id>> = vec![None; graph.bound()];
    let mut outputs = Vec::new();
    for id in graph.topo_order() {
        let operands: Vec<Id> =
            graph.operands(id).iter().map(|o| classes[o.index()].expect("operands come first")).collect();
        if matches!(graph.op(id), Op::Output) {
            outputs.push((id, operands[0]));
            continue;
        }
        let class = add(&mut egraph, graph, id, &operands);
        let Fact::Value(mut value) = egraph[class].data.clone() else { unreachable!("a node has a value") };
        value.shared |= graph.uses(id).len() > 1;
        value.source = value.source.or_else(|| Some((number(id), Arc::new(Small::scalar(1.0)))));
        egraph.set_analysis_data(class, Fact::Value(value));
        classes[id.index()] = Some(class);
    }
    // Once, at the end: it goes through all classes, and only leaves, which nothing reads yet, were united on the way.
    egraph.rebuild();
    outputs.sort_unstable();
    let root = egraph.add(Lang::Outputs(outputs.into_iter().map(|(_, class)| class).collect()));
    (egraph, root)
}

fn add(egraph: &mut EGraph, graph: &Graph, id: NodeId, x: &[Id]) -> Id {
    let a = |egraph: &mut EGraph| egraph.add(Lang::Attribute(AttributeId(number(id))));
    let t = |egraph: &mut EGraph, tensor: TensorId| egraph.add(Lang::Constant(constant(tensor)));
    let optional = |egraph: &mut EGraph, tensor: Option<TensorId>| match tensor {
        Some(tensor) => egraph.add(Lang::Constant(constant(tensor))),
        None => egraph.add(Lang::Absent),
    };
    let node = match graph.op(id) {
        Op::Input { .. } => Lang::Input(InputId(number(id))),
        Op::Conv2d(conv) => {
            Lang::Conv([a(egraph), t(egraph, conv.weight), optional(egraph, conv.bias), x[0]])
        }
        Op::Linear(linear) => {
            Lang::Linear([a(egraph), t(egraph, linear.weight), optional(egraph, linear.bias), x[0]])
        }
        Op::BatchNorm { scale, shift } => Lang::Bn([t(egraph, *scale), t(egraph, *shift), x[0]]),
        Op::Pool(pool) => match pool.divisor {
            Divisor::Constant(k) => {
                let factor = intern(egraph, Small::scalar(k.recip()));
                Lang::Pool([a(egraph), factor, x[0]])
            }
            Divisor::ExcludePad => Lang::Other(vec![a(egraph), x[0]]),
        },
        Op::Poly { coeffs } => {
            let whole = Small::of(graph, *coeffs);
            let table = without_zero_lead(&whole);
            if table.rows() == 2 {
                let scale = intern(egraph, table.row(1));
                let shift = intern(egraph, table.row(0));
                Lang::Bn([scale, shift, x[0]])
            } else if table.rows() < whole.rows() {
                Lang::Poly([intern(egraph, table), x[0]])
            } else {
                Lang::Poly([t(egraph, *coeffs), x[0]])
            }
        }
        Op::Bivar { coeffs } => Lang::Bivar([t(egraph, *coeffs), x[0], x[1]]),
        Op::Scale { factor } => Lang::Scale([t(egraph, *factor), x[0]]),
        Op::AddConst { value } => {
            let value_class = t(egraph, *value);
            if graph.tensor(*value).dims().len() == 1 {
                Lang::Bn([egraph.add(Lang::One), value_class, x[0]])
            } else {
                Lang::Shift([value_class, x[0]])
            }
        }
        Op::Add => Lang::Add([a(egraph), x[0], x[1]]),
        Op::Mul => Lang::Prod([x[0], x[1]]),
        Op::Concat => {
            let (last, front) = x.split_last().expect("shape inference asked for an operand");
            return front.iter().rev().fold(*last, |rest, &first| egraph.add(Lang::Concat([first, rest])));
        }
        Op::Slice(_) => Lang::Slice([a(egraph), x[0]]),
        Op::Pad(_) => Lang::Pad([a(egraph), x[0]]),
        Op::Flatten => Lang::Flatten([x[0]]),
        Op::Output => unreachable!("outputs are collected by the caller"),
    };
    egraph.add(node)
}

/// A coefficient table down to the highest degree that any channel has, or degree one.
fn without_zero_lead(c: &Small) -> Small {
    let highest = (2..c.rows()).rev().find(|&r| !c.row(r).is_all(0.0)).unwrap_or(1);
    if highest + 1 >= c.rows() {
        return c.clone();
    }
    Small::stack(&(0..=highest).map(|r| c.row(r)).collect::<Vec<_>>())
}

/// A constant that is not in the weight table. Ids above the table's are free.
fn intern(egraph: &mut EGraph, small: Small) -> Id {
    let id =
        ConstantId(egraph.analysis.constants.keys().next_back().map_or(0, |last| last.0 + 1).max(1 << 30));
    egraph.analysis.constants.insert(id, Fact::of_small(small));
    egraph.add(Lang::Constant(id))
}

fn constant_fact(graph: &Graph, tensor: TensorId, is_weight: bool) -> Fact {
    if is_weight {
        Fact::Weight(Arc::new(WeightFact {
            leaf: constant(tensor),
            dims: graph.tensor(tensor).dims().to_vec(),
            out: Small::scalar(1.0),
            input: Small::scalar(1.0),
        }))
    } else {
        Fact::of_small(Small::of(graph, tensor))
    }
}

/// For every node: which of its first two operands are as deep as the deepest, if every operation were normalized.
fn long_operands(graph: &Graph) -> Vec<[bool; 2]> {
    let mut depth = vec![0_u32; graph.bound()];
    let mut long = vec![[true; 2]; graph.bound()];
    for id in graph.topo_order() {
        let below: Vec<u32> = graph.operands(id).iter().map(|o| depth[o.index()]).collect();
        let deepest = below.iter().copied().max().unwrap_or(0);
        if let [x, y] = below[..] {
            long[id.index()] = [x == deepest, y == deepest];
        }
        depth[id.index()] = deepest + normalized_cost(graph, id);
    }
    long
}

fn normalized_cost(graph: &Graph, id: NodeId) -> u32 {
    match graph.op(id) {
        Op::Conv2d(_) | Op::Linear(_) | Op::Mul => 1,
        Op::Poly { coeffs } => power_depth(graph.tensor(*coeffs).dims()[0] - 1),
        Op::Bivar { coeffs } => {
            power_depth(fhec_ir::op::bivar_degree(graph.tensor(*coeffs).dims()[0]).unwrap_or(0))
        }
        Op::Input { .. }
        | Op::BatchNorm { .. }
        | Op::Pool(_)
        | Op::Scale { .. }
        | Op::AddConst { .. }
        | Op::Add
        | Op::Concat
        | Op::Slice(_)
        | Op::Pad(_)
        | Op::Flatten
        | Op::Output => 0,
    }
}

fn number(id: NodeId) -> u32 {
    id.index() as u32
}

fn constant(id: TensorId) -> ConstantId {
    ConstantId(id.index() as u32)
}
