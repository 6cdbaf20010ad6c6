//! What a client needs of a program.

use std::io::Cursor;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use fhe_bytecode::Port;
use fhe_bytecode::codec::{self, INTERFACE_MAGIC};
use fhe_ckks::{Context, key_request};
use fhe_files::{
    Expected, Form, ciphertexts_len, decode_ciphertexts, encode_ciphertexts, evaluation_keys_len, read_role,
};
use fhe_host::Content;
use fhe_runtime::join::{self, JoinError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::ciphertexts::{Ciphertexts, bytes_of};
use crate::fault::{Class, Fault};
use crate::long;
use crate::names::program_name;
use crate::paths::{Source, write, wrong_type};
use crate::samples::{Wanted, array, fit, samples};
use crate::threads::COMMON;

/// What a client needs of a program: parameters, input and output, the list of keys. No weights.
///
/// Read one with `Interface.load`, or take it from a program: `program.interface`.
#[pyclass(frozen, module = "fhec")]
pub(crate) struct Interface {
    pub(crate) inner: Arc<fhe_bytecode::Interface>,
    context: OnceLock<Arc<Context>>,
}

impl Interface {
    pub(crate) fn new(inner: fhe_bytecode::Interface, context: Option<Arc<Context>>) -> Self {
        let place = OnceLock::new();
        if let Some(context) = context {
            let _ = place.set(context);
        }
        Self { inner: Arc::new(inner), context: place }
    }

    /// The tables of its parameters, made on first use.
    pub(crate) fn context(&self) -> Result<Arc<Context>, Fault> {
        if let Some(context) = self.context.get() {
            return Ok(context.clone());
        }
        let made = Context::new(self.inner.params().clone())?;
        Ok(self.context.get_or_init(|| made).clone())
    }
}

#[pymethods]
impl Interface {
    /// Reads an interface from a .fhei or .fhebc file, or from their bytes.
    #[staticmethod]
    fn load(source: &Bound<'_, PyAny>) -> PyResult<Self> {
        let source = Source::new(source).ok_or_else(|| wrong_type("source", source, "a path or bytes"))?;
        let name = source.name();
        let bytes = source.read(codec::DEFAULT_LIMIT)?;
        let inner = codec::read_interface(Cursor::new(bytes), codec::DEFAULT_LIMIT)
            .map_err(|error| Fault::decode(&name, &error))?;
        Ok(Self::new(inner, None))
    }

    /// Writes a .fhei file, as `fhec interface` does.
    fn save(&self, path: PathBuf) -> PyResult<()> {
        Ok(write(&path, Content::Magic(&INTERFACE_MAGIC), &codec::encode_interface(&self.inner))?)
    }

    /// The bytes of a .fhei file.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &codec::encode_interface(&self.inner))
    }

    /// Fingerprint of the program that it belongs to.
    #[getter]
    fn program(&self) -> String {
        program_name(self.inner.program())
    }

    /// Channels, height and width of a sample.
    #[getter]
    fn input_shape(&self) -> (usize, usize, usize) {
        let shape = self.inner.input_layout().shape();
        (shape.channels as usize, shape.height as usize, shape.width as usize)
    }

    /// Number of scores of a sample.
    #[getter]
    fn n_scores(&self) -> usize {
        self.inner.output_layout().shape().len()
    }

    /// The model's inputs: name and shape of each, the batch of one included. Empty where it has one of `input_shape`.
    #[getter]
    fn inputs(&self) -> Vec<(String, Vec<u32>)> {
        described(&self.inner.input().ports)
    }

    /// The model's outputs whose numbers are the scores, in their order: name and shape of each. Empty where there is one of
    /// `n_scores`.
    #[getter]
    fn outputs(&self) -> Vec<(String, Vec<u32>)> {
        described(&self.inner.output().ports)
    }

    /// Names of the classes; empty where the program tells none.
    #[getter]
    fn labels(&self) -> Vec<String> {
        self.inner.output().labels.clone()
    }

    /// Mean of each channel of pixels from 0 to 1; empty: not normalized.
    #[getter]
    fn mean(&self) -> Vec<f64> {
        self.inner.input().preprocessing.mean.clone()
    }

    /// Deviation of each channel of pixels from 0 to 1; empty: not normalized.
    #[getter]
    fn std(&self) -> Vec<f64> {
        self.inner.input().preprocessing.std.clone()
    }

    /// Ring degree.
    #[getter]
    fn n(&self) -> usize {
        self.inner.params().n()
    }

    /// Whether keys have 128 bits of security.
    #[getter]
    fn is_secure(&self) -> bool {
        self.inner.params().is_secure()
    }

    /// Number of evaluation keys that a client makes.
    #[getter]
    fn n_keys(&self) -> usize {
        self.inner.n_keys()
    }

    /// Bytes of all evaluation keys in memory.
    #[getter]
    fn key_bytes(&self) -> u64 {
        self.inner.key_bytes()
    }

    /// Bytes of a file of evaluation keys, exactly.
    #[getter]
    fn key_file_bytes(&self) -> PyResult<u64> {
        let context = self.context()?;
        let request = key_request(&context, self.inner.as_ref());
        Ok(evaluation_keys_len(context.params(), request.places()))
    }

    /// Bytes of one encrypted sample without a name, exactly.
    #[getter]
    fn input_bytes(&self) -> PyResult<u64> {
        Ok(ciphertexts_len(&*self.context()?, &Expected::input(&self.inner), 1, Form::Seeded))
    }

    /// Bytes of the encrypted scores of one sample without a name, exactly.
    #[getter]
    fn result_bytes(&self) -> PyResult<u64> {
        Ok(ciphertexts_len(&*self.context()?, &Expected::result(&self.inner), 1, Form::Full))
    }

    /// The error of a score that is not expected to be exceeded: the word of whoever wrote the file.
    #[getter]
    fn max_abs_error(&self) -> f64 {
        self.inner.spec().prediction.max_abs_error
    }

    /// Reads samples for the model from files and folders: an array of inputs as the model takes them, normalized, of shape
    /// [samples, channels, height, width] (channels last where the model has them last), and their true classes, or None where
    /// not all are known.
    ///
    /// Args:
    ///     x: a path or a list of paths, of everything that `fhe-run encrypt` reads. A file labels.csv beside pictures tells
    ///         their classes.
    ///     resize: stretch pictures to the model's size, if they have another.
    #[pyo3(signature = (x, *, resize=false))]
    fn read<'py>(
        &self,
        py: Python<'py>,
        x: &Bound<'py, PyAny>,
        resize: bool,
    ) -> PyResult<(Bound<'py, PyAny>, Option<Bound<'py, PyAny>>)> {
        let wanted = Wanted::new(self.inner.input_layout().shape(), self.inner.input());
        let (given, shape) = (samples(x, wanted, fit(resize))?, wanted.shape);
        let preprocessing = &self.inner.input().preprocessing;
        let rows = (0..given.len()).map(|i| given.tensor(i, preprocessing)).collect::<Result<Vec<_>, _>>()?;
        let dims = (given.len(), shape.channels, shape.height, shape.width);
        let mut found = array(py, &rows, shape.n_values())?.call_method1("reshape", (dims,))?;
        if shape.channels_last {
            found = py.import("numpy")?.call_method1("moveaxis", (found, 1, -1))?;
        }
        let classes: Option<Vec<usize>> = (0..given.len()).map(|i| given.label(i)).collect();
        let classes = classes.map(|classes| py.import("numpy")?.call_method1("array", (classes, "int64")));
        Ok((found, classes.transpose()?))
    }

    /// Joins inputs that `Client.encrypt(x, model_input=NAME)` or `fhe-run encrypt --model-input` encrypted one by one, under one
    /// key: a list with one for every input of the model, in any order. Needs no secret.
    fn join(&self, py: Python<'_>, parts: Vec<Bound<'_, PyAny>>) -> PyResult<Ciphertexts> {
        let parts = parts.iter().map(|part| bytes_of("parts", part)).collect::<PyResult<Vec<_>>>()?;
        let (inner, context) = (self.inner.clone(), self.context()?);
        long::run(py, &COMMON, None, move |_| joined(&inner, &context, &parts))
    }

    fn __repr__(&self) -> String {
        let shape = self.inner.input_layout().shape();
        format!(
            "<fhec.Interface of program {}: {shape} to {} scores, ring degree {}, {} keys{}>",
            self.inner.program(),
            self.n_scores(),
            self.n(),
            self.n_keys(),
            if self.is_secure() { "" } else { ", INSECURE" }
        )
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        Ok((slf.get_type().getattr("load")?, (slf.get().to_bytes(slf.py()),)))
    }
}

fn described(ports: &[Port]) -> Vec<(String, Vec<u32>)> {
    ports.iter().map(|port| (port.name.clone(), port.dims.clone())).collect()
}

/// The sum of parts.
fn joined(
    interface: &fhe_bytecode::Interface,
    context: &Context,
    parts: &[Arc<[u8]>],
) -> Result<Ciphertexts, Fault> {
    let name = |index: usize| format!("parts[{index}]");
    let unread = |index: usize| move |error| Fault::format(&name(index), error);
    let refused = |error: JoinError| match error {
        JoinError::Ckks(error) => Fault::from(error),
        error => {
            let about =
                if let JoinError::Part { index, .. } = &error { name(*index) } else { "parts".into() };
            Fault::new(Class::Data, "not-joined", format!("{about}: {error}")).with_remedy(
                "encrypt each of the model's inputs once, with one key and as many samples, and join all of them",
            )
        }
    };
    let read = |(index, bytes): (usize, &Arc<[u8]>)| {
        read_role(Cursor::new(&bytes[..]), bytes.len() as u64).map_err(unread(index))
    };
    let roles = parts.iter().enumerate().map(read).collect::<Result<Vec<_>, _>>()?;
    let inputs = join::inputs_of(&interface.input().ports, &roles).map_err(refused)?;
    let mut sum = None;
    for (index, (bytes, input)) in parts.iter().zip(inputs).enumerate() {
        let expected = Expected::part(interface, input);
        let part = decode_ciphertexts(Cursor::new(&bytes[..]), bytes.len() as u64, context, &expected)
            .map_err(unread(index))?;
        sum = Some(join::joined(context, sum, part, index).map_err(refused)?);
    }
    let sum = sum.ok_or_else(|| refused(JoinError::Missing("of any kind".into())))?;
    let mut bytes = Vec::new();
    encode_ciphertexts(&mut bytes, context, &Expected::input(interface), &sum)
        .map_err(|error| Fault::format("request", error))?;
    Ciphertexts::new(bytes, "request")
}
