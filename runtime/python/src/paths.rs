//! Files that are there completely or not at all, and bytes or paths from the user.

use std::path::{Path, PathBuf};

use fhe_host::{Content, Text};
use fhe_runtime::store::write_atomically;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyString};

use crate::fault::{Class, Fault};

/// Bytes, or the name of a file.
pub(crate) enum Source {
    Bytes(Vec<u8>),
    File(PathBuf),
}

impl Source {
    /// What the user gave, if it is one of the two.
    pub(crate) fn new(given: &Bound<'_, PyAny>) -> Option<Self> {
        if let Ok(bytes) = given.downcast::<PyBytes>() {
            return Some(Self::Bytes(bytes.as_bytes().to_vec()));
        }
        if let Ok(bytes) = given.downcast::<PyByteArray>() {
            return Some(Self::Bytes(bytes.to_vec()));
        }
        let is_path = given.is_instance_of::<PyString>() || given.hasattr("__fspath__").unwrap_or(false);
        is_path.then(|| given.extract().ok().map(Self::File)).flatten()
    }

    /// How messages call it.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Bytes(_) => "bytes".to_owned(),
            Self::File(path) => path.display().to_string(),
        }
    }

    /// Its bytes, of a file at most `limit` and one more.
    pub(crate) fn read(self, limit: u64) -> Result<Vec<u8>, Fault> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            Self::File(path) => fhe_host::read_bounded(&path, limit).map_err(|error| {
                Fault::new(
                    Class::File,
                    "file-unreadable",
                    format!("{}: cannot be read: {error}", path.display()),
                )
                .with_remedy("check the name and the permissions of the file")
                .with_fact("file", path.display().to_string())
            }),
        }
    }
}

/// Writes a file that is there completely or not at all.
pub(crate) fn write(path: &Path, content: Content, bytes: &[u8]) -> Result<(), Fault> {
    Ok(write_atomically(path, content, |file| Ok(file.write_all(bytes)?))?)
}

/// What is wrong with an argument of the wrong type.
pub(crate) fn wrong_type(argument: &str, given: &Bound<'_, PyAny>, wanted: &str) -> PyErr {
    let found = given.get_type().name().map_or_else(|_| "something else".to_owned(), |name| name.to_string());
    pyo3::exceptions::PyTypeError::new_err(format!("{argument} is {wanted}, not {found}"))
}

/// Writes a page; it replaces pages only.
#[pyfunction]
pub(crate) fn write_page(path: PathBuf, page: &str) -> PyResult<()> {
    Ok(write(&path, fhe_diagnostics::text(Text::Html), page.as_bytes())?)
}
