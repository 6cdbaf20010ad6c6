//! Lets channels that are nearly linear pass a square beside it (ours).
//!
//! A quadratic whose leading coefficient is zero or tiny in some channels cannot give it to its neighbours, because dividing by it
//! makes the other coefficients explode: the layer then spends a multiplication of its own for the sake of these channels. With any
//! d, c2·x² + c1·x + c0 = (c2/d)·(d·x²) + (c1·x + c0). So the polynomial computes d·x² there, whose coefficient has an
//! inverse; the layer after it takes the factor c2/d, and reads the operand itself beside it, with weights times c1. The
//! operand is ready before its square, so that costs no depth, and nothing is left out, so there is no error.
//!
//! Before: verified tensor graph. After: same outputs, never deeper; quadratics whose readers allow it have leading coefficients
//! with an inverse.

use fhec_ir::cost::depths;
use fhec_ir::{Conv2d, Graph, Linear, NodeId, Op, ShapeError};

use crate::pass::{Changed, Pass, PassCx, PassError};
use crate::passage;
use crate::scale_flow::scale_weight;
use crate::small::{Small, is_nearly_dead};

/// The pass.
pub struct BypassSquare;

const NAME: &str = "bypass-square";

impl Pass for BypassSquare {
    fn name(&self) -> &'static str {
        NAME
    }

    fn summary(&self) -> &'static str {
        "let nearly linear channels pass their square beside it"
    }

    fn run(&self, graph: &mut Graph, cx: &mut PassCx) -> Result<Changed, PassError> {
        let mut changed = Changed::No;
        for id in graph.topo_order() {
            let Some(split) = find(graph, id) else { continue };
            let mut trial = graph.clone();
            let n_channels = split.n_channels;
            apply(&mut trial, id, split)?;
            // A reader that is no layer keeps factors of its own; where that is on the longest path nothing is won.
            let deeper = depths(&trial).total() > depths(graph).total();
            cx.count(if deeper { "left alone" } else { "channels" }, if deeper { 1 } else { n_channels });
            if !deeper {
                *graph = trial;
                changed = Changed::Yes;
            }
        }
        graph.remove_dead();
        Ok(changed)
    }
}

/// square·p(x) + direct·(x + shift), where p has the coefficients of `curved`.
struct Split {
    curved: Small,
    square: Small,
    direct: Small,
    shift: Small,
    n_channels: u64,
}

/// The parts of a quadratic some of whose leading coefficients have no inverse beside the others.
fn find(graph: &Graph, id: NodeId) -> Option<Split> {
    let Op::Poly { coeffs } = graph.op(id) else { return None };
    let c = Small::of(graph, *coeffs);
    if c.rows() != 3 || c.row(2).is_invertible() || c.row(2).is_all(0.0) {
        return None;
    }
    let [c0, c1, c2] = [0, 1, 2].map(|r| c.row(r));
    let largest = c2.rebuild(vec![1], |m| vec![m.iter().fold(0.0_f64, |a, x| a.max(x.abs()))]);
    // A channel that is linear in one member passes in all.
    let flags: Vec<bool> = (0..c2.len())
        .map(|i| (0..c2.members().len()).any(|m| is_nearly_dead(c2.member(m)[i], largest.member(m)[0])))
        .collect();
    let linear = Small::vector(flags.iter().map(|&flag| f64::from(u8::from(flag))).collect());
    // A constant alone has no operand to be added to.
    let lonely = c0.zip(&c1, |c0, c1| f64::from(u8::from(c0 != 0.0 && c1 == 0.0)));
    if !largest.all(|d| d > 0.0) || !lonely.zip(&linear, |a, b| a * b).is_all(0.0) {
        return None;
    }
    let choose = |there: &Small, elsewhere: &Small| {
        let there = there.zip(&linear, |x, is| if is == 1.0 { x } else { 0.0 });
        let elsewhere = elsewhere.zip(&linear, |x, is| if is == 1.0 { 0.0 } else { x });
        there.zip(&elsewhere, |a, b| a + b)
    };
    let (zero, one) = (Small::scalar(0.0), Small::scalar(1.0));
    Some(Split {
        curved: Small::stack(&[choose(&zero, &c0), choose(&zero, &c1), choose(&largest, &c2)]),
        square: choose(&c2.zip(&largest, |c2, d| c2 / d), &one),
        direct: choose(&c1, &zero),
        shift: choose(&c0.zip(&c1, |c0, c1| if c0 == 0.0 { 0.0 } else { c0 / c1 }), &zero),
        n_channels: flags.iter().filter(|flag| **flag).count() as u64,
    })
}

/// A value as a sum: `factors[0]`·`nodes[0]` + `factors[1]`·`nodes[1]`.
struct Sum {
    nodes: [NodeId; 2],
    factors: [Small; 2],
}

fn apply(graph: &mut Graph, id: NodeId, split: Split) -> Result<(), ShapeError> {
    let operand = graph.operands(id)[0];
    let old = graph.node(id).clone();
    let coeffs = split.curved.store(graph);
    let mut history = old.history;
    history.push(NAME);
    let curved = graph.add_node(Op::Poly { coeffs }, &[operand], old.origins, history)?;
    let mut direct = operand;
    if !split.shift.is_all(0.0) {
        let value = split.shift.store(graph);
        direct = graph.add_node(Op::AddConst { value }, &[operand], Vec::new(), vec![NAME])?;
    }
    let sum = Sum { nodes: [curved, direct], factors: [split.square, split.direct] };
    hand_on(graph, id, &sum)?;
    graph.remove(id);
    Ok(())
}

/// Lets every reader of a value read a sum instead.
fn hand_on(graph: &mut Graph, id: NodeId, sum: &Sum) -> Result<(), ShapeError> {
    for (reader, slot) in graph.uses(id) {
        match graph.op(reader).clone() {
            Op::Conv2d(conv) if conv.groups == 1 => {
                let layer = |weight, bias| Op::Conv2d(Conv2d { weight, bias, ..conv.clone() });
                read_both(graph, reader, sum, conv.weight, conv.bias, &layer)?;
            }
            Op::Linear(linear) => {
                let layer = |weight, bias| Op::Linear(Linear { weight, bias });
                read_both(graph, reader, sum, linear.weight, linear.bias, &layer)?;
            }
            op @ (Op::Pool(_) | Op::Flatten) => {
                let shape = graph.shape(id);
                let mut nodes = sum.nodes;
                for node in &mut nodes {
                    *node = graph.add_node(op.clone(), &[*node], Vec::new(), vec![NAME])?;
                }
                let passed = |v: &Small| match &op {
                    Op::Flatten => passage::flattened(v, shape),
                    _ => v.clone(),
                };
                let factors = [&sum.factors[0], &sum.factors[1]].map(passed);
                hand_on(graph, reader, &Sum { nodes, factors })?;
                graph.remove(reader);
            }
            _ => {
                let mut terms = sum.nodes;
                for (term, factor) in terms.iter_mut().zip(&sum.factors) {
                    let factor = factor.store(graph);
                    *term = graph.add_node(Op::Scale { factor }, &[*term], Vec::new(), vec![NAME])?;
                }
                let whole = graph.add_node(Op::Add, &terms, Vec::new(), vec![NAME])?;
                graph.set_operand(reader, slot, whole);
            }
        }
    }
    Ok(())
}

/// A layer over a sum as the sum of two layers; the first has the bias.
fn read_both(
    graph: &mut Graph,
    reader: NodeId,
    sum: &Sum,
    weight: fhec_ir::TensorId,
    bias: Option<fhec_ir::TensorId>,
    layer: &dyn Fn(fhec_ir::TensorId, Option<fhec_ir::TensorId>) -> Op,
) -> Result<(), ShapeError> {
    let old = graph.node(reader).clone();
    let dims = graph.tensor(weight).dims().to_vec();
    let mut parts = Vec::new();
    for (node, factor) in sum.nodes.into_iter().zip(&sum.factors) {
        let each = passage::into_weight(factor, &dims);
        let weight = scale_weight(graph, weight, &Small::scalar(1.0), &each);
        let bias = bias.filter(|_| parts.is_empty());
        let origins = if parts.is_empty() { old.origins.clone() } else { Vec::new() };
        parts.push(graph.add_node(layer(weight, bias), &[node], origins, vec![NAME])?);
    }
    let whole = graph.add_node(Op::Add, &parts, Vec::new(), vec![NAME])?;
    graph.node_mut(whole).range = old.range;
    graph.replace_uses(reader, whole);
    graph.remove(reader);
    Ok(())
}
