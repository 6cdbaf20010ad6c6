//! `fhec simulate`: a program in the clear, with the noise of encryption, over a data set.

use std::fmt::Write;
use std::path::PathBuf;

use fhe_input::{ImageShape, Normalization, read_samples};
use indicatif::ProgressBar;

use super::Outcome;
use super::output::{Form, print, print_json};
use super::program::read_program;
use crate::diagnostics::{Diagnostic, Kind};
use crate::simulate::{Simulation, simulate};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  fhec simulate model.fhebc test_batch.bin
  fhec simulate model.fhebc t10k-images-idx3-ubyte.gz --truth t10k-labels-idx1-ubyte.gz --limit 1000 --format json")]
pub(super) struct Args {
    /// Program file
    program: PathBuf,
    /// Images: CIFAR-10 binary, idx (also gzipped), npy, npz, CSV, PNG or JPEG
    images: PathBuf,
    /// True classes as an idx file, where the images do not have them
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
    let truth = match &args.truth {
        None => None,
        Some(path) => {
            Some(read_samples(path, ImageShape::new(1, 1, 1)).map_err(|e| vec![Diagnostic::input(&e)])?)
        }
    };
    let preprocessing = &program.spec().input.preprocessing;
    let normalization = Normalization { mean: preprocessing.mean.clone(), std: preprocessing.std.clone() };
    let n = images.len().min(args.limit.unwrap_or(usize::MAX));
    let mut samples = Vec::with_capacity(n);
    for i in 0..n {
        let tensor = images.tensor(i, &normalization).map_err(|e| cannot(e.to_string()))?;
        let given = truth.as_ref().and_then(|t| t.tensor(i, &Normalization::default()).ok());
        let class = given.map(|t| (t[0] * 255.0).round() as usize).or(images.label(i));
        samples.push((tensor, class));
    }
    let bar = if quiet { ProgressBar::hidden() } else { ProgressBar::new(n as u64) };
    let simulation =
        simulate(&program, &samples, args.seed, &|| bar.inc(1)).map_err(|e| cannot(e.to_string()))?;
    bar.finish_and_clear();
    match args.format {
        Form::Json => print_json(&simulation),
        Form::Text => print(&text(&simulation)),
    }
}

fn text(simulation: &Simulation) -> String {
    let percent = |share: Option<f64>| share.map_or("unknown".to_owned(), |s| format!("{:.2} %", 100.0 * s));
    let mut out = format!(
        "samples         {}\naccuracy        {} (without noise {})\nagreement       {}\nmax abs error   {:.3e} (largest result {:.3})\n",
        simulation.samples,
        percent(simulation.accuracy),
        percent(simulation.exact_accuracy),
        percent(Some(simulation.agreement)),
        simulation.max_abs_error,
        simulation.max_abs_result,
    );
    let width = simulation.layers.iter().map(|l| l.name.chars().count()).max().unwrap_or(0).max(5);
    let _ = writeln!(out, "\n{:width$}   bits left      lost", "layer");
    for layer in &simulation.layers {
        let _ = writeln!(out, "{:width$}   {:9.1} {:9.1}", layer.name, layer.bits_left, layer.bits_lost);
    }
    out
}
