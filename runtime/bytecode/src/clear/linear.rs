//! Linear maps over tensor coordinates.
//!
//! Gathers the input tensors from their slots, applies the operations row by row, and scatters the result.

use crate::check::CheckedProgram;
use crate::layout::Layout;
use crate::linear::{MemberPair, ResolvedOp, Tap, member_pairs, valid_range};
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
            ClearTerm { op, input, pairs }
        };
        Self { terms: map.terms.iter().map(term).collect(), output }
    }

    /// The operands of every lane.
    pub(super) fn lanes<'a>(&self, inputs: &[&'a [Vec<f64>]]) -> Vec<Vec<&'a [Vec<f64>]>> {
        let Some((term, first)) = self.terms.first().zip(inputs.first()) else { return Vec::new() };
        let lane = |lane: usize| {
            let of_lane = |(term, cts): (&ClearTerm, &&'a [Vec<f64>])| {
                let n_cts = term.input.n_cts();
                &cts[lane * n_cts..][..n_cts]
            };
            self.terms.iter().zip(inputs).map(of_lane).collect()
        };
        (0..first.len() / term.input.n_cts()).map(lane).collect()
    }

    /// The slot vectors of the result, of one lane.
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
                        term.op
                            .for_each_tap(|tap| apply_tap(&term.op, tap, weights[tap.weight], input, output));
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

fn apply_tap(op: &ResolvedOp, tap: Tap, weight: f64, input: &[f64], output: &mut [f64]) {
    if weight == 0.0 {
        return;
    }
    let (from, to) = (op.input(), op.output());
    let [h_in, w_in, h_out, w_out] = [from.height, from.width, to.height, to.width].map(|n| n as usize);
    let ys = valid_range(h_out, h_in, op.stride[0], tap.dy);
    let xs = valid_range(w_out, w_in, op.stride[1], tap.dx);
    if xs.is_empty() {
        return;
    }
    let stride = op.stride[1];
    let first = ((xs.start * stride) as i64 + tap.dx) as usize;
    for y in ys {
        let source = ((y * op.stride[0]) as i64 + tap.dy) as usize;
        let row = &input[(tap.in_channel * h_in + source) * w_in + first..];
        let out = &mut output[(tap.out_channel * h_out + y) * w_out..][xs.clone()];
        if stride == 1 {
            out.iter_mut().zip(row).for_each(|(o, i)| *o += weight * i);
        } else {
            out.iter_mut().zip(row.iter().step_by(stride)).for_each(|(o, i)| *o += weight * i);
        }
    }
}
