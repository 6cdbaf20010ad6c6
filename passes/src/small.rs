//! Small constants of the e-graph: factors, shifts and coefficient tables, one per member, kept by value.
//!
//! A shape of one number stands for every channel. All arithmetic broadcasts and runs member by member.

use std::sync::Arc;

use fhec_ir::{Graph, Tensor, TensorId};

/// A vector, per-element constant or coefficient table, for every member.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Small {
    /// Extents; a coefficient table is `[rows, channels]`.
    pub(crate) dims: Vec<usize>,
    members: Vec<Arc<[f64]>>,
}

impl Small {
    pub(crate) fn scalar(value: f64) -> Self {
        Self { dims: vec![1], members: vec![[value].into()] }
    }

    pub(crate) fn vector(values: Vec<f64>) -> Self {
        Self { dims: vec![values.len()], members: vec![values.into()] }
    }

    pub(crate) fn of(graph: &Graph, id: TensorId) -> Self {
        Self::from_tensors(graph.weights().members(id))
    }

    /// One tensor per member, of equal extents.
    pub(crate) fn from_tensors(members: &[Tensor]) -> Self {
        Self {
            dims: members[0].dims().to_vec(),
            members: members.iter().map(|t| t.to_f64().as_ref().into()).collect(),
        }
    }

    /// Adds this constant to the weight table of a graph.
    pub(crate) fn store(&self, graph: &mut Graph) -> TensorId {
        let tensor = |data: &Arc<[f64]>| {
            Tensor::from_f64(self.dims.clone(), data.clone()).expect("small constants keep their extents")
        };
        graph.add_member_tensors(self.members.iter().map(tensor).collect())
    }

    pub(crate) fn len(&self) -> usize {
        self.members[0].len()
    }

    pub(crate) fn members(&self) -> &[Arc<[f64]>] {
        &self.members
    }

    /// The values of one member; a single value list is shared by all.
    pub(crate) fn member(&self, m: usize) -> &[f64] {
        self.members.get(m).unwrap_or(&self.members[0])
    }

    pub(crate) fn all(&self, mut f: impl FnMut(f64) -> bool) -> bool {
        self.members.iter().all(|m| m.iter().all(|&x| f(x)))
    }

    pub(crate) fn is_all(&self, value: f64) -> bool {
        self.all(|x| x == value)
    }

    /// Whether dividing by this loses nothing: no zero, and no channel that is nearly dead beside the others.
    pub(crate) fn is_invertible(&self) -> bool {
        self.members.iter().all(|m| {
            let largest = m.iter().fold(0.0_f64, |a, x| a.max(x.abs()));
            m.iter().all(|x| x.is_finite() && x.abs() > largest * NEARLY_DEAD && x.abs() > f64::MIN_POSITIVE)
        })
    }

    pub(crate) fn map(&self, f: impl Fn(f64) -> f64) -> Self {
        let members = self.members.iter().map(|m| m.iter().map(|&x| f(x)).collect()).collect();
        Self { dims: self.dims.clone(), members }
    }

    /// Number by number, the shorter operand repeated per channel.
    pub(crate) fn zip(&self, other: &Self, f: impl Fn(f64, f64) -> f64) -> Self {
        let longer = if self.len() >= other.len() { self } else { other };
        self.combine(other, longer.dims.clone(), |a, b| {
            let n = a.len().max(b.len());
            (0..n).map(|i| f(broadcast(a, i, n), broadcast(b, i, n))).collect()
        })
    }

    /// Member by member with any function of both value lists.
    pub(crate) fn combine(
        &self,
        other: &Self,
        dims: Vec<usize>,
        f: impl Fn(&[f64], &[f64]) -> Vec<f64>,
    ) -> Self {
        let n = self.members.len().max(other.members.len());
        let members = (0..n).map(|m| f(self.member(m), other.member(m)).into()).collect();
        Self { dims, members }
    }

    /// Member by member with any function of the value list.
    pub(crate) fn rebuild(&self, dims: Vec<usize>, f: impl Fn(&[f64]) -> Vec<f64>) -> Self {
        Self { dims, members: self.members.iter().map(|m| f(m).into()).collect() }
    }

    /// Rows of a coefficient table.
    pub(crate) fn rows(&self) -> usize {
        self.dims[0]
    }

    /// One row of a coefficient table as a vector.
    pub(crate) fn row(&self, r: usize) -> Self {
        let width = self.dims[1];
        self.rebuild(vec![width], |m| m[r * width..(r + 1) * width].to_vec())
    }

    /// A coefficient table from its rows.
    pub(crate) fn stack(rows: &[Self]) -> Self {
        let width = rows.iter().map(Self::len).max().unwrap_or(1);
        let n = rows.iter().map(|r| r.members.len()).max().unwrap_or(1);
        let member = |m: usize| -> Arc<[f64]> {
            rows.iter().flat_map(|r| (0..width).map(move |i| broadcast(r.member(m), i, width))).collect()
        };
        Self { dims: vec![rows.len(), width], members: (0..n).map(member).collect() }
    }

    /// A positive number that hardly moves when the constant is rounded; how near constants are found.
    pub(crate) fn signature(&self) -> f64 {
        let weigh = |i: usize, x: f64| x.abs() * (1.0 + (i as f64 * 0.618_033_988_749_895).fract());
        let sum = |m: &Arc<[f64]>| m.iter().enumerate().map(|(i, &x)| weigh(i, x)).sum::<f64>();
        self.members.iter().map(sum).sum()
    }

    /// Whether two constants differ by rounding only.
    pub(crate) fn is_near(&self, other: &Self) -> bool {
        let near = |a: f64, b: f64| (a - b).abs() <= ROUNDING * a.abs().max(b.abs());
        self.dims == other.dims
            && self.members.len() == other.members.len()
            && self
                .members
                .iter()
                .zip(&other.members)
                .all(|(a, b)| a.iter().zip(b.iter()).all(|(a, b)| near(*a, *b)))
    }
}

/// Relative difference below which two constants are the same: a few dozen roundings.
pub(crate) const ROUNDING: f64 = 1e-13;

/// Below this part of the largest channel, a channel is nearly dead: dividing by it would make its constants explode.
const NEARLY_DEAD: f64 = 1e-6;

/// The i-th of `n` numbers when `values` has one per channel.
pub(crate) fn broadcast(values: &[f64], i: usize, n: usize) -> f64 {
    values[i / (n / values.len())]
}
