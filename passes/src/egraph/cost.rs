//! The price of a term: depth, then work, then conditioning.
//!
//! Depth is a maximum over operands, so taking the cheapest node of every class is exact for it. Work and conditioning are
//! sums that count a shared operand once per use, which is good enough to choose between equals.

use egg::{CostFunction, Id};
use fhec_ir::depth::power_depth;
use fhec_ir::op::monomials;

use super::facts::{EGraph, Fact};
use super::functions as f;
use super::language::Lang;
use super::small::Small;

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

/// Prices the nodes of an e-graph.
pub(crate) struct Pricing<'g>(pub(crate) &'g EGraph);

impl CostFunction<Lang> for Pricing<'_> {
    type Cost = Cost;

    fn cost<C: FnMut(Id) -> Cost>(&mut self, enode: &Lang, mut costs: C) -> Cost {
        let small = |id: &Id| self.0[*id].data.small();
        let numbers = |id: &Id| self.0[*id].data.value().shape.len() as u64;
        let unless_one = |id: &Id| u32::from(!small(id).is_all(1.0));
        let mut of = |operand: &Id, depth: u32, work: u64, conditioning: u64| {
            let cost = costs(*operand);
            Cost {
                depth: cost.depth.saturating_add(depth),
                work: cost.work.saturating_add(work),
                conditioning: cost.conditioning.saturating_add(conditioning),
            }
        };
        match enode {
            Lang::Input(_) => Cost::default(),
            Lang::Conv([a, w, _, x]) | Lang::Linear([a, w, _, x]) => {
                let weight = self.0[*w].data.weight();
                let outputs = self.0.analysis.nodes[&self.0[*a].data.attribute()].shape.len() as u64;
                let taps: usize = weight.dims[1..].iter().product();
                of(x, 1, outputs.saturating_mul(taps as u64), spread(&weight.out) + spread(&weight.input))
            }
            Lang::Bn([s, t, x]) => {
                of(x, unless_one(s), numbers(x) * u64::from(unless_one(s)), bits(small(t)))
            }
            Lang::Pool([_, v, x]) => of(x, unless_one(v), numbers(x) * u64::from(unless_one(v)), 0),
            Lang::PoolInside([_, x]) => of(x, 1, numbers(x), 0),
            Lang::Poly([c, x]) => {
                let c = small(c);
                let degree = c.rows() - 1;
                let monic = degree == 0 || f::lead(c).is_all(1.0);
                let depth = power_depth(degree) + u32::from(!monic);
                of(x, depth, numbers(x) * poly_work(c, degree.saturating_sub(1), monic), bits(c))
            }
            Lang::Bivar([c, x, y]) => {
                let c = small(c);
                let degree = f::bi_degree(c);
                let monic = |i, j| {
                    let row = monomials(degree).position(|m| m == (i, j));
                    degree == 0 || row.is_some_and(|r| c.row(r).is_all(1.0))
                };
                let products = monomials(degree).filter(|(i, j)| i + j > 1).count();
                let work = numbers(x) * poly_work(c, products, monic(degree, 0));
                let depth = |monic: bool| power_depth(degree) + u32::from(!monic);
                join(of(x, depth(monic(degree, 0)), work, bits(c)), of(y, depth(monic(0, degree)), 0, 0))
            }
            Lang::Scale([v, x]) => {
                of(x, unless_one(v), numbers(x) * u64::from(unless_one(v)), bits(small(v)))
            }
            Lang::Shift([_, x]) | Lang::Slice([_, x]) | Lang::Pad([_, x]) | Lang::Flatten([x]) => {
                of(x, 0, 1, 0)
            }
            Lang::Add([_, x, y]) | Lang::Concat([x, y]) => join(of(x, 0, 1, 0), of(y, 0, 0, 0)),
            Lang::Prod([x, y]) => join(of(x, 1, numbers(x) * CT_MULT, 0), of(y, 1, 0, 0)),
            Lang::Outputs(outputs) => outputs.iter().map(|x| of(x, 0, 0, 0)).reduce(join).unwrap_or_default(),
            _ => Cost::default(),
        }
    }
}

fn join(a: Cost, b: Cost) -> Cost {
    Cost {
        depth: a.depth.max(b.depth),
        work: a.work.saturating_add(b.work),
        conditioning: a.conditioning.saturating_add(b.conditioning),
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
