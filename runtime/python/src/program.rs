//! A compiled program.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use fhe_bytecode::CheckedProgram;
use fhe_bytecode::codec::{self, MAGIC};
use fhe_ckks::Context;
use fhe_host::Content;
use fhe_runtime::clear_output;
use fhec::report::{self, Page};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde_json::{Value, json};

use crate::fault::{Class, Fault};
use crate::interface::Interface;
use crate::long;
use crate::names::program_name;
use crate::paths::{Source, write, wrong_type};
use crate::samples::{Wanted, array, fit, labels, samples};
use crate::simulation;
use crate::threads::COMMON;

/// How the names of interface files end.
const INTERFACE_EXTENSION: &str = "fhei";

/// A model as a program over encrypted data: what `fhec build` writes.
///
/// `fhec.compile` makes one and `Program.load` reads one. A program has the weights in the clear; it holds no keys and no data.
#[pyclass(frozen, module = "fhec")]
pub(crate) struct Program {
    pub(crate) inner: Arc<Loaded>,
}

/// A program, and what is known about it.
pub(crate) struct Loaded {
    pub(crate) program: CheckedProgram,
    context: OnceLock<Arc<Context>>,
    built: Option<Build>,
}

/// What only the compilation knows.
pub(crate) struct Build {
    /// The figures of `fhec build --report`.
    pub(crate) report: Value,
    /// Bits between the largest result and the deviation of its error.
    pub(crate) precision_bits: f64,
}

impl Loaded {
    /// The tables of the parameters, made on first use.
    pub(crate) fn context(&self) -> Result<Arc<Context>, Fault> {
        if let Some(context) = self.context.get() {
            return Ok(context.clone());
        }
        let made = Context::new(self.program.params().clone())?;
        Ok(self.context.get_or_init(|| made).clone())
    }
}

impl Program {
    pub(crate) fn new(program: CheckedProgram, built: Option<Build>) -> Self {
        Self { inner: Arc::new(Loaded { program, context: OnceLock::new(), built }) }
    }

    fn checked(&self) -> &CheckedProgram {
        &self.inner.program
    }

    fn wanted(&self) -> Wanted<'_> {
        Wanted::new(self.checked().input_layout().shape(), &self.checked().spec().input)
    }
}

/// Bytes, or a file, as a program.
pub(crate) fn read(source: Source) -> Result<CheckedProgram, Fault> {
    let name = source.name();
    let bytes = source.read(codec::DEFAULT_LIMIT)?;
    codec::decode(&bytes, codec::DEFAULT_LIMIT).map_err(|error| Fault::decode(&name, &error))
}

#[pymethods]
impl Program {
    /// Reads and checks a .fhebc file, or its bytes.
    #[staticmethod]
    fn load(py: Python<'_>, source: &Bound<'_, PyAny>) -> PyResult<Self> {
        let source = Source::new(source).ok_or_else(|| wrong_type("source", source, "a path or bytes"))?;
        Ok(Self::new(long::run(py, &COMMON, None, move |_| read(source))?, None))
    }

    /// Writes a .fhebc file, and beside it what clients need of it, ending in .fhei: the files of `fhec build`.
    fn save(&self, path: PathBuf) -> PyResult<()> {
        let beside = path.with_extension(INTERFACE_EXTENSION);
        if beside == path {
            let what = format!(
                "{}: interfaces end in .{INTERFACE_EXTENSION}, and programs in .fhebc",
                path.display()
            );
            return Err(Fault::new(Class::Usage, "name", what)
                .with_remedy("give the program another name")
                .into());
        }
        let program = self.checked();
        write(&path, Content::Magic(&MAGIC), &codec::encode(program))?;
        let interface = codec::encode_interface(&program.interface());
        Ok(write(&beside, Content::Magic(&codec::INTERFACE_MAGIC), &interface)?)
    }

    /// The bytes of a .fhebc file.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &codec::encode(self.checked()))
    }

    /// What a client needs of it.
    #[getter]
    fn interface(&self) -> Interface {
        Interface::new(self.checked().interface(), self.inner.context.get().cloned())
    }

    /// Fingerprint of the program file: keys and ciphertexts are bound to it.
    #[getter]
    fn fingerprint(&self) -> String {
        program_name(self.checked().fingerprint())
    }

    /// Name of the model.
    #[getter]
    fn name(&self) -> String {
        self.checked().spec().origin.model.clone()
    }

    /// Levels of the modulus chain.
    #[getter]
    fn levels(&self) -> u32 {
        u32::from(self.checked().params().max_level().0)
    }

    /// Ring degree.
    #[getter]
    fn n(&self) -> usize {
        self.checked().params().n()
    }

    /// Bits of the modulus of the keys.
    #[getter]
    fn log2_pq(&self) -> f64 {
        self.checked().params().log2_pq()
    }

    /// Whether keys have 128 bits of security.
    #[getter]
    fn is_secure(&self) -> bool {
        self.checked().params().is_secure()
    }

    /// Bits left below the bound of 128-bit security; None for a ring that protects nothing.
    #[getter]
    fn security_margin_bits(&self) -> Option<f64> {
        let params = self.checked().params();
        params.security_cap().map(|cap| f64::from(cap) - params.log2_pq())
    }

    /// Channels, height and width of a sample.
    #[getter]
    fn input_shape(&self) -> (usize, usize, usize) {
        let shape = self.checked().input_layout().shape();
        (shape.channels as usize, shape.height as usize, shape.width as usize)
    }

    /// Number of scores of a sample.
    #[getter]
    fn n_scores(&self) -> usize {
        self.checked().output_layout().shape().len()
    }

    /// Names of the classes; empty where the model tells none.
    #[getter]
    fn labels(&self) -> Vec<String> {
        self.checked().spec().output.labels.clone()
    }

    /// Number of evaluation keys that a client makes.
    #[getter]
    fn n_keys(&self) -> usize {
        self.checked().interface().n_keys()
    }

    /// Bytes of a client's evaluation keys in memory.
    #[getter]
    fn key_bytes(&self) -> u64 {
        self.checked().key_bytes()
    }

    /// Bytes of ciphertexts and sums that an evaluation takes at most.
    #[getter]
    fn working_bytes(&self) -> u64 {
        self.checked().peak_bytes()
    }

    /// Bytes of all plaintexts, if all are kept: predicted.
    #[getter]
    fn plaintext_bytes(&self) -> u64 {
        self.checked().spec().prediction.plaintext_bytes
    }

    /// Seconds of an evaluation on one core, plaintexts kept: predicted.
    #[getter]
    fn seconds(&self) -> f64 {
        self.checked().spec().prediction.seconds
    }

    /// The error of a score that is not expected to be exceeded: predicted.
    #[getter]
    fn max_abs_error(&self) -> f64 {
        self.checked().spec().prediction.max_abs_error
    }

    /// Bits between the largest score of the calibration and the deviation of its error; None for a program from a file.
    #[getter]
    fn precision_bits(&self) -> Option<f64> {
        self.inner.built.as_ref().map(|built| built.precision_bits)
    }

    /// The layers in order: name, place (level and sublevel), shape, predicted seconds, rotations, products, bytes, share of
    /// the error.
    #[getter]
    fn layers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let layers: Vec<Value> = report::layers(self.checked())
            .iter()
            .map(|layer| {
                json!({
                    "name": layer.name,
                    "at": layer.at(),
                    "level": layer.level.0,
                    "shape": layer.shape,
                    "ciphertexts": layer.ciphertexts,
                    "seconds": layer.seconds,
                    "rotations": layer.work.rotations,
                    "plaintext_products": layer.work.plaintext_products,
                    "ciphertext_products": layer.work.ciphertext_products,
                    "bytes": layer.bytes(),
                    "error_share": layer.error_share,
                })
            })
            .collect();
        loads(py, &Value::Array(layers))
    }

    /// The figures of `fhec build --report`, as a dictionary; None for a program from a file.
    #[getter]
    fn build_report<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.inner.built.as_ref().map(|built| loads(py, &built.report)).transpose()
    }

    /// The page of `fhec report`: shows itself in a notebook, and `save` writes it.
    fn report<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let inner = self.inner.clone();
        let html = long::run(py, &COMMON, None, move |_| {
            let precision_bits = inner.built.as_ref().map(|built| built.precision_bits);
            let page = Page {
                program: &inner.program,
                stages: None,
                precision_bits,
                measured: None,
                check: None,
                provenance: &[],
            };
            Ok(page.html())
        })?;
        py.import("fhec._results")?.call_method1("Report", (html,))
    }

    /// The scores of samples in the clear, without noise: an array of [samples, scores].
    ///
    /// Takes what `Client.encrypt` takes.
    #[pyo3(signature = (x, *, resize=false))]
    fn predict<'py>(
        &self,
        py: Python<'py>,
        x: &Bound<'py, PyAny>,
        resize: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let given = samples(x, self.wanted(), fit(resize))?;
        let inner = self.inner.clone();
        let rows = long::run(py, &COMMON, None, move |watch| {
            let (n, preprocessing) = (given.len(), &inner.program.spec().input.preprocessing);
            (0..n)
                .map(|i| {
                    watch.tell(Some(i as f64 / n as f64), format!("sample {} of {n}", i + 1));
                    let tensor = given.tensor(i, preprocessing)?;
                    clear_output(&inner.program, &tensor).map_err(|error| Fault::bug(error.to_string()))
                })
                .collect::<Result<Vec<_>, Fault>>()
        })?;
        array(py, &rows, self.n_scores())
    }

    /// Evaluates samples in the clear, with the noise that encryption adds and without it, as `fhec simulate` does. No keys.
    ///
    /// Args:
    ///     x: samples, as `Client.encrypt` takes them.
    ///     y: their true classes, if they are known: whole numbers, or the path of a file of them. A file labels.csv beside
    ///         pictures tells them, too.
    ///     resize: stretch pictures in files to the model's size, if they have another.
    ///     seed: seed of the noise.
    ///     progress: True for a bar, or a function of (fraction, text).
    ///
    /// Returns:
    ///     A `Simulation`: accuracy, agreement with the exact evaluation, errors, and what every layer loses.
    #[pyo3(signature = (x, y=None, *, resize=false, seed=1, progress=None))]
    fn simulate<'py>(
        &self,
        py: Python<'py>,
        x: &Bound<'py, PyAny>,
        y: Option<&Bound<'py, PyAny>>,
        resize: bool,
        seed: u64,
        progress: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let given = samples(x, self.wanted(), fit(resize))?;
        let truth = y.map(|y| labels(y, given.len(), self.n_scores())).transpose()?;
        let inner = self.inner.clone();
        let found = long::run(py, &COMMON, progress, move |watch| {
            simulation::simulation(&inner.program, given, truth, seed, watch)
        })?;
        py.import("fhec._results")?.call_method1("simulation", (loads(py, &found)?,))
    }

    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("fhec._results")?.call_method1("program_html", (slf,))
    }

    fn __repr__(&self) -> String {
        format!(
            "<fhec.Program {}: {} levels, ring degree {}, about {:.1} core-seconds, keys {}{}>",
            self.name(),
            self.levels(),
            self.n(),
            self.seconds(),
            fhe_host::show_bytes(self.key_bytes()),
            if self.is_secure() { "" } else { ", INSECURE" }
        )
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        Ok((slf.get_type().getattr("load")?, (slf.get().to_bytes(slf.py()),)))
    }
}

/// Plain data as Python has it.
pub(crate) fn loads<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    py.import("json")?.call_method1("loads", (value.to_string(),))
}
