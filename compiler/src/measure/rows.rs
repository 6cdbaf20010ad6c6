//! What every number of a sum is computed from: the rows of its maps, which noise in a map depends on.

use std::collections::BTreeMap;

use fhe_bytecode::noise::Row;
use fhec_ir::MemberIdx;

use super::moments::added;
use crate::lower::eval::Trace;
use crate::lower::{Circuit, CircuitOp, Map, Term, ValueId};

/// A summand: the sum, the operand, and whether its numbers keep their places.
pub(super) type Key = (ValueId, ValueId, bool);

/// The rows of one summand, number by number.
struct TermRows {
    key: Key,
    /// Index among the summands of its sum.
    term: usize,
    weights: Vec<f64>,
    reads: Vec<f64>,
}

/// The rows of every summand of a circuit, for one member.
pub(super) struct Rows {
    terms: Vec<TermRows>,
    /// The squared weights of every summand, the mean over its rows.
    weights: BTreeMap<Key, f64>,
}

/// The same with what they read in one evaluation.
pub(super) struct ReadRows<'a> {
    rows: &'a Rows,
    squares: Vec<Vec<f64>>,
}

impl Rows {
    pub(super) fn new(circuit: &Circuit, member: MemberIdx) -> Self {
        let mut terms = Vec::new();
        for id in circuit.ids() {
            let CircuitOp::Affine(affine) = &circuit.value(id).op else { continue };
            let shape = circuit.value(id).shape;
            for (index, term) in affine.terms.iter().enumerate() {
                let n = shape.len();
                let (weights, reads) = match &term.map {
                    Map::Identity => (vec![1.0; n], vec![1.0; n]),
                    Map::Diagonal(factor) => {
                        let square = |i| factor.at(member, shape, i).powi(2);
                        ((0..n).map(square).collect(), vec![1.0; n])
                    }
                    Map::Conv(conv) => {
                        (conv.energies(member), conv.reached(member, &vec![1.0; conv.input.len()]))
                    }
                };
                let key = (id, term.source, !matches!(term.map, Map::Conv(_)));
                terms.push(TermRows { key, term: index, weights, reads });
            }
        }
        let mut means = BTreeMap::new();
        for TermRows { key, weights, .. } in &terms {
            *means.entry(*key).or_default() += weights.iter().sum::<f64>() / weights.len().max(1) as f64;
        }
        Self { terms, weights: means }
    }

    /// The rows of an evaluation.
    pub(super) fn read(&self, circuit: &Circuit, trace: &Trace, member: MemberIdx) -> ReadRows<'_> {
        let squares = |rows: &TermRows| {
            let (value, source, _) = rows.key;
            let squares: Vec<f64> = trace.values[source.index()].iter().map(|x| x * x).collect();
            match &term(circuit, value, rows.term).map {
                Map::Identity | Map::Diagonal(_) => squares,
                Map::Conv(conv) => conv.reached(member, &squares),
            }
        };
        ReadRows { rows: self, squares: self.terms.iter().map(squares).collect() }
    }
}

fn term(circuit: &Circuit, value: ValueId, index: usize) -> &Term {
    match &circuit.value(value).op {
        CircuitOp::Affine(affine) => &affine.terms[index],
        CircuitOp::Input | CircuitOp::Product(_) => unreachable!("rows are those of sums"),
    }
}

impl ReadRows<'_> {
    /// The squared weights of every summand, the mean over its rows.
    pub(super) fn weights(&self) -> BTreeMap<Key, f64> {
        self.rows.weights.clone()
    }

    /// For every seed the sums over the rows of every summand, each row times the square of the gradient there.
    pub(super) fn acting(&self, grads: &[Vec<Vec<f64>>]) -> Vec<BTreeMap<Key, Row>> {
        let n_seeds = grads.first().map_or(0, Vec::len);
        let mut all: Vec<BTreeMap<Key, Row>> = vec![BTreeMap::new(); n_seeds];
        for (rows, squares) in self.rows.terms.iter().zip(&self.squares) {
            let grads = &grads[rows.key.0.index()];
            // A sum waits for its last addition, so several take turns.
            let (threes, rest) = grads.as_chunks::<3>();
            let sums = threes.iter().flat_map(|grads| rows.sums(squares, grads.each_ref().map(|g| &g[..])));
            let sums = sums.chain(rest.iter().flat_map(|grads| rows.sums(squares, [&grads[..]])));
            for (all, sum) in all.iter_mut().zip(sums) {
                let row = all.entry(rows.key).or_default();
                *row = added(*row, sum);
            }
        }
        all
    }
}

impl TermRows {
    /// For every seed the sum over all rows, each times the square of the gradient there.
    fn sums<const N: usize>(&self, squares: &[f64], grads: [&[f64]; N]) -> [Row; N] {
        let n = squares.len();
        let (weights, reads, grads) = (&self.weights[..n], &self.reads[..n], grads.map(|g| &g[..n]));
        let mut sums = [Row::default(); N];
        for i in 0..n {
            for (sum, grads) in sums.iter_mut().zip(grads) {
                let gain = grads[i] * grads[i];
                sum.weight_energy += gain * weights[i];
                sum.reads += gain * reads[i];
                sum.squares += gain * squares[i];
            }
        }
        sums
    }
}
