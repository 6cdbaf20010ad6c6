//! Models to programs, levels and pages.

use std::path::PathBuf;

use fhe_bytecode::Preprocessing;
use fhe_bytecode::codec;
use fhec::cli::parse_relu;
use fhec::cluster::{ClusterOptions, Method, Order};
use fhec::import::{self, ImportOptions};
use fhec::levels::{Format, LevelsOptions, Shown, analyze, render, with_degree};
use fhec::pipeline::{LayoutChoice, ParamsChoice};
use fhec::report::{BuildReport, Page, Recorder, precision_bits};
use fhec::{Calibration, CompileError, Compiled, ImageFile, Model, Observer, Request, Stage};
use pyo3::prelude::*;
use serde::Deserialize;

use crate::fault::{Class, Fault};
use crate::long::{self, Watch};
use crate::program::{Build, Program};
use crate::threads::COMMON;

/// A model from the user: a file, or a name and the bytes of one.
#[derive(FromPyObject)]
pub(crate) enum Given {
    #[pyo3(transparent)]
    File(PathBuf),
    #[pyo3(transparent)]
    Bytes((String, Vec<u8>)),
}

impl Given {
    fn name(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Bytes((name, _)) => name.clone(),
        }
    }

    fn model(&self) -> Result<Model, CompileError> {
        match self {
            Self::File(path) => Model::file(path),
            Self::Bytes((name, bytes)) => Ok(Model::onnx(name.clone(), bytes.clone())),
        }
    }
}

/// What `fhec.compile` may be asked for; the names are those of the options of `fhec build`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Options {
    memory: u64,
    layout: String,
    sublevels: u32,
    precision: Option<f64>,
    headroom: Option<f64>,
    log_n: Option<u32>,
    toy: bool,
    insecure: bool,
    mean: Vec<f64>,
    std: Vec<f64>,
    labels: Vec<String>,
    relu: Option<String>,
    cluster: Option<String>,
    centroids: u32,
    fuse: bool,
    redistribute: bool,
}

fn wrong(option: &str, found: impl std::fmt::Display, wanted: &str) -> Fault {
    Fault::new(Class::Usage, "option", format!("{option} is {found}"))
        .with_remedy(format!("{option} is {wanted}"))
}

impl Options {
    fn request(&self, models: Vec<Model>, calibration: Calibration) -> Result<Request, Fault> {
        let layout = match self.layout.as_str() {
            "auto" => LayoutChoice::Auto,
            "hw" => LayoutChoice::Hw,
            "packed" => LayoutChoice::Packed,
            other => return Err(wrong("layout", format!("{other:?}"), "\"auto\", \"hw\" or \"packed\"")),
        };
        let method = match self.cluster.as_deref() {
            None => None,
            Some("full") => Some(Method::Full),
            Some("slice") => Some(Method::Slice),
            Some(other) => return Err(wrong("cluster", format!("{other:?}"), "None, \"full\" or \"slice\"")),
        };
        if !(1..=8).contains(&self.sublevels) {
            return Err(wrong("sublevels", self.sublevels, "a number from 1 to 8"));
        }
        if self.log_n.is_some_and(|log_n| !(5..=17).contains(&log_n)) {
            return Err(wrong("log_n", self.log_n.unwrap_or_default(), "a number from 5 to 17"));
        }
        let relu = self.relu.as_deref().map(parse_relu).transpose();
        Ok(Request {
            models,
            relu: relu.map_err(|why| {
                wrong("relu", why, "\"quadratic\", or with range and bits \"quadratic,c=2,b=10\"")
            })?,
            preprocessing: Preprocessing { mean: self.mean.clone(), std: self.std.clone() },
            classes: self.labels.clone(),
            calibration,
            cluster: method.map(|method| ClusterOptions {
                method,
                centroids: self.centroids,
                seed: 1,
                order: Order::After,
            }),
            fuse: self.fuse,
            redistribute: self.redistribute,
            layout,
            sublevels: self.sublevels,
            precision: self.precision,
            params: ParamsChoice::Search,
            log_n: self.log_n.map(|log_n| log_n..=log_n),
            toy: self.toy,
            headroom: self.headroom,
            insecure: self.insecure,
            memory: self.memory,
            ..Request::default()
        })
    }
}

/// Tells the stages of a compilation to whoever waits for it.
struct Told<'w> {
    watch: &'w Watch,
    stage: String,
}

impl Observer for Told<'_> {
    fn stage(&mut self, stage: Stage<'_>) {
        self.stage = match stage {
            Stage::Import { model } => format!("reading {model}"),
            Stage::Passes => "running the passes".to_owned(),
            Stage::Calibrate => "measuring values".to_owned(),
            Stage::Schedule { .. } => "scheduling".to_owned(),
            Stage::Simulate => "simulating the noise".to_owned(),
            _ => "compiling".to_owned(),
        };
        self.watch.tell(None, self.stage.clone());
    }

    fn fraction(&mut self, done: usize, of: usize) {
        self.watch.tell(Some(done as f64 / of.max(1) as f64), self.stage.clone());
    }
}

/// A compilation as it was asked for.
fn compiled(
    models: &[Given],
    calibrate: Option<Vec<(String, Vec<u8>)>>,
    options: &str,
    observer: &mut dyn Observer,
) -> Result<Compiled, Fault> {
    let options: Options = serde_json::from_str(options)
        .map_err(|error| Fault::new(Class::Usage, "option", error.to_string()))?;
    let name = models.first().map_or_else(String::new, Given::name);
    let fault = |error: &CompileError| Fault::compile(&name, error);
    let sources =
        models.iter().map(Given::model).collect::<Result<Vec<_>, _>>().map_err(|error| fault(&error))?;
    let calibration = calibrate.map_or(Calibration::MadeUp, |files| {
        Calibration::Files(files.into_iter().map(|(name, bytes)| ImageFile { name, bytes }).collect())
    });
    fhec::compile(&options.request(sources, calibration)?, observer).map_err(|error| fault(&error))
}

/// Compiles models; `options` is JSON. `fhec.compile` is what to call.
#[pyfunction]
#[pyo3(signature = (models, calibrate, options, progress=None))]
pub(crate) fn compile(
    py: Python<'_>,
    models: Vec<Given>,
    calibrate: Option<Vec<(String, Vec<u8>)>>,
    options: String,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Program> {
    long::run(py, &COMMON, progress, move |watch| {
        let mut told = Told { watch, stage: String::new() };
        let compiled = compiled(&models, calibrate, &options, &mut told)?;
        let n_bytes = codec::encode(&compiled.built.program).len();
        let report = serde_json::to_value(BuildReport::new(&compiled, n_bytes))
            .map_err(|error| Fault::bug(error.to_string()))?;
        let built = Build { report, precision_bits: precision_bits(&compiled.built) };
        Ok(Program::new(compiled.built.program, Some(built)))
    })
}

/// The page of a compilation, with the passes that led to it; `options` is JSON. `fhec.report` is what to call.
#[pyfunction]
#[pyo3(signature = (models, calibrate, options, progress=None))]
pub(crate) fn report(
    py: Python<'_>,
    models: Vec<Given>,
    calibrate: Option<Vec<(String, Vec<u8>)>>,
    options: String,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<String> {
    long::run(py, &COMMON, progress, move |watch| {
        let mut recorder = Recorder::new(Told { watch, stage: String::new() });
        let compiled = compiled(&models, calibrate, &options, &mut recorder)?;
        let stages = recorder.finish().map_err(|error| Fault::bug(error.to_string()))?;
        let page = Page {
            program: &compiled.built.program,
            stages: Some(&stages),
            precision_bits: Some(precision_bits(&compiled.built)),
            measured: None,
            check: Some(&compiled.check),
            provenance: &[],
        };
        Ok(page.html())
    })
}

/// What models cost in levels: JSON, and a table for people. `fhec.levels` is what to call.
#[pyfunction]
#[pyo3(signature = (models, relu=None, degree=None, progress=None))]
pub(crate) fn levels(
    py: Python<'_>,
    models: Vec<Given>,
    relu: Option<String>,
    degree: Option<usize>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<(String, String)> {
    long::run(py, &COMMON, progress, move |watch| {
        let relu = relu.as_deref().map(parse_relu).transpose();
        let relu = relu.map_err(|why| {
            wrong("relu", why, "\"quadratic\", or with range and bits \"quadratic,c=2,b=10\"")
        })?;
        let mut reports = Vec::new();
        for given in &models {
            let name = given.name();
            watch.tell(None, format!("running the passes on {name}"));
            let options = ImportOptions { relu };
            let imported = match given {
                Given::File(path) => import::import_file(path, &options),
                Given::Bytes((_, bytes)) => import::import_bytes(bytes.clone(), &options),
            };
            let mut imported = imported.map_err(|source| {
                Fault::compile(&name, &CompileError::Import { model: name.clone(), source: Box::new(source) })
            })?;
            if let Some(degree) = degree {
                imported.graph =
                    with_degree(&imported.graph, degree).map_err(|e| Fault::bug(e.to_string()))?;
            }
            let analysis = analyze(&name, &imported.graph, &LevelsOptions::default());
            reports.push(analysis.map_err(|error| Fault::bug(error.to_string()))?.report);
        }
        Ok((
            render(&reports, Format::Json, Shown::default()),
            render(&reports, Format::Table, Shown::default()),
        ))
    })
}
