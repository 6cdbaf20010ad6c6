//! Size of a graph as homomorphic work: products of encrypted numbers with encrypted and with plain ones.
//!
//! Counted per number of the tensors, before packing: a convolution multiplies once per weight and output position, a
//! polynomial of degree d once per power it builds. Coefficients, factors and divisors of exactly one are free.

use crate::op::{bivar_degree, monomials};
use crate::{Divisor, Graph, NodeId, Op, TensorId};

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
