//! Linear maps over tensor coordinates.
//!
//! Gathers the input tensors from their slots, applies the operations row by row, and scatters the result.

use super::rows::{Reading, Rows, Summand};
use crate::check::CheckedProgram;
use crate::layout::{Layout, Shape};
use crate::linear::{MemberPair, ResolvedOp, member_pairs};
use crate::noise::Row;
use crate::program::LinearMap;

/// Channels whose taps are collected.
const CHANNELS: usize = 8;

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
        let mut result = vec![0.0; self.n_numbers()];
        for (term, cts) in self.terms.iter().zip(inputs) {
            term.add_to(&mut result, &term.input.gather(cts), |w| w);
        }
        self.output.scatter(&result)
    }

    /// What every number of the result is computed from, term by term, if the numbers of the operands have these mean squares.
    pub(super) fn rows(&self, squares: &[&[f64]]) -> Vec<Vec<Row>> {
        let of_term = |(term, squares): (&ClearTerm, &&[f64])| {
            let ones = vec![1.0; squares.len()];
            let read = |w: f64| if w == 0.0 { 0.0 } else { 1.0 };
            let weights = self.sums(term, &ones, |w| w * w);
            let numbers =
                weights.into_iter().zip(self.sums(term, &ones, read)).zip(self.sums(term, squares, read));
            let row =
                |((weight_energy, reads), squares)| Row { weight_energy, reads, squares, ..Row::default() };
            numbers.map(row).collect()
        };
        self.terms.iter().zip(squares).map(of_term).collect()
    }

    /// Variances of the numbers of the operands, carried to every number of the result, term by term.
    pub(super) fn carried(&self, variances: &[&[f64]]) -> Vec<Vec<f64>> {
        let terms = self.terms.iter().zip(variances);
        terms.map(|(term, variances)| self.sums(term, variances, |w| w * w)).collect()
    }

    /// The operation on a tensor, with a function of its weights for weights.
    fn sums(&self, term: &ClearTerm, tensor: &[f64], f: fn(f64) -> f64) -> Vec<f64> {
        let mut sums = vec![0.0; self.n_numbers()];
        term.add_to(&mut sums, tensor, f);
        sums
    }

    fn n_numbers(&self) -> usize {
        self.output.members() * self.output.shape().len()
    }
}

impl ClearTerm {
    /// Adds the operation on a tensor to the result, with a function of its weights for weights.
    fn add_to(&self, result: &mut [f64], tensor: &[f64], f: impl Fn(f64) -> f64) {
        let (from, to) = (self.op.input().len(), self.op.output().len());
        let step = self.op.values.member_step();
        for pair in &self.pairs {
            for member in 0..pair.count {
                let input = &tensor[(pair.input + member) * from..][..from];
                let output = &mut result[(pair.output + member) * to..][..to];
                let weights = &self.op.values.data[(pair.weight + member) * step..];
                if self.op.is_dense() {
                    dense(weights, input, output, &f);
                } else {
                    self.convolve(weights, input, output, &f);
                }
            }
        }
    }

    fn convolve(&self, weights: &[f64], input: &[f64], output: &mut [f64], f: impl Fn(f64) -> f64) {
        let rows = Rows::new(input, reading(&self.op, 0), reading(&self.op, 1));
        let area = self.op.output().height as usize * self.op.output().width as usize;
        // Taps come by their output channel; some channels are added together.
        let mut waiting: Vec<Vec<Summand>> = vec![Vec::new(); CHANNELS];
        let mut first = 0;
        let mut add = |first: usize, waiting: &mut [Vec<Summand>]| {
            let end = output.len().min((first + waiting.len()) * area);
            let output = &mut output[first * area..end];
            rows.add_to_each(output, &waiting[..output.len() / area.max(1)]);
            waiting.iter_mut().for_each(Vec::clear);
        };
        self.op.for_each_tap(|tap| {
            while tap.out_channel >= first + CHANNELS {
                add(first, &mut waiting);
                first += CHANNELS;
            }
            let weight = f(weights[tap.weight]);
            if weight != 0.0 {
                let summand = Summand { channel: tap.in_channel, dy: tap.dy, dx: tap.dx, weight };
                waiting[tap.out_channel - first].push(summand);
            }
        });
        add(first, &mut waiting);
    }
}

fn dense(weights: &[f64], input: &[f64], output: &mut [f64], f: impl Fn(f64) -> f64) {
    for (row, y) in weights.chunks_exact(input.len()).zip(output) {
        *y += row.iter().zip(input).map(|(w, x)| f(*w) * x).sum::<f64>();
    }
}

/// How an operation reads its rows (axis 0) or columns (axis 1).
fn reading(op: &ResolvedOp, axis: usize) -> Reading {
    let n = |shape: Shape| [shape.height, shape.width][axis] as usize;
    let (n_in, n_out) = (n(op.input()), n(op.output()));
    Reading { n_in, n_out, stride: op.stride[axis], reach: op.geometry().offsets(axis) }
}
