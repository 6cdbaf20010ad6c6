//! The door: [`compile`] is the only way from a model to a program.
//!
//! Models are read and joined, clustered if asked for, calibrated, optimized, lowered, placed, scheduled and emitted; the
//! checked program is then evaluated in the clear on the calibration inputs with the noise that encryption will add, and
//! where nobody fixed a precision it is raised until errors are as predicted and classes survive. Commands, tests, sweeps and
//! fuzzers come in here.

mod calibration;
mod error;
mod followed;
mod labels;
mod like;
mod observer;
mod precision;
mod rehearsal;
mod request;
mod rounding;
mod survey;

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use fhe_bytecode::CostModel;
use fhe_bytecode::params::LOG_N_RANGE;
use fhec_ir::{Graph, verify};
use fhec_passes::{Config, Manager, ManagerOptions, PassCx, Saturation, pipeline};

pub use self::calibration::{Calibration, ImageFile};
pub use self::error::{CompileError, Statistic};
pub use self::observer::{Observer, Stage};
pub use self::rehearsal::{Rehearsal, RehearsalError, Rehearse};
pub use self::request::{Model, Request, Source};
pub use self::survey::SelfCheck;

use self::calibration::{CalibrationSet, check_sizes, range_inputs};
use self::survey::Survey;
use crate::approximate::{Approximation, approximate};
use crate::cluster::{Clustering, Order, cluster_model};
use crate::import::{Fitted, Functions, ImportOptions, Imported, Note};
use crate::pipeline::{BuildError, BuildOptions, Built, Measured, Prepared};
use crate::simulate::Inputs as _;

/// Precision where none is asked for: the least, and what is tried first.
const PRECISION: RangeInclusive<f64> = 6.0..=9.0;
/// Smallest ring degree that is tried where rings may protect nothing, as log2.
const TOY_LOG_N: u32 = 11;

/// A checked program, the stages it came from, and what is known about it.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The program and its stages.
    pub built: Built,
    /// The graph after all passes.
    pub graph: Graph,
    /// Why equality saturation ended, pass by pass.
    pub saturation: Vec<(&'static str, Saturation)>,
    /// What the user should know about the import.
    pub notes: Vec<Note>,
    /// What was put in place of functions that are no polynomials, where that was asked for.
    pub approximation: Option<Approximation>,
    /// The program on the inputs it was calibrated on, with simulated noise.
    pub check: SelfCheck,
    /// One of the inputs it was calibrated on.
    pub sample: Vec<f64>,
}

/// Compiles a model, or several as an ensemble.
///
/// # Errors
/// When a model cannot be read or encrypted, or the request cannot be met: a code and the facts.
pub fn compile(request: &Request, observer: &mut dyn Observer) -> Result<Compiled, CompileError> {
    let mut variants = imported(request, observer)?.into_iter();
    let mut result = Err(CompileError::NoModel);
    // Several differ in depth only: the deepest that has a schedule is taken.
    for variant in &mut variants {
        result = compile_one(request, variant, observer);
        if !matches!(&result, Err(CompileError::Build(error)) if error.is_schedule()) {
            break;
        }
    }
    result
}

/// A model as it was read, and what was put in place of its functions.
struct Variant {
    imported: Imported,
    approximation: Option<Approximation>,
}

fn compile_one(
    request: &Request,
    variant: Variant,
    observer: &mut dyn Observer,
) -> Result<Compiled, CompileError> {
    let Variant { mut imported, approximation } = variant;
    let on_model = request
        .cluster
        .filter(|options| options.order == Order::Before)
        .map(|options| cluster_model(&mut imported.graph, options));
    observer.imported(&imported);
    labels::check_batch(request, &imported)?;
    let (labels, classes) = (labels::labels(request, &imported)?, imported.classes());
    let log_n = ring_degrees(request)?;
    let shape = match imported.graph.inputs()[..] {
        [input] => imported.graph.shape(input),
        ref other => {
            let outputs = imported.graph.outputs().len();
            return Err(BuildError::Arity { inputs: other.len(), outputs }.into());
        }
    };
    let ports = labels::ports(&imported);
    let calibration = CalibrationSet::new(&request.calibration, shape, &labels.preprocessing, &ports)?;
    let calibration = calibration.typical(&imported.graph);
    observer.stage(Stage::Passes);
    let (graph, saturation) = optimized(request, imported.graph, &calibration, observer)?;
    observer.optimized(&graph);
    let mut options = BuildOptions {
        layout: request.layout,
        precision: request.precision.map_or(PRECISION, |bits| bits..=bits),
        params: request.params.clone(),
        log_n,
        headroom: request.headroom,
        towers: request.towers,
        segmentation: request.segmentation,
        insecure: request.insecure,
        memory: request.memory,
        costs: costs(request),
        n_encryptions: ports.len().max(1),
        batch: request.batch,
        shared: request.batch,
    };
    if let Some(other) = &request.like {
        like::ask(&mut options, other)?;
    }
    observer.stage(Stage::Calibrate);
    let probes = calibration.probes();
    let range = calibration.pixels();
    let measured = Measured { probes: &probes, all: &calibration, range };
    let verified = verify(&graph)?;
    let mut progress = |done, of| observer.fraction(done, of);
    let prepared = Prepared::new(verified, request.sublevels, request.cluster, measured, &mut progress)?;
    observer.lowered(prepared.circuit());
    observer.stage(Stage::Schedule { precision: None });
    let survey = Survey::new(&calibration, prepared.results(), &classes);
    let built = precision::until_kept(request, &mut options, &prepared, &labels, &survey, observer);
    let (mut built, check) = match request.like {
        Some(_) => built.map_err(like::explained)?,
        None => built?,
    };
    if let Some(other) = &request.like {
        like::check(&built.program, other)?;
    }
    // Codebooks change weights on purpose.
    if request.cluster.is_none() {
        let lost = rounding::lost(&graph, &built.program, &probes)?;
        built.program = built.program.with_wider_bound(lost);
    }
    let sample = calibration.input(0);
    let built = with_clustering(built, on_model);
    Ok(Compiled { built, graph, saturation, notes: imported.notes, approximation, check, sample })
}

/// The model, or where its functions are approximated several ways to do that, the best first.
fn imported(request: &Request, observer: &mut dyn Observer) -> Result<Vec<Variant>, CompileError> {
    let (relu, outputs) = (request.relu, request.outputs.clone());
    let options = ImportOptions { relu, outputs, functions: Functions::Refused };
    if !request.approximate {
        let imported = joined(request, &options, observer)?;
        return Ok(vec![Variant { imported, approximation: None }]);
    }
    let [model] = &request.models[..] else { return Err(CompileError::ApproximateEnsemble) };
    observer.stage(Stage::Import { model: &model.name });
    let open = model.import(&ImportOptions { functions: Functions::Open, ..options.clone() })?;
    if open.gaps.is_empty() {
        let imported = joined(request, &options, observer)?;
        return Ok(vec![Variant { imported, approximation: None }]);
    }
    let shape = open.graph.shape(open.graph.inputs()[0]);
    let (preprocessing, ports) = (labels::preprocessing(request, &open)?, labels::ports(&open));
    let calibration = CalibrationSet::new(&request.calibration, shape, &preprocessing, &ports)?;
    if !calibration.is_real() {
        return Err(CompileError::ApproximateBlindly);
    }
    observer.stage(Stage::Approximate);
    let found = approximate(&open, &calibration, &mut |done, of| observer.fraction(done, of))?;
    let variant = |(fitted, approximation): (BTreeMap<String, Fitted>, Approximation)| {
        let options = ImportOptions { functions: Functions::Fitted(fitted), ..options.clone() };
        Ok(Variant { imported: model.import(&options)?, approximation: Some(approximation) })
    };
    found.into_iter().map(variant).collect()
}

/// The model, or the ensemble of all models with what the first one says about using it.
fn joined(
    request: &Request,
    options: &ImportOptions,
    observer: &mut dyn Observer,
) -> Result<Imported, CompileError> {
    let mut members = Vec::with_capacity(request.models.len());
    for model in &request.models {
        observer.stage(Stage::Import { model: &model.name });
        members.push(model.import(options)?);
    }
    let graphs: Vec<Graph> = members.iter().skip(1).map(|m| m.graph.clone()).collect();
    let mut first = members.into_iter().next().ok_or(CompileError::NoModel)?;
    if !graphs.is_empty() {
        let all: Vec<Graph> = std::iter::once(first.graph).chain(graphs).collect();
        first.graph = fhec_ir::ensemble(&all)?;
    }
    Ok(first)
}

fn optimized(
    request: &Request,
    mut graph: Graph,
    calibration: &CalibrationSet,
    observer: &mut dyn Observer,
) -> Result<(Graph, Vec<(&'static str, Saturation)>), CompileError> {
    let inputs = range_inputs(&graph, calibration);
    check_sizes(&graph, &inputs)?;
    let (fuse, redistribute) = (request.fuse, request.redistribute);
    let config = Config { fuse, forward: redistribute, backward: redistribute, finish: true };
    let manager = Manager::new(pipeline(config), ManagerOptions::default())?;
    let mut cx = PassCx::with_calibration(inputs.into_iter().map(|input| vec![input]).collect());
    let mut saturation = Vec::new();
    manager.run_observed(&mut graph, &mut cx, &mut |pass, run, graph| {
        saturation.extend(run.report.saturation.map(|how| (run.name, how)));
        observer.passed(pass, run, graph);
    })?;
    Ok((graph, saturation))
}

/// What operations cost. A byte of keys is worth more time of a batch than of one input, as it takes longer, and less of each of
/// its inputs, as they share it.
fn costs(request: &Request) -> CostModel {
    let costs = request.costs.clone();
    CostModel { key_byte_s: costs.key_byte_s * (request.batch as f64).sqrt(), ..costs }
}

/// Ring degrees that may be used, as log2.
fn ring_degrees(request: &Request) -> Result<RangeInclusive<u32>, CompileError> {
    match (&request.log_n, request.toy) {
        (Some(range), toy) if toy || range.start() >= LOG_N_RANGE.start() => Ok(range.clone()),
        (Some(range), _) => Err(CompileError::Toy { log_n: *range.start() }),
        (None, true) => Ok(TOY_LOG_N..=*LOG_N_RANGE.end()),
        (None, false) => Ok(LOG_N_RANGE),
    }
}

/// Puts down what clustering did to the model, where it did not work on the circuit.
fn with_clustering(built: Built, on_model: Option<Clustering>) -> Built {
    Built { clustering: built.clustering.or(on_model), ..built }
}
