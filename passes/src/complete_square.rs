//! Completes the square of every quadratic activation, also of a fused join (ours).
//!
//! c2·x² + c1·x + c0 = c2·(x + c1/2c2)² + (c0 − c1²/4c2). The shift goes into the bias before, the constant into the bias
//! after, so an activation is one squaring. A quadratic of two operands is the square of a sum when
//! d_xy² = 4·d_x2·d_y2 and its linear part is a multiple of that sum, as it is when it comes from a join; then three
//! products become one. Its leading coefficient goes before the square as a root, where it costs no depth.
//!
//! Before: verified tensor graph. After: same outputs and depth; no quadratic polynomial has a linear or constant term.

use fhec_ir::{Graph, NodeId, Op, ShapeError};

use crate::pass::{Changed, Pass, PassCx, PassError};
use crate::scale_flow::shifted;
use crate::small::Small;

/// The pass.
pub struct CompleteSquare;

const NAME: &str = "complete-square";

impl Pass for CompleteSquare {
    fn name(&self) -> &'static str {
        NAME
    }

    fn summary(&self) -> &'static str {
        "turn quadratic activations and joins into one squaring plus constants"
    }

    fn run(&self, graph: &mut Graph, cx: &mut PassCx) -> Result<Changed, PassError> {
        let found: Vec<(NodeId, Square)> =
            graph.topo_order().into_iter().filter_map(|id| Some((id, find(graph, id)?))).collect();
        for (id, square) in &found {
            apply(graph, *id, square)?;
            cx.count("squares", 1);
        }
        Ok(if found.is_empty() { Changed::No } else { Changed::Yes })
    }
}

/// lead·(Σ factor·operand + shift)² + rest.
struct Square {
    lead: Small,
    factors: Vec<Small>,
    shift: Small,
    rest: Small,
}

fn find(graph: &Graph, id: NodeId) -> Option<Square> {
    match graph.op(id) {
        Op::Poly { coeffs } => {
            let c = Small::of(graph, *coeffs);
            (c.rows() == 3).then(|| of_poly(&c)).flatten()
        }
        Op::Bivar { coeffs } => {
            let c = Small::of(graph, *coeffs);
            (c.rows() == 6).then(|| of_bivar(&c)).flatten()
        }
        _ => None,
    }
}

fn of_poly(c: &Small) -> Option<Square> {
    let [c0, c1, lead] = [0, 1, 2].map(|r| c.row(r));
    if !lead.is_invertible() || (c1.is_all(0.0) && c0.is_all(0.0)) {
        return None;
    }
    let (shift, rest) = shift_and_rest(&c0, &c1, &lead);
    Some(Square { lead, factors: vec![Small::scalar(1.0)], shift, rest })
}

/// Rows are 1, x, y, x², xy, y².
fn of_bivar(c: &Small) -> Option<Square> {
    let [d0, dx, dy, lead, dxy, dyy] = [0, 1, 2, 3, 4, 5].map(|r| c.row(r));
    if !lead.is_invertible() || !lead.all(|a| a > 0.0) {
        return None;
    }
    let ratio = dxy.zip(&lead, |b, a| b / (2.0 * a));
    let square = ratio.zip(&ratio, |a, b| a * b).zip(&lead, |r, a| r * a);
    let linear = ratio.zip(&dx, |r, d| r * d);
    if !is_close(&square, &dyy) || !is_close(&linear, &dy) {
        return None;
    }
    let root = lead.map(f64::sqrt);
    let (shift, rest) = shift_and_rest(&d0, &dx, &lead);
    Some(Square {
        lead: Small::scalar(1.0),
        shift: shift.zip(&root, |s, r| s * r),
        factors: vec![root.clone(), ratio.zip(&root, |a, b| a * b)],
        rest,
    })
}

fn shift_and_rest(c0: &Small, c1: &Small, c2: &Small) -> (Small, Small) {
    let shift = c1.zip(c2, |c1, c2| c1 / (2.0 * c2));
    let rest = c1.zip(c1, |a, b| a * b).zip(c2, |s, c2| s / (4.0 * c2));
    (shift, c0.zip(&rest, |c0, r| c0 - r))
}

/// Equal to a few roundings of the larger number of the channel list.
fn is_close(a: &Small, b: &Small) -> bool {
    a.zip(b, |a, b| (a - b).abs() - 1e-12 * a.abs().max(b.abs())).all(|excess| excess <= 0.0)
}

fn apply(graph: &mut Graph, id: NodeId, square: &Square) -> Result<(), ShapeError> {
    let mut terms = Vec::new();
    for (operand, factor) in graph.operands(id).into_iter().zip(&square.factors) {
        terms.push(if factor.is_all(1.0) {
            operand
        } else {
            let factor = factor.store(graph);
            graph.add_node(Op::Scale { factor }, &[operand], Vec::new(), vec![NAME])?
        });
    }
    let mut x = terms[0];
    if let [first, second] = terms[..] {
        x = graph.add_node(Op::Add, &[first, second], Vec::new(), vec![NAME])?;
    }
    if !square.shift.is_all(0.0) {
        let range = graph.node(x).range.as_ref().map(|r| shifted(r, &square.shift));
        let value = square.shift.store(graph);
        x = graph.add_node(Op::AddConst { value }, &[x], Vec::new(), vec![NAME])?;
        graph.node_mut(x).range = range;
    }
    let zero = Small::scalar(0.0);
    let lead = if square.lead.is_all(1.0) { Small::scalar(1.0) } else { square.lead.clone() };
    let coeffs = Small::stack(&[zero.clone(), zero, lead]).store(graph);
    let old = graph.node(id).clone();
    let mut history = old.history;
    history.push(NAME);
    let mut y = graph.add_node(Op::Poly { coeffs }, &[x], old.origins, history)?;
    if !square.rest.is_all(0.0) {
        let value = square.rest.store(graph);
        y = graph.add_node(Op::AddConst { value }, &[y], Vec::new(), vec![NAME])?;
    }
    graph.node_mut(y).range = old.range;
    graph.replace_uses(id, y);
    graph.remove(id);
    Ok(())
}
