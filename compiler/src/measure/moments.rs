//! How one evaluation answers to noise: sizes of the values and gains of errors in them.

use std::collections::BTreeMap;

use fhec_ir::MemberIdx;

use crate::lower::eval::{self, Trace};
use crate::lower::{Circuit, CircuitOp, Map, ValueId};

/// Sizes and gains of every value, for one result and input or averaged over some.
#[derive(Clone, Debug, Default)]
pub struct Moments {
    /// Variance of a result per variance of the value.
    pub gain: Vec<f64>,
    /// Mean square.
    pub energy: Vec<f64>,
    /// For a sum and a summand that keeps its place: variance of a result when every number of the sum carries noise as
    /// large as that of the summand.
    joint: BTreeMap<(ValueId, ValueId), f64>,
}

impl Moments {
    /// Variance of a result when every number of `value` carries noise as large as the number of `source` at its place.
    #[must_use]
    pub fn joint(&self, value: ValueId, source: ValueId) -> f64 {
        self.joint.get(&(value, source)).copied().unwrap_or(0.0)
    }

    /// The moments of `seed` times the results of an evaluation.
    pub(super) fn new(circuit: &Circuit, trace: &Trace, seed: &[f64], member: MemberIdx) -> Self {
        let grads = eval::gradients(circuit, trace, seed, member);
        let squares = |v: &Vec<f64>| v.iter().map(|x| x * x).sum::<f64>();
        let mut joint = BTreeMap::new();
        for id in circuit.ids() {
            let CircuitOp::Affine(affine) = &circuit.value(id).op else { continue };
            for term in affine.terms.iter().filter(|term| !matches!(term.map, Map::Conv(_))) {
                let (grad, source) = (&grads[id.index()], &trace.values[term.source.index()]);
                let sum = grad.iter().zip(source).map(|(g, x)| (g * x).powi(2)).sum();
                joint.insert((id, term.source), sum);
            }
        }
        Self { gain: grads.iter().map(squares).collect(), energy: energies(trace), joint }
    }

    /// The mean of some moments of one circuit.
    pub(super) fn mean<'a>(all: impl Iterator<Item = &'a Self> + Clone) -> Self {
        let n = all.clone().count().max(1) as f64;
        let mut mean = all.clone().next().cloned().unwrap_or_default();
        for (v, gain) in mean.gain.iter_mut().enumerate() {
            *gain = all.clone().map(|m| m.gain[v]).sum::<f64>() / n;
        }
        for (v, energy) in mean.energy.iter_mut().enumerate() {
            *energy = all.clone().map(|m| m.energy[v]).sum::<f64>() / n;
        }
        for (&(value, source), joint) in &mut mean.joint {
            *joint = all.clone().map(|m| m.joint(value, source)).sum::<f64>() / n;
        }
        mean
    }

    /// All gains times a factor.
    pub(super) fn amplified(mut self, factor: f64) -> Self {
        self.gain.iter_mut().chain(self.joint.values_mut()).for_each(|gain| *gain *= factor);
        self
    }

    /// A merged result sums over the members, whose noise is independent; its own noise arises once.
    pub(super) fn merged(self, circuit: &Circuit) -> Self {
        let n = circuit.n_members as f64;
        let mut merged = self.amplified(n);
        for output in &circuit.outputs {
            merged.gain[output.index()] /= n;
            merged.energy[output.index()] *= n * n;
        }
        merged
    }
}

/// Mean squares of all values.
pub(super) fn energies(trace: &Trace) -> Vec<f64> {
    let energy = |v: &Vec<f64>| v.iter().map(|x| x * x).sum::<f64>() / v.len().max(1) as f64;
    trace.values.iter().map(energy).collect()
}
