//! Inputs for a program, from files or made up.

use std::ops::Range;
use std::path::{Path, PathBuf};

use fhe_bytecode::text::harmless;
use fhe_bytecode::{Interface, Port};
use fhe_client::{Answer, Outside, prepare, prepare_part, prepare_unchecked};
use fhe_input::{Beside, Fit, ImageShape, InputError, files, read_joined, read_part, read_samples_fitted};
use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};
use zeroize::Zeroizing;

use super::args::{SampleArgs, TakenArgs};
use super::complain;
use super::error::CliError;
use super::selection::Selection;
use crate::trial::Outcome;

/// One input, its name and, if its file tells it, its true class.
pub(crate) struct Sample {
    pub tensor: Zeroizing<Vec<f64>>,
    pub label: Option<usize>,
    pub name: String,
    /// Whether it is from a file, not made up.
    pub is_given: bool,
    /// Its number furthest outside the calibrated ones, if there is one.
    pub outside: Option<Outside>,
}

/// The selected samples of all given files and folders, and how many these hold.
pub(crate) fn load(
    interface: &Interface,
    inputs: &[PathBuf],
    taken: &TakenArgs,
) -> Result<(Vec<Sample>, usize), CliError> {
    load_part(interface, inputs, taken, None)
}

/// The same for one of the model's inputs alone, where one is named.
pub(crate) fn load_part(
    interface: &Interface,
    inputs: &[PathBuf],
    taken: &TakenArgs,
    part: Option<&Port>,
) -> Result<(Vec<Sample>, usize), CliError> {
    let (mut all, mut n_found, mut beside) = (Vec::new(), 0, Beside::default());
    for path in files(inputs)? {
        let how = How { fit: fit(taken.resize), any_range: taken.any_range, part };
        let (mut samples, n) = load_file(interface, &path, |n| selected(&path, taken, n), how)?;
        let told = beside.label(&path)?;
        samples.iter_mut().for_each(|sample| sample.label = sample.label.or(told));
        all.extend(samples);
        n_found += n;
    }
    warn_outside(&all);
    Ok((all, n_found))
}

/// The numbers of the samples that are meant of a file that holds `n`.
fn selected(path: &Path, taken: &TakenArgs, n: usize) -> Result<Range<usize>, CliError> {
    Selection::of(taken.index.as_ref(), n)
        .ok_or_else(|| CliError::ManySamples { path: path.to_path_buf(), n_samples: n })
}

/// Says which inputs have numbers that the model was not calibrated on.
fn warn_outside(samples: &[Sample]) {
    let mut outside = samples.iter().filter_map(|sample| Some((&sample.name, sample.outside?)));
    if let Some((name, worst)) = outside.next() {
        complain(&format!(
            "warning: {} of {} input(s) have numbers that the model was not calibrated on, so the error bound is not for them; \
             {name}: {worst}",
            outside.count() + 1,
            samples.len()
        ));
    }
}

/// How samples are read.
#[derive(Clone, Copy)]
struct How<'a> {
    fit: Fit,
    any_range: bool,
    /// The one of several inputs that is read.
    part: Option<&'a Port>,
}

fn fit(resize: bool) -> Fit {
    if resize { Fit::Resize } else { Fit::Exact }
}

/// One sample of a file, or a made-up one if there is no file.
pub(crate) fn load_one(interface: &Interface, args: &SampleArgs) -> Result<Sample, CliError> {
    let index = args.index;
    match args.input.as_deref() {
        None => {
            let (tensor, name) = (Zeroizing::new(made_up(interface)), "random".to_owned());
            Ok(Sample { tensor, label: None, name, is_given: false, outside: None })
        }
        Some(path) => {
            let how = How { fit: fit(args.resize), any_range: args.any_range, part: None };
            let (mut samples, _) = load_file(interface, path, |_| Ok(index..index.saturating_add(1)), how)?;
            warn_outside(&samples);
            let mut sample = samples.remove(0);
            sample.label = sample.label.or(Beside::default().label(path)?);
            Ok(sample)
        }
    }
}

fn load_file(
    interface: &Interface,
    path: &Path,
    choose: impl FnOnce(usize) -> Result<Range<usize>, CliError>,
    how: How<'_>,
) -> Result<(Vec<Sample>, usize), CliError> {
    let interface = &interface.of_one();
    let shape = interface.input_layout().shape();
    let shape = ImageShape::new(shape.channels as usize, shape.height as usize, shape.width as usize);
    let ports = &interface.input().ports;
    let samples = match (how.part, ports.len()) {
        (Some(part), _) => read_part(path, part, shape)?,
        (None, 0 | 1) => read_samples_fitted(
            path,
            shape.with_channels_last(interface.input().is_channels_last()),
            how.fit,
        )?,
        (None, _) => read_joined(path, ports, shape)?,
    };
    let file = harmless(&path.file_name().unwrap_or_default().to_string_lossy());
    let sample = |index| {
        let raw = samples.raw(index).map_err(|kind| InputError { path: path.to_path_buf(), kind })?;
        let tensor = match (how.any_range, how.part) {
            (true, _) => prepare_unchecked(interface, raw),
            (false, None) => prepare(interface, raw),
            (false, Some(part)) => prepare_part(interface, part, raw),
        };
        let tensor = tensor.map_err(|cause| CliError::Sample { path: path.into(), cause })?;
        let name = if samples.len() > 1 { format!("{file}#{index}") } else { file.clone() };
        let tensor = Zeroizing::new(tensor);
        let judged = how.part.map_or(Some(0..tensor.len()), |part| part.range(tensor.len()));
        let outside = judged.and_then(|positions| Outside::among(interface, &tensor, positions));
        Ok(Sample { tensor, label: samples.label(index), name, is_given: true, outside })
    };
    // The first error ends it, so a range far beyond the file costs nothing.
    Ok((choose(samples.len())?.map(sample).collect::<Result<_, CliError>>()?, samples.len()))
}

/// What is said of a made-up input with scores that no calibrated input had.
pub(crate) const UNJUDGED: &str = "note: the error of this made-up input is not judged, because its scores lie outside the calibrated ones; \
     give an input like those the model was trained on";

/// Whether the bound is for an evaluation: for all inputs that are given, and for made-up ones with scores as in calibration.
pub(crate) fn is_for(interface: &Interface, sample: &Sample, outcome: &Outcome) -> bool {
    sample.is_given || Answer::new(interface, &outcome.decrypted).doubts.is_empty()
}

/// Noise between the smallest and the largest number that the program was calibrated on, the same every time: the bound of a
/// program covers it. Where nobody knows these numbers, uniform pixels.
fn made_up(interface: &Interface) -> Vec<f64> {
    let shape = interface.input_layout().shape();
    let area = shape.height as usize * shape.width as usize;
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let value = |i: usize| {
        let part = f64::from(rng.next_u32()) / f64::from(u32::MAX);
        match interface.input().range {
            Some(range) => range.low + part * (range.high - range.low),
            None => interface.input().preprocessing.value(i / area.max(1), part),
        }
    };
    (0..shape.len()).map(value).collect()
}
