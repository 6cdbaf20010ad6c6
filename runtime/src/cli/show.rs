//! Showing decrypted results: rounded top classes by default, everything only when asked for.

use std::path::Path;

use fhe_bytecode::Interface;
use fhe_host::Content;

use super::args::{ResultFormat, ShowArgs};
use super::error::CliError;
use super::prediction::{Prediction, decimals_for_error, label_of, to_npy};
use super::{complain, print};
use crate::store::write_atomically;

/// Refuses a combination of options before any work is done.
pub(crate) fn check_args(args: &ShowArgs) -> Result<(), CliError> {
    match args.format == ResultFormat::Npy && !(args.raw && args.result_file.is_some()) {
        true => Err(CliError::NpyNeedsRaw),
        false => Ok(()),
    }
}

/// Shows or writes the scores of each input, with its true class where known.
pub(crate) fn show(
    interface: &Interface,
    scores: &[Vec<f64>],
    labels: &[Option<usize>],
    args: &ShowArgs,
) -> Result<(), CliError> {
    if args.raw {
        complain("warning: unrounded decrypted values must never reach the server (docs/security.md)");
    }
    let predictions = predictions(interface, scores, labels, args.top);
    let text = match (args.format, args.raw) {
        (ResultFormat::Text, false) => predictions.iter().map(text).collect::<Vec<_>>().join("\n"),
        (ResultFormat::Text, true) => scores.iter().map(|row| raw_text(row)).collect::<Vec<_>>().join("\n"),
        (ResultFormat::Json, false) => pretty(&serde_json::json!({ "predictions": predictions })),
        (ResultFormat::Json, true) => {
            pretty(&serde_json::json!({ "predictions": predictions, "scores": scores }))
        }
        (ResultFormat::Npy, _) => {
            let path = args.result_file.as_deref().ok_or(CliError::NpyNeedsRaw)?;
            return write(path, Content::Magic(b"\x93NUMPY"), &to_npy(scores)?);
        }
    };
    match &args.result_file {
        Some(path) => write(path, fhe_diagnostics::TEXT, format!("{text}\n").as_bytes()),
        None => print(&text),
    }
}

/// The best classes of each input, rounded to what the predicted error supports.
pub(crate) fn predictions(
    interface: &Interface,
    scores: &[Vec<f64>],
    labels: &[Option<usize>],
    n_top: usize,
) -> Vec<Prediction> {
    let spec = interface.spec();
    let decimals = decimals_for_error(spec.prediction.max_abs_error);
    let one = |(row, label): (&Vec<f64>, &Option<usize>)| {
        let mut prediction = Prediction::new(row, &spec.output.labels, n_top, decimals);
        prediction.expected = label.map(|label| label_of(&spec.output.labels, label));
        prediction
    };
    scores.iter().zip(labels).map(one).collect()
}

/// A table, with the true class below it where known.
pub(crate) fn text(prediction: &Prediction) -> String {
    match &prediction.expected {
        Some(expected) => format!("{}\ntrue class: {expected}", prediction.to_table()),
        None => prediction.to_table(),
    }
}

/// Indented JSON.
pub(crate) fn pretty(value: &serde_json::Value) -> String {
    format!("{value:#}")
}

fn raw_text(row: &[f64]) -> String {
    row.iter().map(f64::to_string).collect::<Vec<_>>().join(",")
}

/// Writes a whole file.
pub(crate) fn write(path: &Path, content: Content, data: &[u8]) -> Result<(), CliError> {
    Ok(write_atomically(path, content, |file| Ok(file.write_all(data)?))?)
}
