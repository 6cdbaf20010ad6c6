//! How far values reach: what moduli have to hold, and what a program says about its input and its scores.

use crate::lower::eval::Trace;
use crate::lower::{Circuit, ValueId};

/// Largest numbers seen.
#[derive(Clone, Debug, PartialEq)]
pub struct Extent {
    /// Largest absolute number of every value, partial sums included.
    pub peak: Vec<f64>,
    /// Smallest and largest number of the input.
    pub input: [f64; 2],
    /// Smallest and largest number of the result.
    pub output: [f64; 2],
}

impl Extent {
    /// That of one evaluation.
    pub(super) fn new(circuit: &Circuit, trace: &mut Trace) -> Self {
        let range = |id: Option<&ValueId>| {
            let numbers = id.map(|id| &trace.values[id.index()]).into_iter().flatten();
            numbers.map(|&x| [x, x]).reduce(union).unwrap_or([0.0; 2])
        };
        Self {
            input: range(circuit.inputs().first()),
            output: range(circuit.outputs.first()),
            peak: std::mem::take(&mut trace.peaks),
        }
    }

    /// The same with an input that reaches further.
    pub(super) fn with_input(mut self, circuit: &Circuit, range: [f64; 2]) -> Self {
        self.input = union(self.input, range);
        let largest = range[0].abs().max(range[1].abs());
        circuit.inputs().iter().for_each(|id| self.peak[id.index()] = self.peak[id.index()].max(largest));
        self
    }

    /// That of no evaluation at all.
    pub(super) fn none(n_values: usize) -> Self {
        Self { peak: vec![0.0; n_values], input: [0.0; 2], output: [0.0; 2] }
    }

    /// That of two evaluations.
    pub(super) fn joined(mut self, other: &Self) -> Self {
        self.peak.iter_mut().zip(&other.peak).for_each(|(a, b)| *a = a.max(*b));
        Self {
            peak: self.peak,
            input: union(self.input, other.input),
            output: union(self.output, other.output),
        }
    }

    /// That of a result that sums over the members.
    pub(super) fn merged(mut self, circuit: &Circuit) -> Self {
        let n = circuit.n_members as f64;
        circuit.outputs.iter().for_each(|output| self.peak[output.index()] *= n);
        Self { output: self.output.map(|end| end * n), ..self }
    }

    /// The largest absolute number of the result.
    #[must_use]
    pub fn largest_result(&self) -> f64 {
        self.output[0].abs().max(self.output[1].abs())
    }
}

fn union(a: [f64; 2], b: [f64; 2]) -> [f64; 2] {
    [a[0].min(b[0]), a[1].max(b[1])]
}
