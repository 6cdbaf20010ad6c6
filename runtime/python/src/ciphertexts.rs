//! Encrypted inputs and results: the bytes of a ciphertext file.

use std::path::PathBuf;
use std::sync::Arc;

use fhe_files::{Kind, decode_header};
use fhe_host::Content;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::fault::Fault;
use crate::names::key_name;
use crate::paths::{Source, write, wrong_type};

/// Largest file of ciphertexts that is read.
const MAX_BYTES: u64 = 16 << 30;

/// Encrypted inputs or results, as they travel: the bytes of the file that `fhe-run encrypt` or `fhe-run eval` writes.
///
/// `Client.encrypt` makes inputs and `Server.run` results; neither says anything to whoever has no secret key. What is inside is
/// checked where it is used.
#[pyclass(frozen, module = "fhec")]
pub(crate) struct Ciphertexts {
    pub(crate) bytes: Arc<[u8]>,
    key: String,
}

impl Ciphertexts {
    /// Takes bytes that begin as a ciphertext file does; `name` is for messages.
    pub(crate) fn new(bytes: Vec<u8>, name: &str) -> Result<Self, Fault> {
        let header = decode_header(&bytes[..], bytes.len() as u64, Kind::Ciphertexts)
            .map_err(|error| Fault::format(name, error))?;
        Ok(Self { key: key_name(header.key_id), bytes: bytes.into() })
    }
}

/// The bytes of ciphertexts that the user gave, in whatever form.
pub(crate) fn bytes_of(argument: &str, given: &Bound<'_, PyAny>) -> PyResult<Arc<[u8]>> {
    if let Ok(ciphertexts) = given.downcast::<Ciphertexts>() {
        return Ok(ciphertexts.get().bytes.clone());
    }
    let source =
        Source::new(given).ok_or_else(|| wrong_type(argument, given, "Ciphertexts, a path or bytes"))?;
    Ok(source.read(MAX_BYTES)?.into())
}

#[pymethods]
impl Ciphertexts {
    /// Reads a ciphertext file, or its bytes.
    #[staticmethod]
    fn load(source: &Bound<'_, PyAny>) -> PyResult<Self> {
        let source = Source::new(source).ok_or_else(|| wrong_type("source", source, "a path or bytes"))?;
        let name = source.name();
        Ok(Self::new(source.read(MAX_BYTES)?, &name)?)
    }

    /// Writes the file.
    fn save(&self, path: PathBuf) -> PyResult<()> {
        Ok(write(&path, Content::Magic(Kind::Ciphertexts.magic()), &self.bytes)?)
    }

    /// The bytes of the file.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.bytes)
    }

    /// Id of the secret key that they are encrypted under.
    #[getter]
    fn key(&self) -> &str {
        &self.key
    }

    /// Number of bytes.
    #[getter]
    fn nbytes(&self) -> usize {
        self.bytes.len()
    }

    fn __bytes__<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        self.to_bytes(py)
    }

    fn __repr__(&self) -> String {
        format!("<fhec.Ciphertexts under key {}…: {} bytes>", &self.key[..8], self.bytes.len())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        Ok((slf.get_type().getattr("load")?, (slf.get().to_bytes(slf.py()),)))
    }
}
