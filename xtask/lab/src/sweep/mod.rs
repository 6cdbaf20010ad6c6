//! `cargo xtask sweep`: accuracy against time over ensembles, clustering methods and numbers of centroids.
//!
//! Accuracy is that of the clear clustered circuit, without the noise of encryption; `fhec simulate` adds it. Time is what
//! the cost model predicts for a first evaluation, or measured on an encrypted image.

mod plot;

use std::error::Error;
use std::fmt::Write;
use std::path::PathBuf;

use clap::ValueEnum;
use fhe_bytecode::Preprocessing;
use fhe_input::{ImageShape, read_labels, read_samples};
use fhe_machine::{Options, Silent};
use fhe_runtime::Trial;
use fhe_secret::SeedSource;
use fhec::cluster::{ClusterOptions, Clustering, Method, Order};
use fhec::import::{ImportOptions, Imported, import_file};
use fhec::lower::{Circuit, eval};
use fhec::pipeline::{Built, LayoutChoice};
use fhec::report::BuildReport;
use fhec::{Calibration, Model, Request, compile};
use rayon::prelude::*;

/// Images that values are measured on.
const CALIBRATION: usize = 16;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  cargo xtask sweep onnx-models/lenet-mnist-0.onnx onnx-models/lenet-mnist-1.onnx --images t10k-images-idx3-ubyte.gz \\
      --truth t10k-labels-idx1-ubyte.gz --centroids 4,16,64 --out target/sweep")]
pub(crate) struct Args {
    /// ONNX files of one architecture; an ensemble of M takes the first M
    #[arg(required = true)]
    models: Vec<PathBuf>,
    /// Images: CIFAR-10 binary, idx (also gzipped), npy, npz, CSV; the first 16 calibrate the builds
    #[arg(long)]
    images: PathBuf,
    /// True classes, where the images do not have them: idx, npy, npz, CSV with one number a row
    #[arg(long)]
    truth: Option<PathBuf>,
    /// Only the first images
    #[arg(long, default_value_t = 1000)]
    limit: usize,
    /// Numbers of centroids
    #[arg(long, value_delimiter = ',', default_values_t = [16, 32, 64, 128, 256])]
    centroids: Vec<u32>,
    /// Methods
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Series::None, Series::Full, Series::Slice])]
    methods: Vec<Series>,
    /// Sizes of ensembles; all by default
    #[arg(long, value_delimiter = ',')]
    members: Vec<usize>,
    /// Measure the time of one encrypted image instead of predicting it
    #[arg(long)]
    measure: bool,
    /// Seed of the first centroids
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Whether codebooks are for the weights of the model or for those that are encoded
    #[arg(long, value_enum, default_value_t = Order::After)]
    order: Order,
    /// Folder for `sweep.csv` and `sweep.svg`; made if missing
    #[arg(long)]
    out: PathBuf,
}

/// A method, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Series {
    None,
    Full,
    Slice,
}

impl Series {
    fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Full => "full",
            Self::Slice => "slice",
        }
    }

    fn method(self) -> Option<Method> {
        match self {
            Self::None => None,
            Self::Full => Some(Method::Full),
            Self::Slice => Some(Method::Slice),
        }
    }
}

/// One point of the curve.
pub(crate) struct Point {
    pub(crate) members: usize,
    pub(crate) series: Series,
    /// None without clustering.
    pub(crate) centroids: Option<u32>,
    pub(crate) accuracy: f64,
    pub(crate) predicted: f64,
    pub(crate) measured: Option<f64>,
    plaintexts: usize,
    program_bytes: usize,
    weight_error: f64,
}

impl Point {
    /// Measured seconds, or predicted ones.
    pub(crate) fn seconds(&self) -> f64 {
        self.measured.unwrap_or(self.predicted)
    }
}

type Failure = Box<dyn Error + Send + Sync>;

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let imported = args
        .models
        .iter()
        .map(|path| {
            import_file(path, &ImportOptions::default())
                .map_err(|e| format!("{}: {e}", path.display()).into())
        })
        .collect::<Result<Vec<Imported>, Failure>>()?;
    let samples = samples(args, &imported[0])?;
    let sizes = if args.members.is_empty() { (1..=imported.len()).collect() } else { args.members.clone() };
    let mut points = Vec::new();
    for members in sizes {
        if members == 0 || members > imported.len() {
            return Err(format!("{members} members of {} models", imported.len()).into());
        }
        let models: Vec<Model> =
            imported.iter().take(members).map(|i| Model::imported("member", i.clone())).collect();
        for &series in &args.methods {
            let sizes = if series == Series::None {
                vec![None]
            } else {
                args.centroids.iter().map(|&k| Some(k)).collect()
            };
            for centroids in sizes {
                let cluster = cluster_options(args, series, centroids);
                let point = point(args, &models, &samples, series, cluster)?;
                println!("{}", line(&point));
                points.push(point);
            }
        }
    }
    std::fs::create_dir_all(&args.out)?;
    std::fs::write(args.out.join("sweep.csv"), csv(&points))?;
    std::fs::write(args.out.join("sweep.svg"), plot::svg(&points))?;
    Ok(())
}

/// Images as the model takes them, with their classes.
fn samples(args: &Args, model: &Imported) -> Result<Vec<(Vec<f64>, usize)>, Failure> {
    let shape = model.inputs.first().ok_or("the model has no input")?.shape;
    let images = read_samples(&args.images, ImageShape::new(shape.c, shape.h, shape.w))?;
    let truth = args.truth.as_deref().map(read_labels).transpose()?;
    if let Some(labels) = truth.as_ref().filter(|labels| labels.len() != images.len()) {
        return Err(format!("{} labels for {} images", labels.len(), images.len()).into());
    }
    let preprocessing = model
        .preprocessing
        .as_ref()
        .map_or_else(Preprocessing::default, |p| Preprocessing { mean: p.mean.clone(), std: p.std.clone() });
    (0..images.len().min(args.limit))
        .map(|i| {
            let class = truth.as_ref().map(|labels| labels[i]).or(images.label(i));
            Ok((images.tensor(i, &preprocessing)?, class.ok_or("the images have no classes: give --truth")?))
        })
        .collect()
}

fn cluster_options(args: &Args, series: Series, centroids: Option<u32>) -> Option<ClusterOptions> {
    let (method, centroids) = series.method().zip(centroids)?;
    Some(ClusterOptions { method, centroids, seed: args.seed, order: args.order })
}

fn point(
    args: &Args,
    models: &[Model],
    samples: &[(Vec<f64>, usize)],
    series: Series,
    cluster: Option<ClusterOptions>,
) -> Result<Point, Failure> {
    let inputs = samples.iter().take(CALIBRATION).map(|(image, _)| image.clone()).collect();
    let request = Request {
        models: models.to_vec(),
        layout: LayoutChoice::Hw,
        calibration: Calibration::Inputs(inputs),
        cluster,
        ..Request::default()
    };
    let compiled = compile(&request, &mut ())?;
    let built = &compiled.built;
    let bytes = fhe_bytecode::codec::encode(&built.program).len();
    let report = BuildReport::new(&compiled, bytes);
    Ok(Point {
        members: models.len(),
        series,
        centroids: cluster.map(|c| c.centroids),
        accuracy: accuracy(built.circuit(), samples),
        predicted: report.predicted_seconds + report.predicted_encode_seconds,
        measured: args.measure.then(|| measured(built, &samples[0].0)).transpose()?,
        plaintexts: report.layers.iter().map(|l| l.plaintexts).sum(),
        program_bytes: bytes,
        weight_error: built.clustering.as_ref().map_or(0.0, Clustering::worst_error),
    })
}

/// Share of the images whose highest score is that of their class.
fn accuracy(circuit: &Circuit, samples: &[(Vec<f64>, usize)]) -> f64 {
    let right = |(image, class): &&(Vec<f64>, usize)| {
        let scores = eval::scores(circuit, &[image]);
        let best = (0..scores.len()).max_by(|&a, &b| scores[a].total_cmp(&scores[b]));
        best == Some(*class)
    };
    samples.par_iter().filter(right).count() as f64 / samples.len().max(1) as f64
}

/// Seconds of one encrypted evaluation, plaintexts encoded on demand.
fn measured(built: &Built, image: &[f64]) -> Result<f64, Failure> {
    let mut seeds = SeedSource::os();
    let options = Options { memory: 16 << 30, n_evaluations: 1 };
    let trial = Trial::new(&built.program, options, &mut seeds)?;
    Ok(trial.run(image, &mut seeds, &Silent)?.eval_seconds)
}

const HEADER: &str = "members,method,centroids,accuracy,predicted_seconds,measured_seconds,plaintexts,program_bytes,worst_weight_error";

fn csv(points: &[Point]) -> String {
    let mut text = format!("{HEADER}\n");
    for point in points {
        let _ = writeln!(text, "{}", line(point));
    }
    text
}

fn line(point: &Point) -> String {
    let or_empty = |value: Option<String>| value.unwrap_or_default();
    format!(
        "{},{},{},{:.4},{:.3},{},{},{},{:.4}",
        point.members,
        point.series.name(),
        or_empty(point.centroids.map(|k| k.to_string())),
        point.accuracy,
        point.predicted,
        or_empty(point.measured.map(|s| format!("{s:.3}"))),
        point.plaintexts,
        point.program_bytes,
        point.weight_error,
    )
}
