//! What results say, in words and in the model's own outputs.

use fhe_client::{Answer, Content, Named};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Warns of every score that is not to be trusted.
pub(super) fn warn(py: Python<'_>, answers: &[Answer]) -> PyResult<()> {
    for (i, answer) in answers.iter().enumerate() {
        for doubt in &answer.doubts {
            let text = format!("sample {i}: score {} is {}", doubt.index, doubt.kind);
            py.import("fhec._errors")?.call_method1("doubt", (text,))?;
        }
    }
    Ok(())
}

/// One result as `fhec.Answer`.
pub(super) fn shown<'py>(py: Python<'py>, answer: &Answer) -> PyResult<Bound<'py, PyAny>> {
    let outputs = PyDict::new(py);
    for output in &answer.outputs {
        outputs.set_item(&output.name, content(py, output)?)?;
    }
    let doubts: Vec<String> =
        answer.doubts.iter().map(|doubt| format!("score {} is {}", doubt.index, doubt.kind)).collect();
    let fields = PyDict::new(py);
    fields.set_item("label", &answer.label)?;
    fields.set_item("index", answer.class)?;
    fields.set_item("confidence", answer.confidence)?;
    fields.set_item("is_undecided", answer.is_undecided)?;
    fields.set_item("doubts", pyo3::types::PyTuple::new(py, doubts)?)?;
    fields.set_item("scores", py.import("numpy")?.call_method1("array", (answer.scores.clone(),))?)?;
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
