//! Inputs for a program, from files or made up.

use std::path::Path;

use fhe_bytecode::CheckedProgram;
use fhe_input::{ImageShape, InputError, Normalization, read_samples};
use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};

use super::args::{InputArgs, SampleArgs};
use super::error::CliError;

/// One input and, if its file tells it, its true class.
pub(crate) struct Sample {
    pub tensor: Vec<f64>,
    pub label: Option<usize>,
}

/// The selected samples of all given files.
pub(crate) fn load(program: &CheckedProgram, args: &InputArgs) -> Result<Vec<Sample>, CliError> {
    let mut all = Vec::new();
    for path in &args.inputs {
        all.extend(load_file(program, path, args.index.0.clone())?);
    }
    Ok(all)
}

/// One sample of a file, or a random one if there is no file.
pub(crate) fn load_one(program: &CheckedProgram, args: &SampleArgs) -> Result<Sample, CliError> {
    let index = args.index;
    match args.input.as_deref() {
        None => Ok(Sample { tensor: random_tensor(program), label: None }),
        Some(path) => {
            let mut samples = load_file(program, path, index..index.saturating_add(1))?;
            Ok(samples.remove(0))
        }
    }
}

fn load_file(
    program: &CheckedProgram,
    path: &Path,
    range: std::ops::Range<usize>,
) -> Result<Vec<Sample>, CliError> {
    let shape = program.input_layout().shape();
    let shape = ImageShape::new(shape.channels as usize, shape.height as usize, shape.width as usize);
    let samples = read_samples(path, shape)?;
    let normalization = normalization(program);
    let sample = |index| {
        let tensor = samples
            .tensor(index, &normalization)
            .map_err(|kind| InputError { path: path.to_path_buf(), kind })?;
        Ok(Sample { tensor, label: samples.label(index) })
    };
    // The first error ends it, so a range far beyond the file costs nothing.
    range.map(sample).collect()
}

fn normalization(program: &CheckedProgram) -> Normalization {
    let stored = &program.spec().input.preprocessing;
    Normalization { mean: stored.mean.clone(), std: stored.std.clone() }
}

/// Uniform pixels, preprocessed; the same ones every time.
fn random_tensor(program: &CheckedProgram) -> Vec<f64> {
    let shape = program.input_layout().shape();
    let area = shape.height as usize * shape.width as usize;
    let by = normalization(program);
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let value = |i: usize| {
        let channel = i / area.max(1);
        let pixel = f64::from(rng.next_u32()) / f64::from(u32::MAX);
        (pixel - by.mean.get(channel).unwrap_or(&0.0)) / by.std.get(channel).unwrap_or(&1.0)
    };
    (0..shape.len()).map(value).collect()
}
