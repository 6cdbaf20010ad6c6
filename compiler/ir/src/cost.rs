//! What a graph costs: multiplications on the longest path (its depth, paper §4.4), and products in all (its work).
//!
//! Convolution, linear, pooling, batch normalization and scale cost a depth of 1; a polynomial of degree d costs
//! ⌈log2 d⌉ + 1. An operation whose leading coefficient or divisor is exactly one for every channel and member saves that 1.
//! Sums, constants and re-arrangements are free.
//!
//! Work is counted per number of the tensors, before packing: a convolution multiplies once per weight and output position,
//! a polynomial of degree d once per power it builds. Coefficients, factors and divisors of exactly one are free.

use crate::op::{bivar_degree, monomials};
use crate::{Divisor, Graph, NodeId, Op, TensorId, Weights};

/// Depth of every node of a graph.
#[derive(Clone, Debug)]
pub struct Depths {
    depth: Vec<u32>,
    total: u32,
}

impl Depths {
    /// Multiplications on the longest path that ends at the node, itself included.
    #[must_use]
    pub fn of(&self, id: NodeId) -> u32 {
        self.depth[id.index()]
    }

    /// Multiplications on the longest path of the graph.
    #[must_use]
    pub fn total(&self) -> u32 {
        self.total
    }
}

/// Computes the depth of every node.
#[must_use]
pub fn depths(graph: &Graph) -> Depths {
    let mut depth = vec![0; graph.bound()];
    let mut total = 0;
    for id in graph.topo_order() {
        let costs = operand_costs(graph.op(id), graph.weights());
        let reached =
            graph.operands(id).iter().enumerate().map(|(slot, o)| depth[o.index()] + costs.at(slot)).max();
        depth[id.index()] = reached.unwrap_or(0);
        total = total.max(depth[id.index()]);
    }
    Depths { depth, total }
}

/// What an operation adds to the depth of each of its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperandCosts {
    first: u32,
    rest: u32,
}

impl OperandCosts {
    /// Cost to the operand in a slot.
    #[must_use]
    pub fn at(&self, slot: usize) -> u32 {
        if slot == 0 { self.first } else { self.rest }
    }

    /// The larger of the costs: what the operation counts for in a chain.
    #[must_use]
    pub fn max(&self) -> u32 {
        self.first.max(self.rest)
    }

    const fn same(cost: u32) -> Self {
        Self { first: cost, rest: cost }
    }
}

/// What an operation adds to the depth of each of its operands.
#[must_use]
pub fn operand_costs(op: &Op, weights: &Weights) -> OperandCosts {
    let unless_one = |id: TensorId| u32::from(!weights.members(id).iter().all(|t| t.is_all(1.0)));
    match op {
        Op::Conv2d(_) | Op::Linear(_) | Op::Mul => OperandCosts::same(1),
        Op::BatchNorm { scale, .. } => OperandCosts::same(unless_one(*scale)),
        Op::Scale { factor } => OperandCosts::same(unless_one(*factor)),
        Op::Pool(pool) => OperandCosts::same(u32::from(pool.divisor != Divisor::Constant(1.0))),
        Op::Poly { coeffs } => {
            let degree = weights.get(*coeffs).dims()[0] - 1;
            OperandCosts::same(
                power_depth(degree) + u32::from(degree > 0 && !row_is_one(weights, *coeffs, degree)),
            )
        }
        Op::Bivar { coeffs } => bivar_costs(weights, *coeffs),
        Op::Input { .. }
        | Op::AddConst { .. }
        | Op::Add
        | Op::Concat
        | Op::Slice(_)
        | Op::Pad(_)
        | Op::Flatten
        | Op::Output => OperandCosts::same(0),
    }
}

/// Products on the way to x^d.
#[must_use]
pub fn power_depth(degree: usize) -> u32 {
    degree.max(1).next_power_of_two().trailing_zeros()
}

/// A bivariate polynomial that is monic in x reaches degree d without a constant on the way of x, because the constants
/// of the mixed monomials multiply y; likewise for y.
fn bivar_costs(weights: &Weights, coeffs: TensorId) -> OperandCosts {
    let degree =
        bivar_degree(weights.get(coeffs).dims()[0]).expect("shape inference checked the monomial count");
    let row = |wanted: (usize, usize)| {
        monomials(degree).position(|m| m == wanted).expect("a pure power is among the monomials")
    };
    let cost =
        |i, j| power_depth(degree) + u32::from(degree > 0 && !row_is_one(weights, coeffs, row((i, j))));
    OperandCosts { first: cost(degree, 0), rest: cost(0, degree) }
}

fn row_is_one(weights: &Weights, coeffs: TensorId, row: usize) -> bool {
    weights.members(coeffs).iter().all(|t| {
        let channels = t.dims()[1];
        (row * channels..(row + 1) * channels).all(|i| t.get(i) == 1.0)
    })
}

/// Work of a node or a graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Products of two encrypted numbers.
    pub ct_mults: u64,
    /// Products of an encrypted and a plain number.
    pub pt_mults: u64,
}

impl std::ops::Add for Work {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            ct_mults: self.ct_mults.saturating_add(other.ct_mults),
            pt_mults: self.pt_mults.saturating_add(other.pt_mults),
        }
    }
}

/// Work of a whole graph.
#[must_use]
pub fn work(graph: &Graph) -> Work {
    graph.ids().fold(Work::default(), |sum, id| sum + node_work(graph, id))
}

/// Work of one node.
#[must_use]
pub fn node_work(graph: &Graph, id: NodeId) -> Work {
    let numbers = graph.shape(id).len() as u64;
    let per_channel = |tensor: TensorId, row: usize| {
        let t = graph.tensor(tensor);
        let channels = *t.dims().last().unwrap_or(&1);
        let plain =
            (row * channels..(row + 1) * channels).filter(|&i| t.get(i) != 0.0 && t.get(i) != 1.0).count();
        (plain * graph.shape(id).len() / channels) as u64
    };
    match graph.op(id) {
        Op::Conv2d(conv) => {
            let dims = graph.tensor(conv.weight).dims();
            Work { ct_mults: 0, pt_mults: numbers * (dims[1] * dims[2] * dims[3]) as u64 }
        }
        Op::Linear(linear) => Work { ct_mults: 0, pt_mults: graph.tensor(linear.weight).len() as u64 },
        Op::BatchNorm { scale: factor, .. } | Op::Scale { factor } => {
            Work { ct_mults: 0, pt_mults: per_channel(*factor, 0) }
        }
        Op::Pool(pool) => {
            Work { ct_mults: 0, pt_mults: if pool.divisor == Divisor::Constant(1.0) { 0 } else { numbers } }
        }
        Op::Poly { coeffs } => {
            let degree = graph.tensor(*coeffs).dims()[0] - 1;
            let pt_mults = (1..=degree).map(|i| per_channel(*coeffs, i)).sum();
            Work { ct_mults: numbers * degree.saturating_sub(1) as u64, pt_mults }
        }
        Op::Bivar { coeffs } => {
            let degree = bivar_degree(graph.tensor(*coeffs).dims()[0]).unwrap_or(0);
            let products = monomials(degree).filter(|(i, j)| i + j > 1).count() as u64;
            let pt_mults =
                monomials(degree).enumerate().skip(1).map(|(row, _)| per_channel(*coeffs, row)).sum();
            Work { ct_mults: numbers * products, pt_mults }
        }
        Op::Mul => Work { ct_mults: numbers, pt_mults: 0 },
        Op::Input { .. }
        | Op::AddConst { .. }
        | Op::Add
        | Op::Concat
        | Op::Slice(_)
        | Op::Pad(_)
        | Op::Flatten
        | Op::Output => Work::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_double_per_product() {
        let found: Vec<u32> = (1..=8).map(power_depth).collect();
        assert_eq!(found, [0, 1, 2, 2, 3, 3, 3, 3]);
    }
}
