//! What the schedule needs to know of the values: how large they are, and how much an error in them moves the result.
//!
//! The gain of a value is the variance of a result when every number of the value carries independent noise of variance
//! one, averaged over the results and the sample inputs. It comes from reverse sweeps with random seeds, whose squared
//! length has the squared norm of the Jacobian as its mean.

use fhec_ir::MemberIdx;
use fhec_ir::spec::Uniform;
use rayon::prelude::*;

use crate::lower::{Circuit, eval};

/// Random seeds per sample.
const PROBES: u64 = 4;

/// Statistics of every value of a circuit.
#[derive(Clone, Debug)]
pub struct Stats {
    /// Variance of a result per variance of the value.
    pub gain: Vec<f64>,
    /// Mean square.
    pub energy: Vec<f64>,
    /// Largest absolute number seen.
    pub peak: Vec<f64>,
}

impl Stats {
    /// Runs the circuit on samples.
    #[must_use]
    pub fn measure(circuit: &Circuit, samples: &[Vec<f64>]) -> Self {
        let members = 0..circuit.n_members as u32;
        let cases: Vec<(usize, MemberIdx)> =
            (0..samples.len()).flat_map(|s| members.clone().map(move |m| (s, MemberIdx(m)))).collect();
        let single: Vec<Self> =
            cases.par_iter().map(|&(s, m)| Self::of_one(circuit, &samples[s], m, s as u64)).collect();
        let n = single.len().max(1) as f64;
        let mean = |pick: fn(&Self) -> &Vec<f64>| -> Vec<f64> {
            (0..circuit.values.len()).map(|v| single.iter().map(|s| pick(s)[v]).sum::<f64>() / n).collect()
        };
        let peak = |v: usize| single.iter().map(|s| s.peak[v]).fold(0.0, f64::max);
        Self {
            gain: mean(|s| &s.gain),
            energy: mean(|s| &s.energy),
            peak: (0..circuit.values.len()).map(peak).collect(),
        }
    }

    fn of_one(circuit: &Circuit, sample: &[f64], member: MemberIdx, seed: u64) -> Self {
        let trace = eval::trace(circuit, &[sample], member);
        let n_out = circuit.outputs.first().map_or(1, |o| circuit.value(*o).shape.len());
        let mut gain = vec![0.0; circuit.values.len()];
        for probe in 0..PROBES {
            let mut stream = Uniform::new(seed * PROBES + probe + 1);
            // Signs have variance one and the least spread of all seeds.
            let signs: Vec<f64> = (0..n_out).map(|_| if stream.below(2) == 0 { -1.0 } else { 1.0 }).collect();
            let grads = eval::gradients(circuit, &trace, &signs, member);
            for (sum, grad) in gain.iter_mut().zip(&grads) {
                *sum += grad.iter().map(|g| g * g).sum::<f64>() / (PROBES as usize * n_out) as f64;
            }
        }
        let energy = |v: &Vec<f64>| v.iter().map(|x| x * x).sum::<f64>() / v.len().max(1) as f64;
        let peak = |v: &Vec<f64>| v.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
        Self {
            gain,
            energy: trace.values.iter().map(energy).collect(),
            peak: trace.values.iter().map(peak).collect(),
        }
    }
}

/// Inputs for when no calibration data is given: normal numbers, as normalized images have.
#[must_use]
pub fn random_samples(circuit: &Circuit, count: usize) -> Vec<Vec<f64>> {
    let n = circuit.inputs().first().map_or(0, |&id| circuit.value(id).shape.len());
    let sample = |seed: usize| {
        let mut stream = Uniform::new(0x5eed + seed as u64);
        // The sum of twelve uniform numbers is close to normal and the same on every machine.
        (0..n).map(|_| (0..12).map(|_| stream.between(0.0, 1.0)).sum::<f64>() - 6.0).collect()
    };
    (0..count).map(sample).collect()
}
