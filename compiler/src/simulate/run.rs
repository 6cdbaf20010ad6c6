//! A program over many samples, with and without noise.

use std::collections::BTreeMap;

use fhe_bytecode::clear::{ClearProgram, Event, Hook, InputError};
use fhe_bytecode::{CheckedProgram, Classes};
use rayon::prelude::*;
use serde::Serialize;

use super::inputs::Inputs;
use super::noise::InstructionNoise;
use super::wrap::{self, Moduli, Reduce};

/// Samples that the loss per layer is measured on.
const LAYER_SAMPLES: usize = 8;
/// Samples that tell how large values are.
const SIZED: usize = 8;
/// Samples between two reports of progress.
const CHUNK: usize = 64;
/// Samples at first where one may be enough.
const FIRST_CHUNK: usize = 4;

/// The outcome of a simulation.
#[derive(Clone, Debug, Serialize)]
pub struct Simulation {
    /// What becomes of the results.
    #[serde(flatten)]
    pub summary: Summary,
    /// What every layer loses.
    pub layers: Vec<LayerLoss>,
    /// What every sample gives, in their order.
    pub results: Vec<SampleResult>,
}

/// The class of one sample.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SampleResult {
    /// Class with the noise of encryption.
    pub class: usize,
    /// Its score.
    pub score: f64,
    /// Class without noise.
    pub exact_class: usize,
    /// True class, if that is known.
    pub truth: Option<usize>,
    /// Whether some value left its modulus.
    pub wrapped: bool,
}

/// What becomes of the results of many samples.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Samples evaluated.
    pub samples: usize,
    /// Share of samples whose class is that of the file, if the file tells it.
    pub accuracy: Option<f64>,
    /// The same without noise.
    pub exact_accuracy: Option<f64>,
    /// Share of samples with the class of the exact evaluation.
    pub agreement: f64,
    /// Samples with another class than that of the exact evaluation.
    pub changed_classes: usize,
    /// Largest difference of a result.
    pub max_abs_error: f64,
    /// Root of the mean squared difference of the results.
    pub rms_error: f64,
    /// Largest result without noise.
    pub max_abs_result: f64,
    /// Samples in which some value came within one bit of its modulus, or left it.
    pub near_samples: usize,
    /// Samples in which some value left its modulus and came back as another number.
    pub wrapped_samples: usize,
    /// The value that came closest to its modulus, if there is any sample.
    pub fullest: Option<Fullest>,
}

/// A value and its distance from its modulus.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fullest {
    /// The layer that computes it.
    pub layer: String,
    /// Bits between the value and half of its modulus; below zero it wrapped.
    pub bits_left: f64,
}

/// Precision of a layer's result.
#[derive(Clone, Debug, Serialize)]
pub struct LayerLoss {
    /// Name in the model.
    pub name: String,
    /// Bits between the size of the values and the size of their error.
    pub bits_left: f64,
    /// Bits lost since the layer before.
    pub bits_lost: f64,
}

/// Evaluates samples, and measures what every layer loses on some of them.
///
/// # Errors
/// When a sample does not fit the program.
pub fn simulate(
    program: &CheckedProgram,
    samples: &dyn Inputs,
    seed: u64,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Simulation, InputError> {
    let simulator = Simulator::new(program, samples, seed)?;
    let outcomes = simulator.outcomes(Until::End, progress)?;
    let results = outcomes.iter().map(|outcome| outcome.result).collect();
    Ok(Simulation { summary: simulator.summary(&outcomes), layers: simulator.layer_losses()?, results })
}

/// Evaluates samples with and without noise.
///
/// # Errors
/// When a sample does not fit the program.
pub fn summarize(
    program: &CheckedProgram,
    samples: &dyn Inputs,
    seed: u64,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Summary, InputError> {
    Simulator::new(program, samples, seed)?.summarized(Until::End, progress)
}

/// How far samples are evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// All of them.
    End,
    /// Until noise changes the class of one, or the error of one is beyond the program's bound.
    Fault,
}

/// The results of one sample as they will come back: with noise, and wrapped around where a value leaves its modulus.
///
/// # Errors
/// When the sample does not fit the program.
pub fn disturbed(program: &CheckedProgram, sample: &[f64], seed: u64) -> Result<Vec<f64>, InputError> {
    let samples = vec![sample.to_vec()];
    let simulator = Simulator::new(program, &samples, seed)?;
    let mut results = simulator.clear.run(&simulator.batch(0), &mut simulator.hook(0, 0))?;
    results.truncate(results.len() / program.batch());
    Ok(results)
}

/// The layer whose result has the least precision, on some of the samples.
///
/// # Errors
/// When a sample does not fit the program.
pub fn noisiest_layer(program: &CheckedProgram, samples: &dyn Inputs) -> Result<String, InputError> {
    let losses = Simulator::new(program, samples, 1)?.layer_losses()?;
    let noisiest = losses.into_iter().min_by(|a, b| a.bits_left.total_cmp(&b.bits_left));
    Ok(noisiest.map_or_else(String::new, |layer| layer.name))
}

/// A program made ready to be evaluated on some samples with simulated noise.
pub(crate) struct Simulator<'a> {
    program: &'a CheckedProgram,
    clear: ClearProgram<'a>,
    noise: InstructionNoise,
    moduli: Moduli,
    classes: Classes,
    samples: &'a dyn Inputs,
    seed: u64,
    /// How often noise is drawn for a sample.
    draws: usize,
}

impl<'a> Simulator<'a> {
    /// The noise of a program whose values are about as large as for these samples.
    ///
    /// # Errors
    /// When a sample does not fit the program.
    pub(crate) fn new(
        program: &'a CheckedProgram,
        samples: &'a dyn Inputs,
        seed: u64,
    ) -> Result<Self, InputError> {
        let (clear, moduli) = (ClearProgram::new(program), Moduli::new(program));
        let n = samples.len().min(SIZED);
        let sized: Vec<Vec<f64>> =
            (0..n).map(|i| samples.input(i * samples.len() / n).repeat(program.batch())).collect();
        let noise = InstructionNoise::new(&clear, &sized)?;
        let classes = program.spec().output.classes(program.output_layout().shape());
        Ok(Self { program, clear, noise, moduli, classes, samples, seed, draws: 1 })
    }

    /// The same with noise drawn several times for every sample.
    pub(crate) fn with_draws(self, draws: usize) -> Self {
        Self { draws: draws.max(1), ..self }
    }

    /// The largest error that the program states.
    pub(crate) fn bound(&self) -> f64 {
        self.program.spec().prediction.max_abs_error
    }

    /// What becomes of the results, perhaps of the first samples only.
    ///
    /// # Errors
    /// When a sample does not fit the program.
    pub(crate) fn summarized(
        &self,
        until: Until,
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<Summary, InputError> {
        Ok(self.summary(&self.outcomes(until, progress)?))
    }

    fn outcomes(
        &self,
        until: Until,
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<Vec<Outcome>, InputError> {
        let of = self.samples.len();
        let bound = self.bound();
        let is_fault = |outcome: &Outcome| !outcome.agrees || outcome.max_error > bound;
        let mut outcomes: Vec<Outcome> = Vec::with_capacity(of);
        let batch = self.program.batch();
        let mut n = if until == Until::Fault { FIRST_CHUNK } else { CHUNK };
        while outcomes.len() < of {
            let end = (outcomes.len() + n.next_multiple_of(batch)).min(of);
            let chunk = (outcomes.len()..end).into_par_iter().step_by(batch);
            let found = chunk.map(|i| self.outcome(i)).collect::<Result<Vec<_>, _>>()?;
            outcomes.extend(found.into_iter().flatten());
            n = (2 * n).min(CHUNK);
            progress(outcomes.len(), of);
            if until == Until::Fault && outcomes.iter().any(is_fault) {
                break;
            }
        }
        Ok(outcomes)
    }

    fn summary(&self, outcomes: &[Outcome]) -> Summary {
        let of = outcomes.len();
        let n = outcomes.len().max(1) as f64;
        let share = |pick: &dyn Fn(&Outcome) -> Option<bool>| {
            let known: Vec<bool> = outcomes.iter().filter_map(pick).collect();
            (!known.is_empty()).then(|| known.iter().filter(|k| **k).count() as f64 / known.len() as f64)
        };
        let changed_classes = outcomes.iter().filter(|o| !o.agrees).count();
        Summary {
            samples: of,
            accuracy: share(&|o| o.right),
            exact_accuracy: share(&|o| o.exact_right),
            agreement: (of - changed_classes) as f64 / n,
            changed_classes,
            max_abs_error: outcomes.iter().map(|o| o.max_error).fold(0.0, f64::max),
            rms_error: (outcomes.iter().map(|o| o.mean_square).sum::<f64>() / n).sqrt(),
            max_abs_result: outcomes.iter().map(|o| o.peak).fold(0.0, f64::max),
            near_samples: outcomes.iter().filter(|o| o.fullest.is_near()).count(),
            wrapped_samples: outcomes.iter().filter(|o| o.fullest.has_wrapped()).count(),
            fullest: outcomes
                .iter()
                .map(|o| o.fullest)
                .reduce(wrap::Fullest::worse)
                .map(|fullest| self.described(fullest)),
        }
    }

    /// The outcomes of the samples from one on that are evaluated together.
    fn outcome(&self, first: usize) -> Result<Vec<Outcome>, InputError> {
        let (sample, of) = (self.batch(first), self.samples.len());
        let together = first..(first + self.program.batch()).min(of);
        let known: Option<Vec<&[f64]>> = together.clone().map(|i| self.samples.results(i)).collect();
        let exact = match known {
            Some(results) => results.concat(),
            None => self.clear.run(&sample, &mut ())?,
        };
        let drawn = |draw: usize| {
            let mut hook = self.hook(first, draw);
            let noisy = self.clear.run(&sample, &mut hook)?;
            let each = (noisy.len() / self.program.batch()).max(1);
            let outcome = |(index, (exact, noisy)): (usize, (&[f64], &[f64]))| {
                Outcome::new(&self.classes, exact, noisy, self.samples.class(index), hook.fullest)
            };
            let pairs = exact.chunks(each).zip(noisy.chunks(each));
            Ok(together.clone().zip(pairs).map(outcome).collect::<Vec<Outcome>>())
        };
        let worse = |outcomes: Vec<Outcome>, draw: usize| {
            let others = drawn(draw)?;
            Ok(outcomes.into_iter().zip(others).map(|(a, b)| a.with(b, draw)).collect())
        };
        (1..self.draws).try_fold(drawn(0)?, worse)
    }

    /// The samples from one on that are evaluated together; the last one again where they are too few.
    fn batch(&self, first: usize) -> Vec<f64> {
        let last = self.samples.len() - 1;
        (first..first + self.program.batch()).flat_map(|i| self.samples.input(i.min(last))).collect()
    }

    /// The noise and the moduli of one sample.
    fn hook(&self, index: usize, draw: usize) -> Reduce<'_, impl Hook + '_> {
        let stream = (draw as u64) << 32 | index as u64;
        self.moduli.hook(self.noise.hook(self.seed.wrapping_add(stream)))
    }

    fn described(&self, fullest: wrap::Fullest) -> Fullest {
        let spec = self.program.spec();
        let layer = spec.instructions[fullest.instruction].layer.index();
        Fullest { layer: spec.layers[layer].name.clone(), bits_left: -fullest.part.log2() }
    }

    fn layer_losses(&self) -> Result<Vec<LayerLoss>, InputError> {
        let program = self.program;
        let mut sums = vec![(0.0, 0.0); program.spec().layers.len()];
        for index in (0..self.samples.len().min(LAYER_SAMPLES)).step_by(self.program.batch()) {
            let sample = self.batch(index);
            let mut exact = Results { program, inner: (), by_layer: BTreeMap::new() };
            self.clear.run(&sample, &mut exact)?;
            let mut noisy = Results { program, inner: self.hook(index, 0), by_layer: BTreeMap::new() };
            self.clear.run(&sample, &mut noisy)?;
            for (layer, values) in &exact.by_layer {
                let Some(other) = noisy.by_layer.get(layer) else { continue };
                let (signal, error) = &mut sums[*layer];
                *signal += values.iter().map(|x| x * x).sum::<f64>();
                *error += values.iter().zip(other).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
            }
        }
        let mut before: Option<f64> = None;
        let mut losses = Vec::new();
        for (layer, (signal, error)) in program.spec().layers.iter().zip(sums) {
            if signal == 0.0 || error == 0.0 {
                continue;
            }
            let bits_left = 0.5 * (signal / error).log2();
            let bits_lost = before.map_or(0.0, |b| b - bits_left);
            before = Some(bits_left);
            losses.push(LayerLoss { name: layer.name.clone(), bits_left, bits_lost });
        }
        Ok(losses)
    }
}

struct Outcome {
    result: SampleResult,
    agrees: bool,
    right: Option<bool>,
    exact_right: Option<bool>,
    max_error: f64,
    mean_square: f64,
    peak: f64,
    fullest: wrap::Fullest,
}

impl Outcome {
    fn new(
        classes: &Classes,
        exact: &[f64],
        noisy: &[f64],
        class: Option<usize>,
        fullest: wrap::Fullest,
    ) -> Self {
        let [best, found] = [exact, noisy].map(|scores| classes.best(scores).unwrap_or(0));
        let first = if let Classes::Scores(range) = classes { range.start } else { 0 };
        let errors = || exact.iter().zip(noisy).map(|(a, b)| (a - b).abs());
        let result = SampleResult {
            class: found,
            score: noisy.get(first + found).copied().unwrap_or(0.0),
            exact_class: best,
            truth: class,
            wrapped: fullest.has_wrapped(),
        };
        Self {
            result,
            agrees: best == found,
            right: class.map(|c| c == found),
            exact_right: class.map(|c| c == best),
            // An error that is no number is the largest of all.
            max_error: errors().fold(0.0, |m, e| if e.is_nan() { f64::INFINITY } else { m.max(e) }),
            mean_square: errors().map(|e| e * e).sum::<f64>() / exact.len().max(1) as f64,
            peak: exact.iter().fold(0.0, |m: f64, x| m.max(x.abs())),
            fullest,
        }
    }

    /// The same after one more draw of the noise: the worst of all counts.
    fn with(self, other: Self, n_before: usize) -> Self {
        let n = n_before as f64;
        Self {
            agrees: self.agrees && other.agrees,
            right: self.right.zip(other.right).map(|(a, b)| a && b),
            max_error: self.max_error.max(other.max_error),
            mean_square: (n * self.mean_square + other.mean_square) / (n + 1.0),
            fullest: self.fullest.worse(other.fullest),
            ..self
        }
    }
}

/// Keeps the last result of every layer, as a tensor.
struct Results<'a, H> {
    program: &'a CheckedProgram,
    inner: H,
    by_layer: BTreeMap<usize, Vec<f64>>,
}

impl<H: Hook> Hook for Results<'_, H> {
    fn result(&mut self, event: Event<'_>, cts: &mut [Vec<f64>]) {
        self.inner.result(event, cts);
        let layer = self.program.spec().instructions[event.instruction].layer.index();
        self.by_layer.insert(layer, self.program.layout(event.fact.layout).gather(cts));
    }
}
