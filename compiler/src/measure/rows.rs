//! What every number of a sum is computed from: the rows of its maps, which noise in a map depends on.

use std::collections::BTreeMap;

use fhe_bytecode::noise::Row;
use fhec_ir::MemberIdx;

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
        Self { terms }
    }

    /// The squared weights of every summand, the mean over its rows.
    pub(super) fn weights(&self) -> BTreeMap<Key, f64> {
        let mut means = BTreeMap::new();
        for TermRows { key, weights, .. } in &self.terms {
            *means.entry(*key).or_default() += weights.iter().sum::<f64>() / weights.len().max(1) as f64;
        }
        means
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
    /// As of all rows.
    pub(super) fn weights(&self) -> BTreeMap<Key, f64> {
        self.rows.weights()
    }

    /// The sums over the rows of every summand, each row times the square of the gradient there.
    pub(super) fn acting(&self, grads: &[Vec<f64>]) -> impl Iterator<Item = (Key, Row)> {
        let sum = |(rows, squares): (&TermRows, &Vec<f64>)| {
            let mut sum = Row::default();
            let numbers = rows.weights.iter().zip(&rows.reads).zip(squares);
            for (g, ((weight, reads), squares)) in grads[rows.key.0.index()].iter().zip(numbers) {
                let gain = g * g;
                sum.weight_energy += gain * weight;
                sum.reads += gain * reads;
                sum.squares += gain * squares;
            }
            (rows.key, sum)
        };
        self.rows.terms.iter().zip(&self.squares).map(sum)
    }
}
