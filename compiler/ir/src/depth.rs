//! Multiplicative depth: how many multiplications lie on the longest path (paper §4.4).
//!
//! Convolution, linear, pooling, batch normalization and scale cost 1; a polynomial of degree d costs ⌈log2 d⌉ + 1. An
//! operation whose leading coefficient or divisor is exactly one for every channel and member saves that 1. Sums,
//! constants and re-arrangements are free.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_double_per_product() {
        let found: Vec<u32> = (1..=8).map(power_depth).collect();
        assert_eq!(found, [0, 1, 2, 2, 3, 3, 3, 3]);
    }
}
