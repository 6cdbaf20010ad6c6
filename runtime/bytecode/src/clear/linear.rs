//! Linear maps over tensor coordinates.
//!
//! Gathers the input tensors from their slots, applies the operations row by row, and scatters the result.

use super::rows::{Reading, Rows, Summand};
use crate::check::CheckedProgram;
use crate::layout::Layout;
use crate::linear::{MemberPair, ResolvedOp, member_pairs};
use crate::program::LinearMap;

/// A linear map with its weights resolved.
#[derive(Debug)]
pub(super) struct ClearMap {
    terms: Vec<ClearTerm>,
    output: Layout,
}

#[derive(Debug)]
struct ClearTerm {
    op: ResolvedOp,
    rows: Reading,
    columns: Reading,
    input: Layout,
    pairs: Vec<MemberPair>,
}

impl ClearMap {
    pub(super) fn new(map: &LinearMap, program: &CheckedProgram) -> Self {
        let output = program.layout(map.output).clone();
        let term = |term: &crate::linear::LinearTerm| {
            let input = program.layout(term.input).clone();
            let op = ResolvedOp::new(&term.op, input.shape(), output.shape(), &program.spec().constants)
                .expect("the checker resolved this operation");
            let pairs =
                member_pairs(&input, &output, op.values.members).expect("the checker paired the members");
            let [rows, columns] = readings(&op);
            ClearTerm { op, rows, columns, input, pairs }
        };
        Self { terms: map.terms.iter().map(term).collect(), output }
    }

    /// The slot vectors of the result.
    pub(super) fn apply(&self, inputs: &[&[Vec<f64>]]) -> Vec<Vec<f64>> {
        let mut result = vec![0.0; self.output.members() * self.output.shape().len()];
        for (term, cts) in self.terms.iter().zip(inputs) {
            let tensor = term.input.gather(cts);
            for pair in &term.pairs {
                for member in 0..pair.count {
                    let (from, to) = (term.op.input().len(), term.op.output().len());
                    let input = &tensor[(pair.input + member) * from..][..from];
                    let output = &mut result[(pair.output + member) * to..][..to];
                    let step = term.op.values.member_step();
                    let weights = &term.op.values.data[(pair.weight + member) * step..];
                    if term.op.is_dense() {
                        dense(weights, input, output);
                    } else {
                        term.convolve(weights, input, output);
                    }
                }
            }
        }
        self.output.scatter(&result)
    }
}

fn dense(weights: &[f64], input: &[f64], output: &mut [f64]) {
    for (row, y) in weights.chunks_exact(input.len()).zip(output) {
        *y += row.iter().zip(input).map(|(w, x)| w * x).sum::<f64>();
    }
}

/// How a map reads its rows and columns.
fn readings(op: &ResolvedOp) -> [Reading; 2] {
    let mut reach = [[i64::MAX, i64::MIN]; 2];
    op.for_each_tap(|tap| {
        for ([first, last], distance) in reach.iter_mut().zip([tap.dy, tap.dx]) {
            (*first, *last) = (distance.min(*first), distance.max(*last));
        }
    });
    // No tap reads nothing.
    let reach = reach.map(|reach| if reach[0] > reach[1] { [0, 0] } else { reach });
    let (from, to) = (op.input(), op.output());
    let axes = [(from.height, to.height), (from.width, to.width)];
    [0, 1].map(|axis| {
        let (n_in, n_out) = axes[axis];
        Reading { n_in: n_in as usize, n_out: n_out as usize, stride: op.stride[axis], reach: reach[axis] }
    })
}

impl ClearTerm {
    fn convolve(&self, weights: &[f64], input: &[f64], output: &mut [f64]) {
        let rows = Rows::new(input, self.rows, self.columns);
        let area = self.rows.n_out * self.columns.n_out;
        let mut add = |channel: usize, summands: &[Summand]| {
            rows.add_to(&mut output[channel * area..][..area], summands);
        };
        // Taps come by their output channel.
        let (mut channel, mut summands) = (0, Vec::new());
        self.op.for_each_tap(|tap| {
            if tap.out_channel != channel {
                add(channel, &summands);
                summands.clear();
                channel = tap.out_channel;
            }
            let weight = weights[tap.weight];
            if weight != 0.0 {
                summands.push(Summand { channel: tap.in_channel, dy: tap.dy, dx: tap.dx, weight });
            }
        });
        add(channel, &summands);
    }
}
