//! What the schedule needs to know of the values: how large they are, and how much an error in them moves the result.
//!
//! The gain of a value is the variance of a result when every number of the value carries independent noise of variance
//! one, averaged over the results and the sample inputs. It comes from reverse sweeps with random seeds, whose squared
//! length has the squared norm of the Jacobian as its mean.

use fhec_ir::MemberIdx;
use fhec_ir::spec::Uniform;
use rayon::prelude::*;

use crate::lower::{Circuit, ValueId, eval};
use crate::simulate::Inputs;

/// Random seeds per sample.
const PROBES: u64 = 2;
/// Made-up inputs whose scores are larger than so many times the median are left out: a polynomial answers what it was
/// not trained for with numbers that no image leads to.
const WILD: f64 = 4.0;
/// Numbers beyond this fit no modulus.
pub const LARGEST: f64 = (1u64 << 60) as f64;

/// Inputs between two reports of progress.
const CHUNK: usize = 64;
/// Results below this need a scale that fits no modulus.
const SMALLEST: f64 = 1.0 / LARGEST;

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

/// A value whose numbers are too large for any schedule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Overflow {
    /// The first such value.
    pub value: ValueId,
    /// Its largest number; infinite where it is no number at all.
    pub size: f64,
}

impl Stats {
    /// Runs the circuit on real inputs: every one counts.
    ///
    /// # Errors
    /// When the numbers of a value grow beyond all bounds.
    pub fn measure(circuit: &Circuit, samples: &[Vec<f64>]) -> Result<Self, Overflow> {
        let single = Self::of_each(circuit, samples);
        match single.iter().find_map(Self::overflow) {
            Some(overflow) => Err(overflow),
            None => Ok(Self::summed_up(circuit, &single.iter().collect::<Vec<_>>())),
        }
    }

    /// Runs the circuit on made-up inputs: those that lead far away from the others do not count.
    ///
    /// # Errors
    /// When the numbers of a value grow beyond all bounds for most inputs.
    pub fn measure_typical(circuit: &Circuit, samples: &[Vec<f64>]) -> Result<Self, Overflow> {
        let single = Self::of_each(circuit, samples);
        let score = |s: &Self| match s.overflow() {
            Some(_) => f64::INFINITY,
            None => circuit.outputs.iter().map(|o| s.peak[o.index()]).fold(0.0, f64::max),
        };
        let mut scores: Vec<f64> = single.iter().map(score).collect();
        scores.sort_by(f64::total_cmp);
        let median = scores.get(scores.len() / 2).copied().unwrap_or(0.0);
        if median.is_infinite() {
            let overflow = single.iter().find_map(Self::overflow);
            return Err(overflow.expect("an infinite score is an overflow"));
        }
        let kept: Vec<&Self> = single.iter().filter(|s| score(s) <= WILD * median).collect();
        Ok(Self::summed_up(circuit, &kept))
    }

    /// The same with the largest numbers over all inputs. Gains and energies are means, for which few inputs do; a maximum
    /// needs every one.
    ///
    /// # Errors
    /// When the numbers of a value grow beyond all bounds for some input.
    pub(crate) fn widened(
        mut self,
        circuit: &Circuit,
        inputs: &dyn Inputs,
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<Self, Overflow> {
        let of_input = |index: usize| -> Vec<f64> {
            let input = inputs.input(index);
            let members = (0..circuit.n_members as u32).map(MemberIdx);
            members
                .map(|member| {
                    eval::trace(circuit, &[&input], member).values.iter().map(|v| peak(v)).collect()
                })
                .reduce(|a, b| widest(a, &b))
                .unwrap_or_default()
        };
        let mut widest_seen = vec![0.0; circuit.values.len()];
        for start in (0..inputs.len()).step_by(CHUNK) {
            let chunk = start..(start + CHUNK).min(inputs.len());
            let end = chunk.end;
            let peaks: Vec<Vec<f64>> = chunk.into_par_iter().map(of_input).collect();
            widest_seen = peaks.iter().fold(widest_seen, |a, b| widest(a, b));
            if let Some(value) = widest_seen.iter().position(|size| *size > LARGEST) {
                return Err(Overflow { value: ValueId(value as u32), size: widest_seen[value] });
            }
            progress(end, inputs.len());
        }
        if circuit.merged {
            for output in &circuit.outputs {
                widest_seen[output.index()] *= circuit.n_members as f64;
            }
        }
        self.peak = widest(self.peak, &widest_seen);
        Ok(self)
    }

    /// The largest number of the results, where it is so small that no scale could show it.
    pub fn vanishing_result(&self, circuit: &Circuit) -> Option<f64> {
        let largest = circuit.outputs.iter().map(|o| self.peak[o.index()]).fold(0.0, f64::max);
        (largest > 0.0 && largest < SMALLEST).then_some(largest)
    }

    /// The statistics of every sample and member alone.
    fn of_each(circuit: &Circuit, samples: &[Vec<f64>]) -> Vec<Self> {
        let members = 0..circuit.n_members as u32;
        let cases: Vec<(usize, MemberIdx)> =
            (0..samples.len()).flat_map(|s| members.clone().map(move |m| (s, MemberIdx(m)))).collect();
        cases.par_iter().map(|&(s, m)| Self::of_one(circuit, &samples[s], m, s as u64)).collect()
    }

    fn overflow(&self) -> Option<Overflow> {
        let is_wild = |v: &usize| !self.energy[*v].is_finite() || self.peak[*v] > LARGEST;
        (0..self.peak.len()).find(is_wild).map(|v| {
            let size = if self.energy[v].is_finite() { self.peak[v] } else { f64::INFINITY };
            Overflow { value: ValueId(v as u32), size }
        })
    }

    fn summed_up(circuit: &Circuit, single: &[&Self]) -> Self {
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
        Self {
            gain,
            energy: trace.values.iter().map(energy).collect(),
            peak: trace.values.iter().map(|v| peak(v)).collect(),
        }
    }
}

/// The largest absolute number; infinite where one is no number.
fn peak(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |m: f64, x| if x.is_nan() { f64::INFINITY } else { m.max(x.abs()) })
}

fn widest(mut a: Vec<f64>, b: &[f64]) -> Vec<f64> {
    a.iter_mut().zip(b).for_each(|(a, b)| *a = a.max(*b));
    a
}
