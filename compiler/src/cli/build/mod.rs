//! `fhec build`: an ONNX model to a program file.

use std::path::{Path, PathBuf};

use fhe_bytecode::{Origin, Preprocessing, codec};
use fhe_host::{Content, parse_bytes};
use fhe_input::ImageShape;
use fhec_ir::{Graph, verify};
use fhec_passes::{Config, Manager, ManagerOptions, Pass, PassCx, PassRun, pipeline};
use indicatif::ProgressBar;

use super::calibration::{check_sizes, range_inputs};
use super::output::{
    Form, clustering, complain, extra_levels, print_json, spinner, summary, write_atomically,
};
use super::program::read_profile;
use super::{Outcome, relu};
use crate::cluster::{ClusterOptions, MAX_CENTROIDS, Method, Order, cluster_model};
use crate::diagnostics::{Diagnostic, Kind};
use crate::emit::Labels;
use crate::fit::FitSpec;
use crate::import::{ImportOptions, Imported, import_file};
use crate::pipeline::{BuildError, BuildOptions, Built, LayoutChoice, ParamsChoice, build};
use crate::report::BuildReport;
use crate::schedule::ScheduleError;
use crate::simulate::simulate;

/// Seed of the noise that calibration images are judged under.
const CALIBRATION_SEED: u64 = 1;
/// Ring degree of `--toy` unless another is given, as log2.
const TOY_LOG_N: u32 = 11;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  fhec build model.onnx -o model.fhebc
  fhec build model.onnx -o model.fhebc --report report.json --calibrate test_batch.bin
  fhec build model.onnx -o model.fhebc --layout hw --sublevels 1
  fhec build model.onnx -o model.fhebc --report report.json --profile profile.json
  fhec build model.onnx -o model.fhebc --mean 0.1307 --std 0.3081 --labels 0,1,2,3,4,5,6,7,8,9
  fhec build model.onnx -o model.fhebc --layout hw --cluster slice --centroids 64
  fhec build member1.onnx member2.onnx member3.onnx -o ensemble.fhebc
  fhec build model.onnx -o toy.fhebc --toy")]
pub(super) struct Args {
    /// ONNX file; several of one architecture become an ensemble whose scores are averaged
    #[arg(required = true)]
    models: Vec<PathBuf>,
    /// Program file to write
    #[arg(long, short)]
    output: PathBuf,
    /// Write a report about the program, as JSON
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Put measured times into the report: JSON that `fhe-run bench` wrote for this program with its `--profile`
    #[arg(long, value_name = "FILE")]
    profile: Option<PathBuf>,
    /// Sum up on standard error, or print the report as JSON
    #[arg(long, value_enum, default_value_t = Form::Text)]
    format: Form,
    #[command(flatten)]
    request: Request,
}

/// What may be asked of a build, whatever becomes of its program.
#[derive(Debug, clap::Args)]
pub(super) struct Request {
    /// How channels share ciphertexts
    #[arg(long, value_enum, default_value_t = LayoutChoice::Auto)]
    layout: LayoutChoice,
    /// Multiplications per level; 1 switches tower reuse off
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=8))]
    sublevels: u32,
    /// Bits between the largest score and the deviation of its error [default: 6 to 9, as much as costs little]
    #[arg(long)]
    precision: Option<f64>,
    /// Measure values on these images (CIFAR-10 binary, idx, npy, PNG, a folder of pictures) instead of made-up pictures, and keep their classes
    #[arg(long, value_name = "IMAGES")]
    calibrate: Option<PathBuf>,
    /// `search`, `paper`, or a RON file with parameters and scales
    #[arg(long, default_value = "search", value_name = "WHICH")]
    params: ParamsChoice,
    /// log2 of the ring degree, instead of the smallest that fits
    #[arg(long, value_parser = clap::value_parser!(u32).range(5..=17))]
    log_n: Option<u32>,
    /// Memory that keys, plaintexts and ciphertexts of one evaluation may take, such as 8G
    #[arg(long, value_parser = parse_bytes, default_value = "16G")]
    memory: u64,
    /// Build for a ring that protects nothing, to try things out
    #[arg(long)]
    toy: bool,
    /// Accept parameters below 128 bits of security
    #[arg(long)]
    insecure: bool,
    /// Mean of each channel of pixels from 0 to 1
    #[arg(long, value_delimiter = ',', num_args = 1..)]
    mean: Vec<f64>,
    /// Deviation of each channel of pixels from 0 to 1
    #[arg(long, value_delimiter = ',', num_args = 1..)]
    std: Vec<f64>,
    /// Replace convolution weights by the entries of codebooks, so that plaintexts are shared
    #[arg(long, value_enum, value_name = "METHOD")]
    cluster: Option<Method>,
    /// Most entries of a codebook
    #[arg(long, default_value_t = 64, value_name = "K", requires = "cluster",
        value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_CENTROIDS)))]
    centroids: u32,
    /// Seed of the first centroids
    #[arg(long, default_value_t = 1, value_name = "SEED", requires = "cluster")]
    cluster_seed: u64,
    /// Whether codebooks are for the weights of the model or for those that are encoded
    #[arg(long, value_enum, default_value_t = Order::After, value_name = "ORDER", requires = "cluster")]
    cluster_order: Order,
    /// Names of the classes
    #[arg(long, value_delimiter = ',', num_args = 1..)]
    labels: Vec<String>,
    /// Replace ReLU and its relatives, as `quadratic[,c=2,b=10]`
    #[arg(long, value_parser = relu::parse, value_name = "SPEC")]
    relu: Option<FitSpec>,
    /// Switch node fusing (F) off
    #[arg(long)]
    no_fuse: bool,
    /// Switch weight redistribution (R) off
    #[arg(long)]
    no_redistribute: bool,
}

pub(super) fn run(args: &Args, quiet: bool) -> Outcome {
    super::memory::check(&args.models).map_err(|d| vec![d])?;
    let spinner = spinner(quiet);
    let result = compile(&args.models, &args.request, &spinner, &mut |_| ());
    spinner.finish_and_clear();
    let built = result.map_err(|d| vec![d])?;
    let bytes = codec::encode(&built.program);
    let mut report = BuildReport::new(&built, bytes.len());
    let measured = read_profile(args.profile.as_deref(), &built.program).map_err(|d| vec![d])?;
    if let Some(measured) = &measured {
        report.compare(measured);
    }
    write_atomically(&args.output, Content::Magic(&codec::MAGIC), &bytes).map_err(|d| vec![d])?;
    if let Some(path) = &args.report {
        let json = serde_json::to_vec_pretty(&report)
            .map_err(|e| vec![Diagnostic::bug(format!("the report cannot be written: {e}"))])?;
        write_atomically(path, Content::Text, &json).map_err(|d| vec![d])?;
    }
    if args.format == Form::Json {
        return print_json(&report);
    }
    if !quiet {
        eprint!("{}{}", summary(&report, &args.output), clustering(&report));
        if let Some(note) = extra_levels(&report) {
            complain(&note);
        }
        if args.request.calibrate.is_none() {
            complain(
                "note: values were measured on made-up pictures; `--calibrate IMAGES` measures them on real ones",
            );
        }
    }
    Ok(())
}

/// A point in a build that a report tells about.
pub(super) enum Point<'a> {
    /// The model was read.
    Imported(&'a Graph),
    /// A pass ran.
    Passed(&'a dyn Pass, &'a PassRun, &'a Graph),
    /// All passes ran.
    Optimized(&'a Graph),
}

/// Compiles a model, or several as an ensemble, and shows the graph on its way.
pub(super) fn compile(
    models: &[PathBuf],
    args: &Request,
    spinner: &ProgressBar,
    observe: &mut dyn FnMut(Point<'_>),
) -> Result<Built, Diagnostic> {
    let name = models[0].display().to_string();
    let mut imported = imported(models, args, spinner)?;
    let on_model = cluster_options(args)
        .filter(|options| options.order == Order::Before)
        .map(|options| cluster_model(&mut imported.graph, options));
    observe(Point::Imported(&imported.graph));
    let labels = labels(&models[0], args, &imported)?;
    let calibration = calibration(args, &imported, &labels.preprocessing)?;
    spinner.set_message(format!("running the passes on {name}"));
    let inputs = range_inputs(&imported.graph, &calibration, &labels.preprocessing);
    check_sizes(&imported.graph, &inputs).map_err(|e| diagnostic(&name, &e))?;
    let graph = optimized(args, imported.graph, inputs, observe).map_err(|e| Diagnostic::pass(&name, &e))?;
    observe(Point::Optimized(&graph));
    let verified = verify(&graph).map_err(|e| Diagnostic::bug(format!("{name}: {e}")))?;
    spinner.set_message(format!("scheduling {name}"));
    let mut options = BuildOptions {
        layout: args.layout,
        sublevels: args.sublevels,
        precision: args.precision.map_or(BuildOptions::default().precision, |bits| bits..=bits),
        params: args.params.clone(),
        log_n: ring_degrees(args)?,
        insecure: args.insecure,
        memory: args.memory,
        calibration,
        cluster: cluster_options(args),
        ..BuildOptions::default()
    };
    let mut built = build(verified, &options, labels.clone()).map_err(|e| diagnostic(&name, &e))?;
    // Without a precision asked for, the calibration images decide: their classes must survive the noise.
    while args.precision.is_none()
        && args.params == ParamsChoice::Search
        && !keeps_classes(&built, &options.calibration)?
    {
        let more = built.schedule.precision + 1.0;
        options.precision = more..=more;
        spinner.set_message(format!("scheduling {name} for {more:.0} bits of precision"));
        match build(verified, &options, labels.clone()) {
            Ok(better) => built = better,
            Err(BuildError::Schedule(_)) => break,
            Err(error) => return Err(diagnostic(&name, &error)),
        }
    }
    built.clustering = built.clustering.or(on_model);
    Ok(built)
}

fn cluster_options(args: &Request) -> Option<ClusterOptions> {
    args.cluster.map(|method| ClusterOptions {
        method,
        centroids: args.centroids,
        seed: args.cluster_seed,
        order: args.cluster_order,
    })
}

/// The model, or the ensemble of all models with what the first file says about using it.
fn imported(models: &[PathBuf], args: &Request, spinner: &ProgressBar) -> Result<Imported, Diagnostic> {
    let mut members = Vec::with_capacity(models.len());
    for path in models {
        let name = path.display().to_string();
        spinner.set_message(format!("reading {name}"));
        let options = ImportOptions { relu: args.relu };
        members.push(import_file(path, &options).map_err(|error| Diagnostic::import(&name, &error))?);
    }
    let graphs: Vec<Graph> = members.iter().map(|m| m.graph.clone()).collect();
    let mut first = members.swap_remove(0);
    if graphs.len() > 1 {
        let cannot = |e: fhec_ir::EnsembleError| {
            Diagnostic::new(Kind::Cannot, format!("these models are no ensemble: {e}"))
        };
        first.graph = fhec_ir::ensemble(&graphs).map_err(cannot)?;
    }
    Ok(first)
}

/// Whether the simulated noise leaves the class of every calibration image as it is.
fn keeps_classes(built: &Built, calibration: &[Vec<f64>]) -> Result<bool, Diagnostic> {
    let samples: Vec<_> = calibration.iter().map(|sample| (sample.clone(), None)).collect();
    let simulation = simulate(&built.program, &samples, CALIBRATION_SEED, &|| ())
        .map_err(|e| Diagnostic::bug(format!("calibration images do not fit the program: {e}")))?;
    Ok(samples.is_empty() || simulation.agreement == 1.0)
}

fn optimized(
    args: &Request,
    mut graph: Graph,
    inputs: Vec<Vec<f64>>,
    observe: &mut dyn FnMut(Point<'_>),
) -> Result<Graph, fhec_passes::PassError> {
    let redistribute = !args.no_redistribute;
    let config = Config { fuse: !args.no_fuse, forward: redistribute, backward: redistribute, finish: true };
    let manager = Manager::new(pipeline(config), ManagerOptions::default())?;
    let mut cx = PassCx::with_calibration(inputs.into_iter().map(|input| vec![input]).collect());
    manager.run_observed(&mut graph, &mut cx, &mut |pass, run, graph| {
        observe(Point::Passed(pass, run, graph));
    })?;
    Ok(graph)
}

fn ring_degrees(args: &Request) -> Result<std::ops::RangeInclusive<u32>, Diagnostic> {
    let allowed = fhe_bytecode::params::LOG_N_RANGE;
    match (args.log_n, args.toy) {
        (Some(log_n), toy) if toy || allowed.contains(&log_n) => Ok(log_n..=log_n),
        (Some(log_n), _) => {
            let what = format!("ring degree 2^{log_n} protects nothing");
            Err(Diagnostic::new(Kind::Usage, what).with_help("add `--toy` if this is only a test"))
        }
        (None, true) => Ok(TOY_LOG_N..=*allowed.end()),
        (None, false) => Ok(allowed),
    }
}

fn labels(model: &Path, args: &Request, imported: &Imported) -> Result<Labels, Diagnostic> {
    let from_model = imported.preprocessing.as_ref();
    let pick = |given: &Vec<f64>, stored: Option<&Vec<f64>>| {
        if given.is_empty() { stored.cloned().unwrap_or_default() } else { given.clone() }
    };
    let channels = imported.inputs.first().map_or(1, |i| i.shape.c);
    let spread = |values: Vec<f64>, what: &str| match values.len() {
        1 => Ok(vec![values[0]; channels]),
        n if n == 0 || n == channels => Ok(values),
        n => Err(Diagnostic::new(
            Kind::Usage,
            format!("{n} numbers for `--{what}`, the model has {channels} channels"),
        )
        .with_help("give one number for all channels, or one for each")),
    };
    let mean = spread(pick(&args.mean, from_model.map(|p| &p.mean)), "mean")?;
    let std = spread(pick(&args.std, from_model.map(|p| &p.std)), "std")?;
    let n_scores = imported.graph.outputs().first().map_or(0, |&id| imported.graph.shape(id).len());
    let classes = if args.labels.is_empty() {
        imported.labels.clone().unwrap_or_default()
    } else {
        args.labels.clone()
    };
    if !classes.is_empty() && classes.len() != n_scores {
        let what = format!("{} labels for {n_scores} scores", classes.len());
        return Err(Diagnostic::new(Kind::Usage, what).with_help("give one label for every score"));
    }
    let model = model.file_stem().map_or_else(String::new, |s| s.to_string_lossy().into_owned());
    Ok(Labels {
        origin: Origin {
            model,
            producer: concat!("fhec ", env!("CARGO_PKG_VERSION")).to_owned(),
            packing: String::new(),
        },
        input: imported.inputs.first().map_or_else(String::new, |i| i.name.clone()),
        output: imported.outputs.first().cloned().unwrap_or_default(),
        preprocessing: Preprocessing { mean, std },
        classes,
    })
}

fn calibration(
    args: &Request,
    imported: &Imported,
    preprocessing: &Preprocessing,
) -> Result<Vec<Vec<f64>>, Diagnostic> {
    let (Some(path), Some(input)) = (&args.calibrate, imported.inputs.first()) else { return Ok(Vec::new()) };
    let shape = ImageShape::new(input.shape.c, input.shape.h, input.shape.w);
    super::calibration::read(path, shape, preprocessing)
}

fn diagnostic(model: &str, error: &BuildError) -> Diagnostic {
    let what = format!("{model}: {error}");
    match error {
        BuildError::Linear(source) => Diagnostic::bug(format!("{what}: {source}")),
        BuildError::Check(source) => Diagnostic::bug(format!("{what}: {source}")),
        BuildError::Schedule(ScheduleError::NotInPaper { .. }) => Diagnostic::new(Kind::Cannot, what)
            .with_help("leave `--params paper` away: the search finds parameters for every network"),
        BuildError::Schedule(_) => Diagnostic::new(Kind::Cannot, what)
            .with_help("ask for less `--precision`, other `--sublevels` or a larger ring (`--log-n`)"),
        BuildError::Overflow { .. } => Diagnostic::new(Kind::Cannot, what).with_help(
            "train with the clip-range penalty, or pass `--calibrate IMAGES` if real inputs stay in range",
        ),
        BuildError::Vanish { .. } => Diagnostic::new(Kind::Cannot, what).with_help(
            "look for weights near zero in the last layers; a common factor of the scores changes no class",
        ),
        BuildError::Memory { .. } => Diagnostic::new(Kind::Cannot, what)
            .with_help("allow more with `--memory`, or try `--layout hw`, which needs fewer keys"),
        BuildError::Layout(_) => {
            Diagnostic::new(Kind::Cannot, what).with_help("use a larger ring (`--log-n`) or a smaller input")
        }
        _ => Diagnostic::new(Kind::Cannot, what)
            .with_help("compile a network with one input, one output and at least one layer with weights"),
    }
}
