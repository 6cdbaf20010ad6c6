//! The price of a term: depth, then work, then conditioning.
//!
//! Depth is a maximum over operands, so taking the cheapest node of every class is exact for it. Work and conditioning are
//! sums; [`Selection`](super::select::Selection) counts what is shared once.

use egg::Id;
use fhec_ir::cost::power_depth;
use fhec_ir::op::monomials;

use super::facts::{EGraph, Fact};
use super::functions as f;
use super::language::{Lang, constant};
use crate::small::Small;

/// Ordered field by field; every field saturates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cost {
    /// Multiplications on the longest path.
    pub(crate) depth: u32,
    /// Products, in units of one plaintext product of one number.
    pub(crate) work: u64,
    /// Bits by which constants leave the neighborhood of one.
    pub(crate) conditioning: u64,
}

/// A ciphertext product costs about this many plaintext products, because of its key switch.
const CT_MULT: u64 = 16;

/// What one node adds, apart from its operands.
#[derive(Clone, Debug, Default)]
pub(crate) struct Price {
    /// Operands that are values, with the depth the node adds to each.
    pub(crate) operands: Vec<(Id, u32)>,
    work: u64,
    conditioning: u64,
}

impl Price {
    /// The cost of the node from the costs of its operands.
    pub(crate) fn total(&self, mut cost_of: impl FnMut(Id) -> Cost) -> Cost {
        let own = Cost { depth: 0, work: self.work, conditioning: self.conditioning };
        self.operands.iter().fold(own, |sum, &(operand, depth)| {
            let cost = cost_of(operand);
            Cost {
                depth: sum.depth.max(cost.depth.saturating_add(depth)),
                work: sum.work.saturating_add(cost.work),
                conditioning: sum.conditioning.saturating_add(cost.conditioning),
            }
        })
    }
}

/// The price of a node. Constants are free: they are computed once, in the clear.
pub(crate) fn price(egraph: &EGraph, enode: &Lang) -> Price {
    let small = |id: &Id| egraph[*id].data.small();
    let numbers = |id: &Id| egraph[*id].data.value().shape.len() as u64;
    let unless_one = |id: &Id| u32::from(!small(id).is_all(1.0));
    let one = |x: &Id, depth: u32, work: u64, conditioning: u64| Price {
        operands: vec![(*x, depth)],
        work,
        conditioning,
    };
    match enode {
        Lang::Conv([a, w, _, x]) | Lang::Linear([a, w, _, x]) => {
            let weight = egraph[*w].data.weight();
            let outputs = egraph.analysis.nodes[&egraph[*a].data.attribute()].shape.len() as u64;
            let taps: usize = weight.dims[1..].iter().product();
            one(x, 1, outputs.saturating_mul(taps as u64), spread(&weight.out) + spread(&weight.input))
        }
        Lang::Bn([s, t, x]) => {
            one(x, unless_one(s), 1 + numbers(x) * u64::from(unless_one(s)), bits(small(t)))
        }
        Lang::Pool([_, v, x]) => one(x, unless_one(v), 1 + numbers(x) * u64::from(unless_one(v)), 0),
        Lang::Other(children) => {
            let (depth, work) = egraph.analysis.nodes[&egraph[children[0]].data.attribute()].costs;
            let operands = children[1..].iter().enumerate().map(|(slot, x)| (*x, depth.at(slot))).collect();
            Price { operands, work: 1 + CT_MULT * work.ct_mults + work.pt_mults, conditioning: 0 }
        }
        Lang::Poly([c, x]) => {
            let c = small(c);
            let degree = c.rows() - 1;
            let monic = degree == 0 || f::lead(c).is_all(1.0);
            let depth = power_depth(degree) + u32::from(!monic);
            one(x, depth, numbers(x) * poly_work(c, degree.saturating_sub(1), monic), bits(c))
        }
        Lang::Bivar([c, x, y]) => {
            let c = small(c);
            let degree = f::bi_degree(c);
            let depth = |i, j| {
                let row = monomials(degree).position(|m| m == (i, j));
                let monic = degree == 0 || row.is_some_and(|r| c.row(r).is_all(1.0));
                power_depth(degree) + u32::from(!monic)
            };
            let products = monomials(degree).filter(|(i, j)| i + j > 1).count();
            let operands = vec![(*x, depth(degree, 0)), (*y, depth(0, degree))];
            Price { operands, work: numbers(x) * poly_work(c, products, true), conditioning: bits(c) }
        }
        Lang::Scale([v, x]) => one(x, unless_one(v), numbers(x) * u64::from(unless_one(v)), bits(small(v))),
        Lang::Shift([_, x]) | Lang::Slice([_, x]) | Lang::Pad([_, x]) | Lang::Flatten([x]) => one(x, 0, 1, 0),
        Lang::Add([_, x, y]) | Lang::Concat([x, y]) => {
            Price { operands: vec![(*x, 0), (*y, 0)], work: 1, conditioning: 0 }
        }
        Lang::Prod([x, y]) => {
            Price { operands: vec![(*x, 1), (*y, 1)], work: numbers(x) * CT_MULT, conditioning: 0 }
        }
        Lang::Outputs(x) => Price { operands: x.iter().map(|x| (*x, 0)).collect(), work: 0, conditioning: 0 },
        constant!() | Lang::Input(_) => Price::default(),
    }
}

/// Work per number of a polynomial. A leading coefficient weighs a little more than a scale after a monic polynomial,
/// because the monic one can serve several consumers.
fn poly_work(c: &Small, products: usize, monic: bool) -> u64 {
    let plain = (1..c.rows()).filter(|&r| !c.row(r).all(|x| x == 0.0 || x == 1.0)).count() as u64;
    products as u64 * CT_MULT + plain + u64::from(!monic)
}

/// The largest distance of a nonzero constant from one, in bits.
fn bits(small: &Small) -> u64 {
    let largest = small.members().iter().flat_map(|m| m.iter()).filter(|x| **x != 0.0);
    largest.map(|x| x.abs().log2().abs()).fold(0.0, f64::max).min(1e4) as u64
}

/// The ratio between the largest and the smallest nonzero factor, in bits.
fn spread(small: &Small) -> u64 {
    let logs: Vec<f64> = small
        .members()
        .iter()
        .flat_map(|m| m.iter())
        .filter(|x| **x != 0.0)
        .map(|x| x.abs().log2())
        .collect();
    let lo = logs.iter().copied().fold(f64::INFINITY, f64::min);
    let hi = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if logs.is_empty() { 0 } else { (hi - lo).min(1e4) as u64 }
}

/// Whether a fact is a factor of exactly one.
pub(crate) fn is_one(fact: &Fact) -> bool {
    matches!(fact, Fact::Small(small) if small.is_all(1.0))
}
