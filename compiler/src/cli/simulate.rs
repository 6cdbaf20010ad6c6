//! `fhec simulate`: a program in the clear, with the noise of encryption, over a data set.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use fhe_diagnostics::{Bar, csv_row};
use fhe_input::{Collection, Fit, ImageShape, read_labels};

use super::Outcome;
use super::output::{print, print_json};
use super::program::read_program;
use crate::diagnostics::{Diagnostic, Kind};
use crate::simulate::{Fullest, SampleResult, Simulation, Summary, simulate};

/// Samples that are listed without being asked for; of more, only those that something is wrong with.
const LISTED: usize = 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Form {
    /// For people: what became of all samples, then every layer
    Text,
    /// A row for every sample: name, class, score, truth
    Csv,
    /// Everything, for other programs
    Json,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  fhec simulate model.fhebc test_batch.bin
  fhec simulate model.fhebc pictures/ --format csv > classes.csv
  fhec simulate model.fhebc cat.png dog.png --resize
  fhec simulate model.fhebc t10k-images-idx3-ubyte.gz --truth t10k-labels-idx1-ubyte.gz --limit 1000 --format json

A file labels.csv beside pictures, with a file name and a class a row, tells their true classes.")]
pub(super) struct Args {
    /// Program file
    program: PathBuf,
    /// Images: CIFAR-10 binary, idx (also gzipped), npy, npz, CSV, pictures, or folders of pictures
    #[arg(required = true)]
    images: Vec<PathBuf>,
    /// True classes, where the images do not have them: idx, npy, npz, CSV with one number a row
    #[arg(long, value_name = "FILE")]
    truth: Option<PathBuf>,
    /// Evaluate only the first images
    #[arg(long)]
    limit: Option<usize>,
    /// Stretch pictures of another size to the model's
    #[arg(long)]
    resize: bool,
    /// List every image, however many there are
    #[arg(long)]
    list: bool,
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
    let shape = shape.with_channels_last(program.spec().input.is_channels_last());
    let fit = if args.resize { Fit::Resize } else { Fit::Exact };
    let input = |e: fhe_input::InputError| vec![Diagnostic::input(&e)];
    let mut images = Collection::read(&args.images, shape, fit).map_err(input)?;
    let n_scores = program.output_layout().shape().len();
    let truth = args.truth.as_deref().map(|path| truth(path, images.len(), n_scores)).transpose();
    let truth = truth.map_err(|d| vec![d])?;
    images.truncate(args.limit.unwrap_or(usize::MAX));
    let preprocessing = &program.spec().input.preprocessing;
    let mut samples = Vec::with_capacity(images.len());
    for i in 0..images.len() {
        let tensor = images.tensor(i, preprocessing).map_err(input)?;
        samples.push((tensor, truth.as_ref().map(|t| t[i]).or(images.label(i))));
    }
    let bar = Bar::new("simulating", quiet);
    let mut progress =
        |done: usize, of: usize| bar.set(done as f64 / of.max(1) as f64, &format!("{done} of {of} images"));
    let simulation =
        simulate(&program, &samples, args.seed, &mut progress).map_err(|e| cannot(e.to_string()))?;
    bar.finish();
    let labels = &program.spec().output.labels;
    let rows: Vec<Row> =
        (0..images.len()).map(|i| Row::new(images.name(i), &simulation.results[i], labels)).collect();
    match args.format {
        Form::Json => print_json(&Everything { simulation: &simulation, images: &rows }),
        Form::Csv => print(&csv(&rows)),
        Form::Text => print(&format!("{}{}", list(&rows, args.list), text(&simulation))),
    }
}

/// The whole outcome, with names.
#[derive(serde::Serialize)]
struct Everything<'a> {
    #[serde(flatten)]
    simulation: &'a Simulation,
    images: &'a [Row],
}

/// One image of the result.
#[derive(serde::Serialize)]
struct Row {
    name: String,
    class: String,
    score: f64,
    without_noise: String,
    truth: Option<String>,
    wrapped: bool,
}

impl Row {
    fn new(name: String, found: &SampleResult, labels: &[String]) -> Self {
        let called = |class: usize| labels.get(class).cloned().unwrap_or_else(|| class.to_string());
        Self {
            name,
            class: called(found.class),
            score: found.score,
            without_noise: called(found.exact_class),
            truth: found.truth.map(called),
            wrapped: found.wrapped,
        }
    }

    /// What is wrong with it, in words.
    fn remark(&self) -> &'static str {
        match (
            self.wrapped,
            self.class == self.without_noise,
            self.truth.as_ref().is_none_or(|t| *t == self.class),
        ) {
            (true, ..) => "wrapped around",
            (_, false, _) => "noise changed the class",
            (.., false) => "wrong",
            _ => "",
        }
    }
}

fn csv(rows: &[Row]) -> String {
    let mut out = "name,class,score,without_noise,truth,wrapped\n".to_owned();
    for row in rows {
        let truth = row.truth.as_deref().unwrap_or_default();
        let (score, wrapped) = (format!("{:.6}", row.score), row.wrapped.to_string());
        out += &csv_row([&row.name, &row.class, &score, &row.without_noise, truth, &wrapped]);
        out.push('\n');
    }
    out
}

/// All samples, or those of many that there is something to say of, and how many are left out.
fn list(rows: &[Row], all: bool) -> String {
    let all = all || rows.len() <= LISTED;
    let shown: Vec<&Row> = match all {
        true => rows.iter().collect(),
        false => rows.iter().filter(|row| !row.remark().is_empty()).take(LISTED).collect(),
    };
    let list = if shown.is_empty() { String::new() } else { table(&shown) };
    match rows.len() - shown.len() {
        0 => list,
        n => format!("{list}{n} of {} images are not listed: --list shows them all\n\n", rows.len()),
    }
}

fn table(rows: &[&Row]) -> String {
    let width = |of: fn(&Row) -> &str, title: &str| {
        rows.iter().map(|r| of(r).chars().count()).max().unwrap_or(0).max(title.len())
    };
    let (name, class) = (width(|r| &r.name, "image"), width(|r| &r.class, "class"));
    let truth = width(|r| r.truth.as_deref().unwrap_or_default(), "truth");
    let mut out = format!("{:name$}  {:class$}  {:>9}  {:truth$}\n", "image", "class", "score", "truth");
    for row in rows {
        let known = row.truth.as_deref().unwrap_or_default();
        let line = format!(
            "{:name$}  {:class$}  {:9.3}  {known:truth$}  {}",
            row.name,
            row.class,
            row.score,
            row.remark()
        );
        let _ = writeln!(out, "{}", line.trim_end());
    }
    out + "\n"
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
