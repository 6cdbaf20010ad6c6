//! The inputs that values, errors and classes are measured on.
//!
//! Files stay as they were decoded: an image is normalized when it is asked for, so a data set takes the memory of its
//! pixels and not of numbers eight times as large.

use std::path::Path;

use fhe_bytecode::{Port, Preprocessing};
use fhe_input::{ImageShape, InputErrorKind, Samples, decode_joined, decode_samples};
use fhec_ir::{Graph, NodeId, Shape, eval};
use rayon::prelude::*;

use super::CompileError;
use crate::measure::{LARGEST, made_up_inputs};
use crate::pipeline::{BuildError, MADE_UP_INPUTS};
use crate::simulate::Inputs;

/// Inputs that the passes balance channels on, and that the sensitivity of the results is measured on: means that settle
/// quickly. Ranges and classes are those of all inputs.
const PROBED: usize = 16;
/// Made-up inputs whose scores are larger than so many times the median are left out.
const WILD: f64 = 4.0;

/// What values and errors are measured on.
#[derive(Clone, Debug, Default)]
pub enum Calibration {
    /// Pictures made up to look like what the preprocessing tells of the training data.
    #[default]
    MadeUp,
    /// All images of these files.
    Files(Vec<ImageFile>),
    /// Inputs of the model, in (channel, y, x) order, already normalized.
    Inputs(Vec<Vec<f64>>),
}

/// A file of images, in any format that a client encrypts from.
#[derive(Clone, Debug)]
pub struct ImageFile {
    /// Name, for messages and for formats that are told by the ending.
    pub name: String,
    /// Content.
    pub bytes: Vec<u8>,
}

/// Inputs that can be counted, and made one by one.
#[derive(Clone, Debug)]
pub(crate) struct CalibrationSet {
    parts: Vec<Part>,
    /// Inputs before the end of every part.
    ends: Vec<usize>,
    preprocessing: Preprocessing,
    /// Whether the inputs are the user's, not made up.
    is_real: bool,
}

#[derive(Clone, Debug)]
enum Part {
    Samples(Samples),
    Inputs(Vec<Vec<f64>>),
}

impl Part {
    fn len(&self) -> usize {
        match self {
            Self::Samples(samples) => samples.len(),
            Self::Inputs(inputs) => inputs.len(),
        }
    }
}

impl CalibrationSet {
    /// The inputs of a model that takes tensors of `shape`.
    pub(super) fn new(
        calibration: &Calibration,
        shape: Shape,
        preprocessing: &Preprocessing,
        ports: &[Port],
    ) -> Result<Self, CompileError> {
        let channels_last = matches!(ports, [only] if only.channels_last);
        let wanted = ImageShape::new(shape.c, shape.h, shape.w).with_channels_last(channels_last);
        let parts = match calibration {
            Calibration::MadeUp => vec![Part::Inputs(made_up_inputs(shape, preprocessing, MADE_UP_INPUTS))],
            Calibration::Inputs(inputs) => {
                if let Some((i, other)) = inputs.iter().enumerate().find(|(_, v)| v.len() != shape.len()) {
                    let kind =
                        InputErrorKind::WrongShape { found: format!("{} numbers", other.len()), wanted };
                    return Err(CompileError::Calibration { name: format!("calibration input {i}"), kind });
                }
                vec![Part::Inputs(inputs.clone())]
            }
            Calibration::Files(files) => {
                files.iter().map(|file| decoded(file, wanted, ports)).collect::<Result<_, _>>()?
            }
        };
        let mut n = 0;
        let ends: Vec<usize> = parts
            .iter()
            .map(|part| {
                n += part.len();
                n
            })
            .collect();
        if n == 0 {
            return Err(CompileError::NoCalibration);
        }
        let is_real = !matches!(calibration, Calibration::MadeUp);
        let preprocessing = preprocessing.clone();
        let set = Self { parts, ends, preprocessing, is_real };
        // The channels of the preprocessing are the same for every sample: the first one tells.
        set.try_input(0)
            .map_err(|kind| CompileError::Calibration { name: "calibration input 0".into(), kind })?;
        Ok(set)
    }

    /// Made-up inputs without those that lead far away from the others: a polynomial answers what it was not trained for with
    /// numbers that no image leads to. Where most of them lead out of all bounds they all stay, and the model is refused.
    pub(super) fn typical(mut self, graph: &Graph) -> Self {
        if self.is_real {
            return self;
        }
        let inputs: Vec<Vec<f64>> = (0..self.len()).map(|i| self.input(i)).collect();
        let scores: Vec<f64> = inputs
            .par_iter()
            .map(|input| Reach::new(graph, input).map_or(0.0, |reach| reach.score))
            .collect();
        let mut sorted = scores.clone();
        sorted.sort_by(f64::total_cmp);
        let median = sorted[sorted.len() / 2];
        if median.is_finite() {
            let kept = inputs.into_iter().zip(scores).filter(|(_, score)| *score <= WILD * median);
            let kept: Vec<Vec<f64>> = kept.map(|(input, _)| input).collect();
            self.ends = vec![kept.len()];
            self.parts = vec![Part::Inputs(kept)];
        }
        self
    }

    /// The smallest and the largest number of a picture, where the inputs are made-up pictures and may not have them.
    pub(super) fn pixels(&self) -> Option<[f64; 2]> {
        let Preprocessing { mean, std } = &self.preprocessing;
        let ends = mean.iter().zip(std).flat_map(|(m, s)| [-m / s, (1.0 - m) / s]);
        let range = ends.fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], x| [low.min(x), high.max(x)]);
        (!self.is_real && range[0] < range[1]).then_some(range)
    }

    /// Whether the inputs are the user's.
    pub(super) fn is_real(&self) -> bool {
        self.is_real
    }

    /// Some inputs, spread evenly.
    pub(super) fn probes(&self) -> Vec<Vec<f64>> {
        let (n, count) = (self.len(), self.len().min(PROBED));
        (0..count).map(|i| self.input(i * n / count)).collect()
    }

    fn try_input(&self, index: usize) -> Result<Vec<f64>, InputErrorKind> {
        let which = self.ends.partition_point(|&end| end <= index);
        let before = which.checked_sub(1).map_or(0, |w| self.ends[w]);
        match &self.parts[which] {
            Part::Samples(samples) => samples.tensor(index - before, &self.preprocessing),
            Part::Inputs(inputs) => Ok(inputs[index - before].clone()),
        }
    }
}

impl Inputs for CalibrationSet {
    fn len(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    fn input(&self, index: usize) -> Vec<f64> {
        self.try_input(index)
            .expect("an index below the length, and a normalization that fits the first input")
    }
}

fn decoded(file: &ImageFile, shape: ImageShape, ports: &[Port]) -> Result<Part, CompileError> {
    let samples = match ports.len() {
        0 | 1 => decode_samples(&file.bytes, Path::new(&file.name), shape),
        _ => decode_joined(&file.bytes, ports, shape),
    };
    samples.map(Part::Samples).map_err(|kind| CompileError::Calibration { name: file.name.clone(), kind })
}

/// The inputs that the passes measure value ranges on: none where nothing was given and batch normalizations tell them.
pub(super) fn range_inputs(graph: &Graph, set: &CalibrationSet) -> Vec<Vec<f64>> {
    let has_ranges = graph.ids().any(|id| graph.node(id).range.is_some());
    if has_ranges && !set.is_real() { Vec::new() } else { set.probes() }
}

/// Refuses a model that leads some input out of all bounds, by the layer where that happens.
pub(super) fn check_sizes(graph: &Graph, inputs: &[Vec<f64>]) -> Result<(), BuildError> {
    let reaches: Vec<Option<Reach>> = inputs.par_iter().map(|input| Reach::new(graph, input)).collect();
    match reaches.into_iter().flatten().find_map(|reach| reach.overflow) {
        None => Ok(()),
        Some((id, size)) => {
            let layer = graph.node(id).origins.first().cloned().unwrap_or_else(|| id.to_string());
            Err(BuildError::Overflow { layer, size })
        }
    }
}

/// How far one input leads.
struct Reach {
    /// The first value with a number beyond all bounds, and that number.
    overflow: Option<(NodeId, f64)>,
    /// The largest score; infinite where a number is beyond all bounds.
    score: f64,
}

impl Reach {
    /// Nothing for models with several inputs, which are refused with a better message by those who use them.
    fn new(graph: &Graph, input: &[f64]) -> Option<Self> {
        let (mut overflow, mut score) = (None, 0.0f64);
        for member in graph.members() {
            let watched = eval::evaluate_with(graph, &[input], member, |id, value| {
                let size = largest(&value.data);
                if size > LARGEST && overflow.is_none() {
                    overflow = Some((id, size));
                }
                if graph.outputs().contains(&id) {
                    score = score.max(size);
                }
            });
            watched.ok()?;
        }
        Some(Self { overflow, score: if overflow.is_some() { f64::INFINITY } else { score } })
    }
}

fn largest(numbers: &[f64]) -> f64 {
    let size = |x: &f64| if x.is_nan() { f64::INFINITY } else { x.abs() };
    numbers.iter().map(size).fold(0.0, f64::max)
}
