//! Showing decrypted results: the class by default, rounded scores or everything only when asked for.

use std::path::Path;

use fhe_bytecode::Interface;
use fhe_client::{Answer, Outside, Resolution, SCORES_WARNING, label};
use fhe_host::{Content, Text};

use super::args::{ResultFormat, ShowArgs};
use super::error::CliError;
use super::prediction::{Prediction, to_npy};
use super::rows;
use super::{complain, print};
use crate::store::{check_target, write_atomically};

/// Refuses a combination of options before any work is done.
pub(crate) fn check_args(args: &ShowArgs) -> Result<(), CliError> {
    if args.format() == ResultFormat::Npy && !(args.raw && args.result_file.is_some()) {
        return Err(CliError::NpyNeedsRaw);
    }
    match &args.result_file {
        Some(path) => Ok(check_target(path, content(args))?),
        None => Ok(()),
    }
}

/// What a file of results is, and so what it may replace.
fn content(args: &ShowArgs) -> Content {
    match args.format() {
        _ if args.raw => Content::Secret,
        ResultFormat::Json => fhe_diagnostics::text(Text::Json),
        ResultFormat::Text | ResultFormat::Csv | ResultFormat::Npy => fhe_diagnostics::text(Text::Lines),
    }
}

/// What there is to show of one input.
pub(crate) struct Shown<'a> {
    /// Every digit of the scores.
    pub raw: &'a [f64],
    /// The true class, if it is known.
    pub label: Option<usize>,
    /// Name of the sample.
    pub name: Option<&'a str>,
    /// A number of the input that the model was not calibrated on, where the input is known.
    pub outside: Option<Outside>,
}

/// Shows or writes the results of all inputs.
pub(crate) fn show(interface: &Interface, all: &[Shown<'_>], args: &ShowArgs) -> Result<(), CliError> {
    if args.raw {
        complain(
            "warning: unrounded decrypted values give the secret key away to whoever has them and the results: \
             they must never reach the server (docs/security.md)",
        );
    }
    let predictions = predictions(interface, all, args.scores.then_some(args.top));
    if args.scores && !args.raw && args.format() == ResultFormat::Csv {
        // Rows have no place for it.
        complain(&format!("warning: {SCORES_WARNING}"));
    }
    if args.raw && args.format() != ResultFormat::Json {
        // Rows of numbers have no place for them.
        for (i, prediction) in predictions.iter().enumerate() {
            prediction.doubtful().iter().for_each(|words| complain(&format!("warning: result {i}: {words}")));
        }
    }
    let scores = || -> Vec<Vec<f64>> { all.iter().map(|shown| shown.raw.to_vec()).collect() };
    let text = match (args.format(), args.raw) {
        (ResultFormat::Text, false) => {
            predictions.iter().map(Prediction::text).collect::<Vec<_>>().join("\n")
        }
        (ResultFormat::Text, true) => {
            all.iter().map(|shown| raw_text(shown.raw)).collect::<Vec<_>>().join("\n")
        }
        (ResultFormat::Json, false) if !args.scores => {
            pretty(&serde_json::json!({ "predictions": predictions }))
        }
        (ResultFormat::Json, false) => pretty(&serde_json::json!({
            "predictions": predictions,
            "unit": Resolution::of(interface).unit(),
            "warning": SCORES_WARNING,
        })),
        (ResultFormat::Json, true) => pretty(&serde_json::json!({
            "predictions": predictions,
            "scores": scores(),
            "warning": SCORES_WARNING,
        })),
        (ResultFormat::Npy, _) => {
            let path = args.result_file.as_deref().ok_or(CliError::NpyNeedsRaw)?;
            return write(path, content(args), &to_npy(&scores()));
        }
        (ResultFormat::Csv, false) => rows::of(&predictions),
        (ResultFormat::Csv, true) => rows::of_raw(interface, all),
    };
    match &args.result_file {
        Some(path) => write(path, content(args), format!("{text}\n").as_bytes()),
        None => print(&text),
    }
}

/// What is shown of each input; with `n_top` that many classes with their rounded scores.
pub(crate) fn predictions(interface: &Interface, all: &[Shown<'_>], n_top: Option<usize>) -> Vec<Prediction> {
    let one = |shown: &Shown<'_>| {
        let mut prediction = Prediction::new(interface, &Answer::new(interface, shown.raw), n_top);
        prediction.expected = shown.label.map(|class| label(interface, class));
        prediction.name = shown.name.map(str::to_owned);
        prediction.outside_input = shown.outside.map(|outside| outside.to_string());
        prediction
    };
    all.iter().map(one).collect()
}

/// Indented JSON; what a terminal would obey is escaped as JSON escapes it.
pub(crate) fn pretty(value: &serde_json::Value) -> String {
    fhe_bytecode::text::harmless_json(&format!("{value:#}"))
}

fn raw_text(row: &[f64]) -> String {
    row.iter().map(f64::to_string).collect::<Vec<_>>().join(",")
}

/// Writes a whole file.
pub(crate) fn write(path: &Path, content: Content, data: &[u8]) -> Result<(), CliError> {
    Ok(write_atomically(path, content, |file| Ok(file.write_all(data)?))?)
}
