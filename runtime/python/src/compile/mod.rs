//! Models to programs, levels and pages.

mod options;
mod rehearsal;

use std::path::{Path, PathBuf};

use fhe_bytecode::codec;
use fhe_input::InputErrorKind;
use fhec::cli::parse_relu;
use fhec::import::{self, ImportOptions};
use fhec::levels::{Format, LevelsOptions, Shown, analyze, render, with_degree};
use fhec::report::{BuildReport, Page, Recorder, precision_bits};
use fhec::{Calibration, CompileError, Compiled, ImageFile, Model, Observer, Stage};
use pyo3::prelude::*;

use self::options::{Options, wrong};
use self::rehearsal::rehearsed;
use crate::fault::Fault;
use crate::long::{self, Watch};
use crate::program::{Build, Loaded, Program};
use crate::threads::COMMON;

/// A model from the user: a file, or a name and the bytes of one.
#[derive(FromPyObject)]
pub(crate) enum Given {
    #[pyo3(transparent)]
    File(PathBuf),
    #[pyo3(transparent)]
    Bytes((String, Vec<u8>)),
}

/// Calibration inputs from the user: files and folders, or the name and bytes of a file.
#[derive(FromPyObject)]
pub(crate) enum Measured {
    #[pyo3(transparent)]
    Bytes((String, Vec<u8>)),
    #[pyo3(transparent)]
    Paths(Vec<PathBuf>),
}

impl Measured {
    fn calibration(self) -> Result<Calibration, CompileError> {
        match self {
            Self::Paths(paths) => {
                let files = fhe_input::files(&paths).map_err(|e| CompileError::Calibration {
                    name: e.path.display().to_string(),
                    kind: e.kind,
                })?;
                Ok(Calibration::Files(files.iter().map(|path| image(path)).collect::<Result<_, _>>()?))
            }
            Self::Bytes((name, bytes)) => Ok(Calibration::Files(vec![ImageFile { name, bytes }])),
        }
    }
}

/// Largest image file that is read.
const MAX_IMAGE_BYTES: u64 = 512 << 20;

fn image(path: &Path) -> Result<ImageFile, CompileError> {
    let name = path.display().to_string();
    let kind = match fhe_host::read_bounded(path, MAX_IMAGE_BYTES) {
        Ok(bytes) if bytes.len() as u64 <= MAX_IMAGE_BYTES => return Ok(ImageFile { name, bytes }),
        Ok(_) => InputErrorKind::TooLarge { limit: MAX_IMAGE_BYTES },
        Err(error) => error.into(),
    };
    Err(CompileError::Calibration { name, kind })
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

/// Tells the stages of a compilation to whoever waits for it.
struct Told<'w> {
    watch: &'w Watch,
    stage: String,
}

impl Observer for Told<'_> {
    fn stage(&mut self, stage: Stage<'_>) {
        self.stage = match stage {
            Stage::Import { model } => format!("reading {model}"),
            Stage::Approximate => "fitting polynomials".to_owned(),
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
    calibrate: Option<Measured>,
    options: &Options,
    like: Option<&Loaded>,
    observer: &mut dyn Observer,
) -> Result<Compiled, Fault> {
    let name = models.first().map_or_else(String::new, Given::name);
    let fault = |error: &CompileError| Fault::compile(&name, error);
    let sources =
        models.iter().map(Given::model).collect::<Result<Vec<_>, _>>().map_err(|error| fault(&error))?;
    let calibration = calibrate.map_or(Ok(Calibration::MadeUp), Measured::calibration);
    let calibration = calibration.map_err(|error| fault(&error))?;
    let like = like.map(|loaded| loaded.program.clone());
    fhec::compile(&options.request(sources, calibration, like)?, observer).map_err(|error| fault(&error))
}

/// Compiles models; `options` is JSON. `fhec.compile` is what to call.
#[pyfunction]
#[pyo3(signature = (models, calibrate, options, like=None, progress=None))]
pub(crate) fn compile(
    py: Python<'_>,
    models: Vec<Given>,
    calibrate: Option<Measured>,
    options: String,
    like: Option<&Bound<'_, Program>>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Program> {
    let like = like.map(|program| program.get().inner.clone());
    long::run(py, &COMMON, progress, move |watch| {
        let (options, mut told) = (Options::parse(&options)?, Told { watch, stage: String::new() });
        let compiled = compiled(&models, calibrate, &options, like.as_deref(), &mut told)?;
        let n_bytes = codec::encode(&compiled.built.program).len();
        let mut report = BuildReport::new(&compiled, n_bytes);
        report.rehearsal = rehearsed(&compiled, &options, watch)?;
        let report = serde_json::to_value(report).map_err(|error| Fault::bug(error.to_string()))?;
        let built = Build { report, precision_bits: precision_bits(&compiled.built) };
        Ok(Program::new(compiled.built.program, Some(built)))
    })
}

/// The page of a compilation, with the passes that led to it; `options` is JSON. `fhec.report` is what to call.
#[pyfunction]
#[pyo3(signature = (models, calibrate, options, like=None, progress=None))]
pub(crate) fn report(
    py: Python<'_>,
    models: Vec<Given>,
    calibrate: Option<Measured>,
    options: String,
    like: Option<&Bound<'_, Program>>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<String> {
    let like = like.map(|program| program.get().inner.clone());
    long::run(py, &COMMON, progress, move |watch| {
        let mut recorder = Recorder::new(Told { watch, stage: String::new() });
        let options = Options::parse(&options)?;
        let compiled = compiled(&models, calibrate, &options, like.as_deref(), &mut recorder)?;
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
            let options = ImportOptions { relu, ..ImportOptions::default() };
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
