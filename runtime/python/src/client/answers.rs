//! What results say, in words and in the model's own outputs.

use fhe_client::{Content, Named, SCORES_WARNING, Told};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Warns of what is not to be trusted, and of scores themselves where they are asked for.
pub(super) fn warn(py: Python<'_>, told: &[Told], has_scores: bool) -> PyResult<()> {
    let errors = py.import("fhec._errors")?;
    for (i, told) in told.iter().enumerate() {
        for doubt in &told.doubts {
            errors.call_method1("doubt", (format!("sample {i}: {doubt}"),))?;
        }
    }
    if has_scores {
        errors.call_method1("secret", (SCORES_WARNING,))?;
    }
    Ok(())
}

/// Results as a list of `fhec.Answer`.
pub(super) fn all(py: Python<'_>, told: Vec<Told>) -> PyResult<Bound<'_, PyAny>> {
    told.into_iter().map(|told| shown(py, told)).collect::<PyResult<Vec<_>>>()?.into_pyobject(py)
}

/// One result as `fhec.Answer`.
fn shown<'py>(py: Python<'py>, told: Told) -> PyResult<Bound<'py, PyAny>> {
    let outputs = PyDict::new(py);
    for output in &told.outputs {
        outputs.set_item(&output.name, content(py, output)?)?;
    }
    let (index, label) = told.class.unzip();
    let array = |scores: Vec<f64>| py.import("numpy")?.call_method1("array", (scores,));
    let fields = PyDict::new(py);
    fields.set_item("label", label)?;
    fields.set_item("index", index)?;
    fields.set_item("confidence", told.confidence)?;
    fields.set_item("is_undecided", told.is_undecided)?;
    fields.set_item("doubts", pyo3::types::PyTuple::new(py, told.doubts)?)?;
    fields.set_item("scores", told.scores.map(array).transpose()?)?;
    fields.set_item("outputs", outputs)?;
    py.import("fhec._results")?.getattr("Answer")?.call((), Some(&fields))
}

/// Names of classes, or numbers in the shape that they have in the model.
fn content<'py>(py: Python<'py>, output: &Named) -> PyResult<Bound<'py, PyAny>> {
    match &output.content {
        Content::Classes { names, .. } => Ok(names.into_pyobject(py)?.into_any()),
        Content::Numbers { values, .. } => {
            let array = py.import("numpy")?.call_method1("array", (values.clone(),))?;
            match output.dims.iter().product::<usize>() == values.len() && !output.dims.is_empty() {
                true => array.call_method1("reshape", (output.dims.clone(),)),
                false => Ok(array),
            }
        }
    }
}
