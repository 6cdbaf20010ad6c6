//! Factors quadratics whose leading coefficient no neighbor takes (ours).
//!
//! Redistribution divides by leading coefficients, so a layer keeps its own where some channel is linear or nearly so, and
//! spends a multiplication on it. But p(x) = c2·x² + c1·x + c0 = (x − t)·(c2·(x + t) + c1) + p(t) for any t. Both factors are
//! linear in x: the layer that makes x makes both, and a single product is left. Nothing is divided by c2, which may be zero,
//! tiny or negative in any channel, and nothing is left out, so there is no error. With t in the middle of the range and the
//! first factor scaled to one, the product holds no constant that only costs range.
//!
//! That costs a second layer, so it is done only where the graph becomes less deep by it.
//!
//! Before: verified tensor graph after redistribution. After: same outputs, never deeper.

use fhec_ir::cost::depths;
use fhec_ir::{Graph, NodeId, Op, ShapeError};

use crate::multiple::Beside;
use crate::pass::{Changed, Pass, PassCx, PassError};
use crate::scale_flow::shifted;
use crate::small::Small;

/// The pass.
pub struct FactorQuadratics;

const NAME: &str = "factor-quadratics";

/// Nodes that trials may visit in all, about a second of work. Networks of a hundred layers take a tenth of it.
const VISITS: usize = 1 << 24;

/// A channel is never stretched beyond this part of the widest one.
const NARROWEST: f64 = 1e-3;

/// A range further out than this has its middle taken as zero: its square would leave f64 too few digits for the rest.
const FURTHEST: f64 = 1e3;

impl Pass for FactorQuadratics {
    fn name(&self) -> &'static str {
        NAME
    }

    fn summary(&self) -> &'static str {
        "compute quadratics as products of two layers where a channel is nearly linear"
    }

    fn run(&self, graph: &mut Graph, cx: &mut PassCx) -> Result<Changed, PassError> {
        let lacks_range = |id: &NodeId| {
            Quadratic::of(graph, *id).is_some() && graph.node(graph.operands(*id)[0]).range.is_none()
        };
        if !cx.calibration.is_empty() && graph.topo_order().iter().any(lacks_range) {
            crate::ranges::measure(graph, &cx.calibration)?;
        }
        let (mut chosen, all) = candidates(graph)?;
        let least = depths(&all).total();
        if least == depths(graph).total() {
            return Ok(Changed::No);
        }
        // Those that the depth does not need keep their own coefficient, which is less work. Every trial is the whole graph
        // with the others as products.
        let mut visits = 0;
        for id in chosen.clone() {
            visits += chosen.len() * graph.len();
            if visits > VISITS {
                break;
            }
            let others: Vec<NodeId> = chosen.iter().copied().filter(|&other| other != id).collect();
            if depths(&factored(graph, &others)?).total() == least {
                chosen = others;
            }
        }
        cx.count("products", chosen.len() as u64);
        *graph = factored(graph, &chosen)?;
        graph.remove_dead();
        Ok(Changed::Yes)
    }
}

/// The quadratics that are less deep as products, and the graph in which all of them are.
fn candidates(graph: &Graph) -> Result<(Vec<NodeId>, Graph), ShapeError> {
    let (mut found, mut all) = (Vec::new(), graph.clone());
    for id in graph.topo_order() {
        let Some(quadratic) = Quadratic::of(graph, id) else { continue };
        let mut trial = all.clone();
        let product = quadratic.apply(&mut trial, id)?;
        if depths(&trial).of(product) < depths(&all).of(id) {
            found.push(id);
            all = trial;
        }
    }
    Ok((found, all))
}

fn factored(graph: &Graph, ids: &[NodeId]) -> Result<Graph, ShapeError> {
    let mut graph = graph.clone();
    for &id in ids {
        if let Some(quadratic) = Quadratic::of(&graph, id) {
            quadratic.apply(&mut graph, id)?;
        }
    }
    Ok(graph)
}

/// c2·x² + c1·x + c0 with a leading coefficient of its own.
struct Quadratic {
    c0: Small,
    c1: Small,
    c2: Small,
}

impl Quadratic {
    fn of(graph: &Graph, id: NodeId) -> Option<Self> {
        let Op::Poly { coeffs } = graph.op(id) else { return None };
        let c = Small::of(graph, *coeffs);
        if c.rows() != 3 || c.row(2).is_all(1.0) || c.row(2).is_all(0.0) {
            return None;
        }
        let [c0, c1, c2] = [0, 1, 2].map(|r| c.row(r));
        Some(Self { c0, c1, c2 })
    }

    /// Puts the product in the place of the polynomial and returns it.
    fn apply(&self, graph: &mut Graph, id: NodeId) -> Result<NodeId, ShapeError> {
        let x = graph.operands(id)[0];
        let (t, alpha) = middle_and_width(graph, x);
        let slope = self.c2.zip(&t, |c2, t| c2 * t).zip(&self.c1, |a, b| a + b);
        let rest = slope.zip(&t, |slope, t| slope * t).zip(&self.c0, |a, b| a + b);
        let depths = depths(graph);
        let mut beside = Beside::new(&depths, NAME);
        let first = beside.multiple(graph, x, &alpha.map(f64::recip), depths.of(x))?;
        let first = plus(graph, first, &t.zip(&alpha, |t, a| -t / a))?;
        let second = beside.multiple(graph, x, &self.c2.zip(&alpha, |c2, a| c2 * a), depths.of(x))?;
        let second = plus(graph, second, &slope.zip(&alpha, |slope, a| slope * a))?;
        let old = graph.node(id).clone();
        let mut history = old.history;
        history.push(NAME);
        let product = graph.add_node(Op::Mul, &[first, second], old.origins, history)?;
        let whole = plus(graph, product, &rest)?;
        graph.node_mut(whole).range = old.range;
        graph.replace_uses(id, whole);
        graph.remove(id);
        Ok(product)
    }
}

/// The middle of an operand's range, and half its width. An operand that others read too is left as it is.
fn middle_and_width(graph: &Graph, x: NodeId) -> (Small, Small) {
    let unknown = (Small::scalar(0.0), Small::scalar(1.0));
    let Some(range) = graph.node(x).range.as_ref().filter(|_| graph.sole_use(x).is_some()) else {
        return unknown;
    };
    let middle = |(lo, hi): (&f64, &f64)| f64::midpoint(*lo, *hi);
    let middles = range.lo.iter().zip(&range.hi).map(middle);
    let middles: Vec<f64> = middles.map(|t| if t.abs() <= FURTHEST { t } else { 0.0 }).collect();
    let ends = range.lo.iter().zip(&range.hi).zip(&middles);
    let widths: Vec<f64> = ends.map(|((lo, hi), t)| (lo - t).abs().max((hi - t).abs())).collect();
    let widest = widths.iter().copied().fold(0.0, f64::max);
    if !widest.is_normal() {
        return unknown;
    }
    let widths = widths.into_iter().map(|w| w.max(widest * NARROWEST));
    (Small::vector(middles), Small::vector(widths.collect()))
}

/// A value and a constant, with the range that follows.
fn plus(graph: &mut Graph, x: NodeId, constant: &Small) -> Result<NodeId, ShapeError> {
    if constant.is_all(0.0) {
        return Ok(x);
    }
    let range = graph.node(x).range.as_ref().map(|range| shifted(range, constant));
    let value = constant.store(graph);
    let sum = graph.add_node(Op::AddConst { value }, &[x], Vec::new(), vec![NAME])?;
    graph.node_mut(sum).range = range;
    Ok(sum)
}
