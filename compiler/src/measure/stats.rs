//! What the schedule needs to know of the values: how large they are, and how much an error in them moves the result.
//!
//! The gain of a value is the variance of a result when every number of the value carries independent noise of variance
//! one. Scales are chosen by its mean over results and sample inputs, the error bound by the worst result of the worst
//! input. Small networks have one reverse sweep for every result; large ones have sweeps with random signs, whose squared
//! length has the squared norm of the Jacobian as its mean, and one for a single result.

use std::sync::Arc;

use fhec_ir::MemberIdx;
use fhec_ir::spec::Uniform;
use rayon::prelude::*;

use super::extent::Extent;
use super::moments::{Moments, energies};
use super::rows::Rows;
use crate::lower::{Affine, Circuit, CircuitOp, Map, ValueId, eval};

/// Sweeps with random signs per sample.
const PROBES: u64 = 2;
/// Samples that have sweeps; sizes are taken of all.
const SWEPT: usize = 64;
/// Multiplications that sweeps for every result may take in all.
const SWEEP_BUDGET: f64 = 5e8;
/// Numbers beyond this fit no modulus.
pub const LARGEST: f64 = (1u64 << 60) as f64;
/// Results below this need a scale that fits no modulus.
const SMALLEST: f64 = 1.0 / LARGEST;

/// Statistics of every value of a circuit.
#[derive(Clone, Debug)]
pub struct Stats {
    /// Means over results and samples.
    pub mean: Moments,
    /// How far the values reach.
    pub extent: Extent,
    /// What single results of single samples say.
    pub cases: Vec<Case>,
    /// The same of inputs unlike the samples, which nothing tells from them.
    pub strays: Vec<Case>,
    /// The results, averaged over the members, input by input, where all inputs were looked at.
    pub results: Vec<Vec<f64>>,
}

/// What one input says of noise.
#[derive(Clone, Debug)]
pub struct Case {
    /// The input.
    pub input: Arc<[f64]>,
    /// The result; nothing where it is the mean over several.
    pub result: Option<usize>,
    /// Sizes and gains.
    pub moments: Moments,
}

/// A value whose numbers are too large for any schedule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Overflow {
    /// The first such value.
    pub value: ValueId,
    /// Its largest number; infinite where it is no number at all.
    pub size: f64,
}

/// One sample and member alone.
pub(super) struct Single {
    energy: Vec<f64>,
    pub(super) extent: Extent,
    /// The first result.
    pub(super) result: Vec<f64>,
    /// Mean over the results; nothing where there were no sweeps.
    mean: Option<Moments>,
    pub(super) cases: Vec<Case>,
}

/// Which gradients are computed.
#[derive(Clone, Copy)]
enum Sweeps {
    /// One for every result.
    Each,
    /// Some with random signs, and one for a single result.
    Signs,
}

impl Stats {
    /// The least squared weights of the numbers that a result depends on, in a summand of a value: of what the mean and
    /// single results say.
    pub fn least_weights(&self, value: ValueId, source: ValueId, in_place: bool) -> Option<f64> {
        let all = [&self.mean].into_iter().chain(self.cases.iter().map(|case| &case.moments));
        let weights = |moments: &Moments| Some(moments.row(value, source, in_place)?.weight_energy);
        all.filter_map(weights).reduce(f64::min)
    }

    /// The largest absolute number of the results.
    #[must_use]
    pub fn largest_result(&self) -> f64 {
        self.extent.largest_result()
    }

    /// The largest number of the results, where it is so small that no scale could show it.
    #[must_use]
    pub fn vanishing_result(&self) -> Option<f64> {
        Some(self.largest_result()).filter(|largest| *largest < SMALLEST)
    }

    /// What single inputs say together, of which every one counts.
    pub(super) fn summed_up(circuit: &Circuit, single: &[&Single]) -> Self {
        let n = single.len().max(1) as f64;
        let n_values = circuit.values.len();
        let mut mean = Moments::mean(single.iter().filter_map(|s| s.mean.as_ref()));
        mean.energy = (0..n_values).map(|v| single.iter().map(|s| s.energy[v]).sum::<f64>() / n).collect();
        let extents = single.iter().map(|s| s.extent.clone());
        let mut stats = Self {
            mean,
            extent: extents.reduce(|a, b| a.joined(&b)).unwrap_or_else(|| Extent::none(n_values)),
            cases: single.iter().flat_map(|s| s.cases.iter().cloned()).collect(),
            strays: Vec::new(),
            results: Vec::new(),
        };
        if circuit.merged {
            stats.mean = stats.mean.merged(circuit);
            stats.cases = stats.cases.into_iter().map(|case| case.merged(circuit)).collect();
            stats.extent = stats.extent.merged(circuit);
        }
        stats
    }
}

impl Case {
    /// The same of a result that sums over the members.
    pub(super) fn merged(self, circuit: &Circuit) -> Self {
        Self { moments: self.moments.merged(circuit), ..self }
    }
}

impl Single {
    /// Every sample and member alone.
    pub(super) fn of_each(circuit: &Circuit, rows: &[Rows], samples: &[Vec<f64>]) -> Vec<Self> {
        let members = 0..circuit.n_members as u32;
        let cases: Vec<(usize, MemberIdx)> =
            (0..samples.len()).flat_map(|s| members.clone().map(move |m| (s, MemberIdx(m)))).collect();
        let n_swept = cases.len().min(SWEPT);
        let every = cases.len().div_ceil(SWEPT).max(1);
        let work = multiplications(circuit) * (n_results(circuit) * n_swept) as f64;
        let sweeps = if work <= SWEEP_BUDGET { Sweeps::Each } else { Sweeps::Signs };
        let samples: Vec<Arc<[f64]>> = samples.iter().map(|sample| sample[..].into()).collect();
        let single = |(i, &(s, m)): (usize, &(usize, MemberIdx))| {
            let sweeps = i.is_multiple_of(every).then_some((sweeps, &rows[m.index()]));
            Self::new(circuit, &samples[s], m, s as u64, sweeps)
        };
        cases.par_iter().enumerate().map(single).collect()
    }

    fn new(
        circuit: &Circuit,
        sample: &Arc<[f64]>,
        member: MemberIdx,
        seed: u64,
        sweeps: Option<(Sweeps, &Rows)>,
    ) -> Self {
        let mut trace = eval::trace(circuit, &[&sample[..]], member);
        let n_out = n_results(circuit);
        let (energy, extent) = (energies(&trace), Extent::new(circuit, &mut trace));
        let result = circuit.outputs.first().map_or_else(Vec::new, |o| trace.values[o.index()].clone());
        let Some((sweeps, rows)) = sweeps else {
            return Self { energy, extent, result, mean: None, cases: Vec::new() };
        };
        let read = rows.read(circuit, &trace, member);
        let moments = |seeds: &[Vec<f64>]| Moments::of_each(circuit, &trace, &read, seeds, member);
        let unit = |o: usize| (0..n_out).map(|i| if i == o { 1.0 } else { 0.0 }).collect::<Vec<f64>>();
        let case = |result, moments| Case { input: Arc::clone(sample), result, moments };
        let (mean, cases);
        match sweeps {
            Sweeps::Each => {
                let of_results = moments(&(0..n_out).map(unit).collect::<Vec<_>>());
                mean = Moments::mean(of_results.iter());
                cases =
                    of_results.into_iter().enumerate().map(|(o, moments)| case(Some(o), moments)).collect();
            }
            Sweeps::Signs => {
                let signs = |probe: u64| {
                    let mut stream = Uniform::new(seed * PROBES + probe + 1);
                    // Signs have variance one and the least spread of all seeds.
                    let sign = |_| if stream.below(2) == 0 { -1.0 } else { 1.0 };
                    (0..n_out).map(sign).collect::<Vec<f64>>()
                };
                let seeds: Vec<Vec<f64>> =
                    (0..PROBES).map(signs).chain([unit(seed as usize % n_out)]).collect();
                let mut of_seeds = moments(&seeds);
                let single = of_seeds.pop().expect("one for every seed");
                let of_signs: Vec<Moments> =
                    of_seeds.into_iter().map(|moments| moments.amplified(1.0 / n_out as f64)).collect();
                mean = Moments::mean(of_signs.iter());
                cases = vec![case(Some(seed as usize % n_out), single), case(None, mean.clone())];
            }
        }
        Self { energy, extent, result, mean: Some(mean), cases }
    }

    pub(super) fn overflow(&self) -> Option<Overflow> {
        let is_wild = |v: &usize| !self.energy[*v].is_finite() || self.extent.peak[*v] > LARGEST;
        (0..self.energy.len()).find(is_wild).map(|v| {
            let size = if self.energy[v].is_finite() { self.extent.peak[v] } else { f64::INFINITY };
            Overflow { value: ValueId(v as u32), size }
        })
    }
}

fn n_results(circuit: &Circuit) -> usize {
    circuit.outputs.first().map_or(1, |o| circuit.value(*o).shape.len()).max(1)
}

/// Multiplications of one evaluation, about.
fn multiplications(circuit: &Circuit) -> f64 {
    let of_affine = |affine: &Affine, n: usize| -> usize {
        let of_map = |map: &Map| match map {
            Map::Identity | Map::Diagonal(_) => n,
            Map::Conv(conv) => conv.weight.members()[0].len() * conv.output.area(),
        };
        affine.terms.iter().map(|term| of_map(&term.map)).sum()
    };
    let count = |value: &crate::lower::Value| match &value.op {
        CircuitOp::Input => 0,
        CircuitOp::Product(_) => value.shape.len(),
        CircuitOp::Affine(affine) => of_affine(affine, value.shape.len()),
    };
    circuit.values.iter().map(|value| count(value) as f64).sum()
}
