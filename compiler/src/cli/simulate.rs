//! `fhec simulate`: a program in the clear, with the noise of encryption, over a data set.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use fhe_diagnostics::Bar;
use fhe_input::{ImageShape, read_labels, read_samples};

use super::Outcome;
use super::output::{Form, print, print_json};
use super::program::read_program;
use crate::diagnostics::{Diagnostic, Kind};
use crate::simulate::{Fullest, Simulation, Summary, simulate};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  fhec simulate model.fhebc test_batch.bin
  fhec simulate model.fhebc t10k-images-idx3-ubyte.gz --truth t10k-labels-idx1-ubyte.gz --limit 1000 --format json")]
pub(super) struct Args {
    /// Program file
    program: PathBuf,
    /// Images: CIFAR-10 binary, idx (also gzipped), npy, npz, CSV, PNG or JPEG
    images: PathBuf,
    /// True classes, where the images do not have them: idx, npy, npz, CSV with one number a row
    #[arg(long, value_name = "FILE")]
    truth: Option<PathBuf>,
    /// Evaluate only the first images
    #[arg(long)]
    limit: Option<usize>,
    /// Seed of the noise
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How to write the result
    #[arg(long, value_enum, default_value_t = Form::Text)]
    format: Form,
}

pub(super) fn run(args: &Args, quiet: bool) -> Outcome {
    let program = read_program(&args.program).map_err(|d| vec![d])?;
    let cannot = |e: String| vec![Diagnostic::new(Kind::Cannot, e)];
    let shape = program.input_layout().shape();
    let shape = ImageShape::new(shape.channels as usize, shape.height as usize, shape.width as usize);
    let images = read_samples(&args.images, shape).map_err(|e| vec![Diagnostic::input(&e)])?;
    let n_scores = program.output_layout().shape().len();
    let truth = args.truth.as_deref().map(|path| truth(path, images.len(), n_scores)).transpose();
    let truth = truth.map_err(|d| vec![d])?;
    let preprocessing = &program.spec().input.preprocessing;
    let n = images.len().min(args.limit.unwrap_or(usize::MAX));
    let mut samples = Vec::with_capacity(n);
    for i in 0..n {
        let tensor = images.tensor(i, preprocessing).map_err(|e| cannot(e.to_string()))?;
        samples.push((tensor, truth.as_ref().map(|t| t[i]).or(images.label(i))));
    }
    let bar = Bar::new("simulating", quiet);
    let mut progress =
        |done: usize, of: usize| bar.set(done as f64 / of.max(1) as f64, &format!("{done} of {of} images"));
    let simulation =
        simulate(&program, &samples, args.seed, &mut progress).map_err(|e| cannot(e.to_string()))?;
    bar.finish();
    match args.format {
        Form::Json => print_json(&simulation),
        Form::Text => print(&text(&simulation)),
    }
}

/// The classes of all images, from a file of their own.
fn truth(path: &Path, n_images: usize, n_scores: usize) -> Result<Vec<usize>, Diagnostic> {
    let labels = read_labels(path).map_err(|e| Diagnostic::input(&e))?;
    let cannot = |why: String| Diagnostic::new(Kind::Cannot, format!("{}: {why}", path.display()));
    if labels.len() != n_images {
        return Err(cannot(format!("{} labels for {n_images} images", labels.len()))
            .with_help("give the labels of these images, one for each and in their order"));
    }
    match labels.iter().enumerate().find(|(_, label)| **label >= n_scores) {
        Some((i, label)) => Err(cannot(format!("label {i} is {label}, the model has {n_scores} scores"))
            .with_help("number the classes from 0, as the scores of the model are")),
        None => Ok(labels),
    }
}

fn text(simulation: &Simulation) -> String {
    let percent = |share: Option<f64>| share.map_or("unknown".to_owned(), |s| format!("{:.2} %", 100.0 * s));
    let summary = &simulation.summary;
    let mut out = format!(
        "samples         {}\naccuracy        {} (without noise {})\nagreement       {}\nmax abs error   {:.3e} (largest result {:.3})\n",
        summary.samples,
        percent(summary.accuracy),
        percent(summary.exact_accuracy),
        percent(Some(summary.agreement)),
        summary.max_abs_error,
        summary.max_abs_result,
    );
    let Summary { near_samples, wrapped_samples, .. } = summary;
    let _ = writeln!(out, "near the edge   {near_samples} samples, {wrapped_samples} of them wrapped around");
    if let Some(Fullest { layer, bits_left }) = &summary.fullest {
        let _ = writeln!(out, "closest value   {bits_left:.1} bits below its modulus, layer {layer}");
    }
    let width = simulation.layers.iter().map(|l| l.name.chars().count()).max().unwrap_or(0).max(5);
    let _ = writeln!(out, "\n{:width$}   bits left      lost", "layer");
    for layer in &simulation.layers {
        let _ = writeln!(out, "{:width$}   {:9.1} {:9.1}", layer.name, layer.bits_left, layer.bits_lost);
    }
    out
}
