//! Draws a tensor graph.

use std::collections::BTreeMap;

use fhec_ir::cost::{depths, operand_costs};
use fhec_ir::{Divisor, Graph, Kind, NodeId, Op, Shape, attributes, number};

use super::drawing::{Drawing, DrawnNode, Family};
use super::html::Tip;

/// Boxes and arrows of a graph; those that `pass` changed are marked.
pub(super) fn draw(graph: &Graph, pass: Option<&str>) -> Drawing {
    let order = graph.topo_order();
    let place: BTreeMap<NodeId, usize> = order.iter().enumerate().map(|(i, &id)| (id, i)).collect();
    let depths = depths(graph);
    let mut edges: Vec<(usize, usize)> = Vec::new();
    let mut nodes = Vec::with_capacity(order.len());
    for (i, &id) in order.iter().enumerate() {
        let node = graph.node(id);
        let cost = operand_costs(&node.op, graph.weights()).max();
        for operand in graph.operands(id) {
            if !edges.contains(&(place[&operand], i)) {
                edges.push((place[&operand], i));
            }
        }
        // Without tower reuse every multiplication takes a level, and levels count down.
        let level = depths.total() - depths.of(id);
        let label = label(graph, id);
        let tip = Tip::new(&format!("%{i} {}", node.op.mnemonic()))
            .line("shape", node.shape.to_string())
            .line("level", format!("{level} of {}, one per multiplication", depths.total()))
            .line("costs", multiplications(cost))
            .line("attributes", attributes(graph, &node.op).join(", "))
            .line("range", range(node))
            .line("from", node.origins.join(", "))
            .line("passes", node.history.join(", "));
        nodes.push(DrawnNode {
            label,
            detail: node.shape.to_string(),
            mark: if cost == 0 { String::new() } else { format!("−{cost}") },
            family: family(&node.op),
            changed: pass.is_some_and(|pass| node.history.contains(&pass)),
            tip,
        });
    }
    Drawing { nodes, edges }
}

fn multiplications(cost: u32) -> String {
    match cost {
        0 => "no multiplication".to_owned(),
        1 => "1 multiplication".to_owned(),
        n => format!("{n} multiplications"),
    }
}

fn range(node: &fhec_ir::Node) -> String {
    let Some(range) = &node.range else { return String::new() };
    let lo = range.lo.iter().copied().fold(f64::INFINITY, f64::min);
    let hi = range.hi.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    format!("{} … {}", number(lo), number(hi))
}

fn family(op: &Op) -> Family {
    match op.kind() {
        Kind::Port => Family::Port,
        Kind::Linear => Family::Linear,
        Kind::Product => Family::Product,
        Kind::Constant => Family::Channel,
        Kind::Free => Family::Free,
    }
}

/// A few words that tell a node from its neighbors.
fn label(graph: &Graph, id: NodeId) -> String {
    let stride = |[h, w]: [usize; 2]| match (h, w) {
        (1, 1) => String::new(),
        (h, w) if h == w => format!(" /{h}"),
        (h, w) => format!(" /{h}×{w}"),
    };
    match graph.op(id) {
        Op::Conv2d(conv) => {
            let dims = graph.tensor(conv.weight).dims();
            format!("conv {}×{}{}", dims[2], dims[3], stride(conv.stride))
        }
        Op::Linear(linear) => {
            let dims = graph.tensor(linear.weight).dims();
            format!("linear {} → {}", dims[1], dims[0])
        }
        Op::Pool(pool) => {
            let name = if pool.divisor == Divisor::Constant(1.0) { "sum pool" } else { "avg pool" };
            format!("{name} {}×{}{}", pool.kernel[0], pool.kernel[1], stride(pool.stride))
        }
        Op::Poly { coeffs } => match graph.tensor(*coeffs).dims()[0].saturating_sub(1) {
            2 if is_square(graph, *coeffs) => "square".to_owned(),
            degree => format!("poly, degree {degree}"),
        },
        Op::Bivar { .. } => "poly of two".to_owned(),
        Op::AddConst { .. } => "add constant".to_owned(),
        Op::Mul => "multiply".to_owned(),
        Op::Concat => "concatenate".to_owned(),
        Op::Flatten => format!("flatten to {}", Shape::len(&graph.shape(id))),
        named => named.mnemonic().replace('_', " "),
    }
}

/// Whether a polynomial is x² for every channel and member.
fn is_square(graph: &Graph, coeffs: fhec_ir::TensorId) -> bool {
    graph.weights().members(coeffs).iter().all(|t| {
        let channels = t.dims()[1];
        t.iter().enumerate().all(|(i, c)| c == f64::from(u8::from(i / channels == 2)))
    })
}
