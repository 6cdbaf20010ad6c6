//! Evaluation keys: what a server needs of a client, and nothing that decrypts.

use std::path::PathBuf;
use std::sync::Arc;

use fhe_ckks::{Context, EvaluationKeys};
use fhe_files::encode_evaluation_keys;
use fhe_host::Content;
use fhe_runtime::store::write_atomically;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::fault::Fault;
use crate::long;
use crate::names::key_name;
use crate::threads::COMMON;

/// The evaluation keys of a client: they let a server add, multiply and rotate under that client's encryption, and nothing else.
///
/// `Client.eval_keys` makes them, `Server.add_keys` takes them. For keys that do not fit the client's memory there is
/// `Client.save_eval_keys`, which holds one at a time.
#[pyclass(frozen, module = "fhec")]
pub(crate) struct EvalKeys {
    pub(crate) context: Arc<Context>,
    pub(crate) keys: Arc<EvaluationKeys>,
}

#[pymethods]
impl EvalKeys {
    /// Writes the file that `fhe-run keygen` writes. A file that is there already is never replaced.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let (context, keys) = (self.context.clone(), self.keys.clone());
        long::run(py, &COMMON, None, move |_| {
            Ok(write_atomically(&path, Content::New, |file| {
                Ok(encode_evaluation_keys(file, &context, &keys)?)
            })?)
        })
    }

    /// The bytes of that file.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let (context, keys) = (self.context.clone(), self.keys.clone());
        let bytes = long::run(py, &COMMON, None, move |_| {
            let mut bytes = Vec::new();
            encode_evaluation_keys(&mut bytes, &context, &keys)
                .map_err(|error| Fault::format("bytes", error))?;
            Ok(bytes)
        })?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Id of the secret key that they belong to.
    #[getter]
    fn key(&self) -> String {
        key_name(self.keys.id())
    }

    /// Bytes in memory.
    #[getter]
    fn nbytes(&self) -> u64 {
        self.keys.bytes()
    }

    fn __len__(&self) -> usize {
        self.keys.iter().count()
    }

    fn __repr__(&self) -> String {
        format!(
            "<fhec.EvalKeys of key {}…: {} keys, {}>",
            &self.key()[..8],
            self.__len__(),
            fhe_host::show_bytes(self.keys.bytes())
        )
    }
}
