//! A program over many samples, with and without noise.

use std::collections::BTreeMap;

use fhe_bytecode::CheckedProgram;
use fhe_bytecode::clear::{ClearProgram, Event, Hook, InputError};
use rayon::prelude::*;
use serde::Serialize;

use super::noise::InstructionNoise;

/// Samples that the loss per layer is measured on.
const LAYER_SAMPLES: usize = 8;

/// The outcome of a simulation.
#[derive(Clone, Debug, Serialize)]
pub struct Simulation {
    /// Samples evaluated.
    pub samples: usize,
    /// Share of samples whose class is that of the file, if the file tells it.
    pub accuracy: Option<f64>,
    /// The same without noise.
    pub exact_accuracy: Option<f64>,
    /// Share of samples with the class of the exact evaluation.
    pub agreement: f64,
    /// Largest difference of a result.
    pub max_abs_error: f64,
    /// Root of the mean squared difference of the results.
    pub rms_error: f64,
    /// Largest result without noise.
    pub max_abs_result: f64,
    /// What every layer loses.
    pub layers: Vec<LayerLoss>,
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

/// Evaluates samples with their class, if known.
///
/// # Errors
/// When a sample does not fit the program.
pub fn simulate(
    program: &CheckedProgram,
    samples: &[(Vec<f64>, Option<usize>)],
    seed: u64,
    progress: &(dyn Fn() + Sync),
) -> Result<Simulation, InputError> {
    let clear = ClearProgram::new(program);
    let noise = match samples.first() {
        Some((sample, _)) => InstructionNoise::new(program, sample)?,
        None => InstructionNoise::new(program, &vec![0.0; program.input_layout().shape().len()])?,
    };
    let outcomes: Vec<Outcome> = samples
        .par_iter()
        .enumerate()
        .map(|(i, (sample, class))| {
            let exact = clear.run(sample, &mut ())?;
            let noisy = clear.run(sample, &mut noise.hook(seed.wrapping_add(i as u64)))?;
            progress();
            Ok(Outcome::new(&exact, &noisy, *class))
        })
        .collect::<Result<_, _>>()?;
    let n = outcomes.len().max(1) as f64;
    let share = |pick: &dyn Fn(&Outcome) -> Option<bool>| {
        let known: Vec<bool> = outcomes.iter().filter_map(pick).collect();
        (!known.is_empty()).then(|| known.iter().filter(|k| **k).count() as f64 / known.len() as f64)
    };
    Ok(Simulation {
        samples: outcomes.len(),
        accuracy: share(&|o| o.right),
        exact_accuracy: share(&|o| o.exact_right),
        agreement: outcomes.iter().filter(|o| o.agrees).count() as f64 / n,
        max_abs_error: outcomes.iter().map(|o| o.max_error).fold(0.0, f64::max),
        rms_error: (outcomes.iter().map(|o| o.mean_square).sum::<f64>() / n).sqrt(),
        max_abs_result: outcomes.iter().map(|o| o.peak).fold(0.0, f64::max),
        layers: layer_losses(program, &clear, &noise, samples, seed)?,
    })
}

struct Outcome {
    agrees: bool,
    right: Option<bool>,
    exact_right: Option<bool>,
    max_error: f64,
    mean_square: f64,
    peak: f64,
}

impl Outcome {
    fn new(exact: &[f64], noisy: &[f64], class: Option<usize>) -> Self {
        let (best, found) = (largest(exact), largest(noisy));
        let errors = || exact.iter().zip(noisy).map(|(a, b)| (a - b).abs());
        Self {
            agrees: best == found,
            right: class.map(|c| c == found),
            exact_right: class.map(|c| c == best),
            max_error: errors().fold(0.0, f64::max),
            mean_square: errors().map(|e| e * e).sum::<f64>() / exact.len().max(1) as f64,
            peak: exact.iter().fold(0.0, |m: f64, x| m.max(x.abs())),
        }
    }
}

fn largest(scores: &[f64]) -> usize {
    scores.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).map_or(0, |(i, _)| i)
}

fn layer_losses(
    program: &CheckedProgram,
    clear: &ClearProgram<'_>,
    noise: &InstructionNoise,
    samples: &[(Vec<f64>, Option<usize>)],
    seed: u64,
) -> Result<Vec<LayerLoss>, InputError> {
    let n_layers = program.spec().layers.len();
    let mut sums = vec![(0.0, 0.0); n_layers];
    for (i, (sample, _)) in samples.iter().take(LAYER_SAMPLES).enumerate() {
        let mut exact = Results { program, inner: (), by_layer: BTreeMap::new() };
        clear.run(sample, &mut exact)?;
        let mut noisy =
            Results { program, inner: noise.hook(seed.wrapping_add(i as u64)), by_layer: BTreeMap::new() };
        clear.run(sample, &mut noisy)?;
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
