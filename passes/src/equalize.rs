//! Equalizes the channels before every activation (ours).
//!
//! A monic polynomial of degree d keeps its leading coefficient when every channel of its operand is divided by any α and
//! its result is multiplied by α^d: Σ c_i·z^i = α^d·(z'^d + Σ c_i·α^(i−d)·z'^i) with z = α·z'. The factor 1/α goes into the
//! layer before, α^d into the layer after, so no depth is spent. With α the range of the channel, every channel has range
//! one before it is squared, which is what small scales need. A shortcut gets a scale of its own in its slack.
//!
//! A channel whose leading coefficient is tiny beside the others would get terms as large as their ratio, next to channels
//! with terms of about one: no plaintext holds both. There α is larger than the range, so that its operand is smaller.
//!
//! A polynomial that is not monic, since a leading coefficient is zero in some channel, takes α^i into its coefficients and
//! gives nothing to the layer after. That is done where powers of its operand would be too large to compute with.
//!
//! The factors of a product are divided by an α each, and the layer after it takes the product of both.
//!
//! Before: verified graph with recorded ranges. After: same outputs, never deeper; operands of monic polynomials and factors
//! of products lie in about [-1, 1] per channel.

use fhec_ir::cost::depths;
use fhec_ir::{Graph, NodeId, Op, ShapeError, ValueRange};

use crate::pass::{Changed, Pass, PassCx, PassError};
use crate::scale_flow::{pull_scale, push_scale};
use crate::small::{Small, broadcast};

/// The pass.
pub struct EqualizeChannels;

const NAME: &str = "equalize-channels";

/// A channel is never stretched beyond this part of the widest one: a range that is tiny on a few calibration inputs may
/// be larger on the next.
const NARROWEST: f64 = 1e-3;

/// Largest power of an operand that is left as it is.
const LARGEST_POWER: f64 = 65536.0;

/// Largest term of a polynomial whose operand has range one, if a larger α can make it so.
const LARGEST_TERM: f64 = 64.0;

impl Pass for EqualizeChannels {
    fn name(&self) -> &'static str {
        NAME
    }

    fn summary(&self) -> &'static str {
        "scale every channel to range one before it is squared or multiplied"
    }

    fn run(&self, graph: &mut Graph, cx: &mut PassCx) -> Result<Changed, PassError> {
        let lacks_range = |id: &NodeId| graph.operands(*id).iter().any(|x| graph.node(*x).range.is_none());
        if !cx.calibration.is_empty() && find(graph).iter().any(lacks_range) {
            crate::ranges::measure(graph, &cx.calibration)?;
        }
        let mut changed = Changed::No;
        let mut depth = depths(graph).total();
        for id in find(graph) {
            let mut trial;
            if matches!(graph.op(id), Op::Mul) {
                let Some(alphas) = factor_alphas(graph, id) else {
                    cx.count("without a range", 1);
                    continue;
                };
                trial = graph.clone();
                apply_to_product(&mut trial, id, &alphas)?;
            } else {
                let Some(alpha) = alpha(graph, id) else {
                    cx.count("without a range", 1);
                    continue;
                };
                if !is_monic(graph, id) && !has_large_powers(graph, id, &alpha) {
                    continue;
                }
                trial = graph.clone();
                apply(&mut trial, id, &alpha)?;
            }
            let reached = depths(&trial).total();
            let deeper = reached > depth;
            cx.count(if deeper { "left alone" } else { "equalized" }, 1);
            if !deeper {
                depth = reached;
                *graph = trial;
                changed = Changed::Yes;
            }
        }
        graph.remove_dead();
        Ok(changed)
    }
}

/// Products, and polynomials of degree two or more, last first, so that a factor that goes forward meets settled scales.
fn find(graph: &Graph) -> Vec<NodeId> {
    let is_curved = |id: &NodeId| {
        matches!(graph.op(*id), Op::Mul) || coefficients(graph, *id).is_some_and(|c| c.rows() > 2)
    };
    graph.topo_order().into_iter().rev().filter(is_curved).collect()
}

fn coefficients(graph: &Graph, id: NodeId) -> Option<Small> {
    match graph.op(id) {
        Op::Poly { coeffs } => Some(Small::of(graph, *coeffs)),
        _ => None,
    }
}

/// Whether every channel of a polynomial has one as its leading coefficient.
fn is_monic(graph: &Graph, id: NodeId) -> bool {
    coefficients(graph, id).is_some_and(|c| c.row(c.rows() - 1).is_all(1.0))
}

/// Whether operands of these sizes have powers too large to compute with.
fn has_large_powers(graph: &Graph, id: NodeId, sizes: &Small) -> bool {
    let degree = coefficients(graph, id).map_or(0, |c| c.rows() - 1);
    let widest = sizes.members().iter().flat_map(|m| m.iter().copied()).fold(0.0, f64::max);
    widest.powi(degree as i32) > LARGEST_POWER
}

/// The largest absolute value of every channel of the operand, or more where a term of the polynomial would be too large.
fn alpha(graph: &Graph, id: NodeId) -> Option<Small> {
    let range = graph.node(graph.operands(id)[0]).range.as_ref()?;
    let Op::Poly { coeffs } = *graph.op(id) else { unreachable!("candidates are polynomials") };
    let c = Small::of(graph, coeffs);
    let widths = widths(range)?;
    let is_monic = is_monic(graph, id);
    let channel = |(i, &width): (usize, &f64)| {
        let least = if is_monic { least_alpha(&c, i, widths.len(), width) } else { 0.0 };
        least.max(width)
    };
    let alphas: Vec<f64> = widths.iter().enumerate().map(channel).collect();
    let degree = c.rows() as i32 - 1;
    alphas.iter().all(|alpha| is_factor(alpha.powi(degree))).then(|| Small::vector(alphas))
}

/// Whether ranges and weights can be multiplied and divided by a number without leaving what a double holds.
fn is_factor(number: f64) -> bool {
    number.is_normal() && number.recip().is_normal()
}

/// The largest absolute value of every channel, none much smaller than the widest.
fn widths(range: &ValueRange) -> Option<Vec<f64>> {
    let widths: Vec<f64> = range.lo.iter().zip(&range.hi).map(|(lo, hi)| lo.abs().max(hi.abs())).collect();
    let widest = widths.iter().copied().fold(0.0, f64::max);
    widest.is_normal().then(|| widths.into_iter().map(|width| width.max(widest * NARROWEST)).collect())
}

/// The largest absolute value of every channel of both factors.
fn factor_alphas(graph: &Graph, id: NodeId) -> Option<[Small; 2]> {
    let alpha = |x: NodeId| widths(graph.node(x).range.as_ref()?);
    let factors = graph.operands(id);
    let alphas = [alpha(factors[0])?, alpha(factors[1])?];
    let is_sound = alphas[0].iter().zip(&alphas[1]).all(|(a, b)| is_factor(a * b));
    is_sound.then(|| alphas.map(Small::vector))
}

fn apply_to_product(graph: &mut Graph, id: NodeId, alphas: &[Small; 2]) -> Result<(), ShapeError> {
    for (slot, alpha) in alphas.iter().enumerate() {
        pull_scale(graph, (id, slot), &alpha.map(f64::recip), NAME)?;
    }
    let both = alphas[0].zip(&alphas[1], |a, b| a * b);
    if let Some(range) = &mut graph.node_mut(id).range {
        crate::scale_flow::scale_range(range, &both.map(f64::recip));
    }
    graph.touch(id, NAME);
    push_scale(graph, id, &both, NAME)
}

/// The smallest α of channel `i` of `n` under which no term is too large: |c_k|·width^k ≤ LARGEST_TERM·α^d for every k.
fn least_alpha(c: &Small, i: usize, n: usize, width: f64) -> f64 {
    let degree = c.rows() - 1;
    let largest = (0..degree).map(|k| {
        let row = c.row(k);
        let coefficient = row.members().iter().map(|m| broadcast(m, i, n).abs()).fold(0.0, f64::max);
        coefficient * width.powi(k as i32)
    });
    let least = (largest.fold(0.0, f64::max) / LARGEST_TERM).powf((degree as f64).recip());
    if least.is_finite() { least } else { 0.0 }
}

fn apply(graph: &mut Graph, id: NodeId, alpha: &Small) -> Result<(), ShapeError> {
    let Op::Poly { coeffs } = *graph.op(id) else { unreachable!("candidates are polynomials") };
    let c = Small::of(graph, coeffs);
    let degree = c.rows() - 1;
    if !is_monic(graph, id) {
        let row = |i: usize| c.row(i).zip(alpha, |c, a| if c == 0.0 { 0.0 } else { c * a.powi(i as i32) });
        let coeffs = Small::stack(&(0..=degree).map(row).collect::<Vec<_>>()).store(graph);
        graph.set_op(id, Op::Poly { coeffs }, NAME)?;
        return pull_scale(graph, (id, 0), &alpha.map(f64::recip), NAME);
    }
    let row = |i: usize| {
        c.row(i).zip(alpha, |c, a| if c == 0.0 { 0.0 } else { c * a.powi(i as i32 - degree as i32) })
    };
    let mut rows: Vec<Small> = (0..degree).map(row).collect();
    rows.push(Small::scalar(1.0));
    if rows.iter().all(|r| r.is_all(0.0) || r.is_all(1.0)) {
        rows = rows.iter().map(|r| Small::scalar(r.member(0)[0])).collect();
    }
    let coeffs = Small::stack(&rows).store(graph);
    graph.set_op(id, Op::Poly { coeffs }, NAME)?;
    let power = alpha.map(|a| a.powi(degree as i32));
    if let Some(range) = &mut graph.node_mut(id).range {
        crate::scale_flow::scale_range(range, &power.map(f64::recip));
    }
    pull_scale(graph, (id, 0), &alpha.map(f64::recip), NAME)?;
    push_scale(graph, id, &power, NAME)
}
