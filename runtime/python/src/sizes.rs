//! Numbers of bytes, as people write them, and words of others, as people may see them.

use fhe_host::{parse_bytes, show_bytes};
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::fault::{Class, Fault};

const REMEDY: &str = "give a number of bytes, or a size such as \"4GiB\"";

/// A number of bytes, or a size such as "4GiB".
#[pyfunction]
#[pyo3(name = "parse_bytes")]
pub(crate) fn parse(size: &Bound<'_, PyAny>) -> PyResult<u64> {
    let read = match size.downcast::<PyString>() {
        Ok(text) => parse_bytes(text.to_str()?),
        Err(_) => size.extract::<u64>().map_err(|_| format!("{size} is no number of bytes")),
    };
    Ok(read.map_err(|why| Fault::new(Class::Usage, "option", format!("memory: {why}")).with_remedy(REMEDY))?)
}

/// A number of bytes with a binary unit.
#[pyfunction]
#[pyo3(name = "show_bytes")]
pub(crate) fn show(count: u64) -> String {
    show_bytes(count)
}

/// A text with every character that a terminal would obey written as its number.
#[pyfunction]
pub(crate) fn harmless(text: &Bound<'_, PyString>) -> String {
    fhe_bytecode::text::harmless(&text.to_string_lossy())
}
