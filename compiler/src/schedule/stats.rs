//! What the schedule needs to know of the values: how large they are, and how much an error in them moves the result.
//!
//! The gain of a value is the variance of a result when every number of the value carries independent noise of variance
//! one, averaged over the results and the sample inputs. It comes from reverse sweeps with random seeds, whose squared
//! length has the squared norm of the Jacobian as its mean.

use fhec_ir::spec::Uniform;
use fhec_ir::{MemberIdx, Shape};
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
        let mut stats = Self {
            gain: mean(|s| &s.gain),
            energy: mean(|s| &s.energy),
            peak: (0..circuit.values.len()).map(peak).collect(),
        };
        if circuit.merged {
            stats.merge(circuit);
        }
        stats
    }

    /// A merged result sums over the members, whose noise is independent; its own noise arises once.
    fn merge(&mut self, circuit: &Circuit) {
        let n = circuit.n_members as f64;
        self.gain.iter_mut().for_each(|gain| *gain *= n);
        for output in &circuit.outputs {
            self.gain[output.index()] /= n;
            self.energy[output.index()] *= n * n;
            self.peak[output.index()] *= n;
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

/// Inputs for when no calibration data is given: in turn white noise and sums of slow waves, which is what photographs
/// look like to a first layer, both with a deviation of one as normalized images have.
#[must_use]
pub fn random_samples(circuit: &Circuit, count: usize) -> Vec<Vec<f64>> {
    let Some(&input) = circuit.inputs().first() else { return Vec::new() };
    let shape = circuit.value(input).shape;
    let sample = |seed: usize| {
        let mut stream = Uniform::new(0x5eed + seed as u64);
        if seed.is_multiple_of(2) { noise(shape, &mut stream) } else { waves(shape, &mut stream) }
    };
    (0..count).map(sample).collect()
}

fn noise(shape: Shape, stream: &mut Uniform) -> Vec<f64> {
    // The sum of twelve uniform numbers is close to normal and the same on every machine.
    (0..shape.len()).map(|_| (0..12).map(|_| stream.between(0.0, 1.0)).sum::<f64>() - 6.0).collect()
}

fn waves(shape: Shape, stream: &mut Uniform) -> Vec<f64> {
    let mut image = vec![0.0; shape.len()];
    for plane in image.chunks_mut(shape.area().max(1)) {
        for _ in 0..4 {
            let (fy, fx) = (stream.between(-0.5, 0.5), stream.between(-0.5, 0.5));
            let phase = stream.between(0.0, std::f64::consts::TAU);
            for (i, value) in plane.iter_mut().enumerate() {
                let (y, x) = ((i / shape.w) as f64, (i % shape.w) as f64);
                *value += std::f64::consts::FRAC_1_SQRT_2 * (fy * y + fx * x + phase).cos();
            }
        }
    }
    image
}
