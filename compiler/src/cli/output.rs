//! What commands write: files and a summary of a build.

use std::fmt::Write as _;
use std::path::Path;

use fhe_bytecode::text::{harmless_json, harmless_lines};
use fhe_bytecode::{CheckedProgram, InputSpec, Preprocessing};
use fhe_diagnostics::remedy;
use fhe_host::{Content, WriteError, check_target, show_bytes, write_whole};
use fhec_ir::Shape;

use super::Outcome;
use crate::approximate::Approximation;
use crate::diagnostics::{Diagnostic, Kind};
use crate::report::{BuildReport, ClusterReport, Estimate};
use crate::simulate::{Fullest, Summary};
use crate::{Rehearsal, SelfCheck};

/// How a command writes what it found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Form {
    /// For people
    Text,
    /// For other programs
    Json,
}

/// Writes a result to standard output; what a terminal would obey is spelled out.
pub(super) fn print(text: &str) -> Outcome {
    write_out(&harmless_lines(text))
}

fn write_out(text: &str) -> Outcome {
    fhe_host::print(&format!("{}\n", text.trim_end())).map_err(|e| {
        let found = Diagnostic::new(Kind::Cannot, format!("the result cannot be written: {e}"));
        vec![found.with_help(remedy::OUTPUT)]
    })
}

/// Writes a value to standard output as JSON.
pub(super) fn print_json(value: &impl serde::Serialize) -> Outcome {
    let json = serde_json::to_string_pretty(value)
        .map_err(|e| vec![Diagnostic::bug(format!("the result cannot be printed: {e}"))])?;
    write_out(&harmless_json(&json))
}

/// Writes a file that is there completely or not at all.
pub(super) fn write_atomically(path: &Path, content: Content, bytes: &[u8]) -> Result<(), Diagnostic> {
    write_whole(path, content, |file| Ok(file.write_all(bytes)?)).map_err(|error| not_written(path, &error))
}

/// Refuses an output before the work for it is done.
pub(super) fn check_output(path: &Path, content: Content) -> Result<(), Diagnostic> {
    check_target(path, content).map_err(|error| not_written(path, &error))
}

fn not_written(path: &Path, error: &WriteError) -> Diagnostic {
    Diagnostic::new(Kind::Cannot, format!("{}: {error}", path.display())).with_help(remedy::write(error))
}

pub(super) fn summary(report: &BuildReport, path: &Path) -> String {
    let security = match (report.secure, report.security_margin_bits) {
        (true, Some(margin)) => format!("128-bit security, {margin:.1} bits below the bound"),
        (false, Some(margin)) => format!("WARNING: {:.0} bits beyond the 128-bit bound: not secure", -margin),
        _ => "WARNING: a toy ring, protects nothing".to_owned(),
    };
    format!(
        "{}: {} levels, N = {}, log2(PQ) = {:.0}, {security}\n\
         {} layout, {} rotation keys ({} in memory), plaintexts {}\n\
         expected error {:.2e} (deviation), {:.1} bits below the largest score\n",
        path.display(),
        report.levels,
        report.n,
        report.log2_pq,
        report.layout,
        report.rotation_keys,
        show_bytes(report.key_bytes),
        show_bytes(report.plaintext_bytes),
        report.predicted_error,
        report.predicted_precision_bits,
    )
}

/// What the program does to the inputs it was calibrated on: what these were, and everything that is not as it should be.
pub(super) fn self_check(check: &SelfCheck) -> Vec<String> {
    let SelfCheck { inputs, undecided, summary, .. } = check;
    let Summary { samples, changed_classes, near_samples, wrapped_samples, .. } = summary;
    let (what, remedy) = match check.is_real {
        true => ("calibration images", "ask for more with `--precision`"),
        false => {
            ("made-up pictures", "calibrate with `--calibrate IMAGES`, or ask for more with `--precision`")
        }
    };
    let mut lines = Vec::new();
    match check.is_real {
        true if samples < inputs => lines.push(format!(
            "note: values were measured on all {inputs} {what}, noise was simulated on {samples}; \
             the classes of the others are ahead by more than 1.5 error bounds"
        )),
        true => lines.push(format!("note: values were measured on all {inputs} {what}")),
        false => lines.push(
            "note: values were measured on made-up pictures; `--calibrate IMAGES` measures them on real ones"
                .to_owned(),
        ),
    }
    if *changed_classes > 0 {
        lines.push(format!(
            "warning: simulated noise changes the class of {changed_classes} of {inputs} {what}; {remedy}"
        ));
    }
    // Some are close calls in every data set; where most are, the bound is of no use. Made-up pictures have no class.
    if check.is_real && 2 * undecided > *inputs {
        lines.push(format!(
            "warning: the best class of {undecided} of {inputs} {what} is ahead by less than twice the error bound, so that \
             results come out undecided; {remedy}, or leave out images that lead far from the others"
        ));
    }
    if let (true, Some(Fullest { layer, bits_left })) = (*near_samples > 0, &check.summary.fullest) {
        lines.push(format!(
            "warning: {near_samples} of {inputs} {what} come within one bit of a modulus, {wrapped_samples} of them wrap around: \
             layer {layer} has {bits_left:.1} bits left"
        ));
    }
    lines
}

/// What becomes of pixels where neither the model nor the user tells their mean and deviation; nothing for models whose input
/// no picture can be.
pub(super) fn unknown_statistics(input: &InputSpec, shape: Shape) -> Option<String> {
    let Preprocessing { mean, std } = &input.preprocessing;
    let n_inputs = input.ports.iter().filter(|port| (port.offset as usize) < shape.len()).count();
    let is_picture = n_inputs <= 1 && [1, 3].contains(&shape.c) && shape.h > 1 && shape.w > 1;
    (is_picture && mean.is_empty() && std.is_empty()).then(|| {
        "note: the model tells no mean and deviation of its pixels: pictures are encrypted as numbers from 0 to 1; \
         give `--mean` and `--std` if it was trained on normalized ones"
            .to_owned()
    })
}

/// What came of the encrypted evaluation at the end of a build, or why there was none.
pub(super) fn rehearsed_note(rehearsal: Option<&Rehearsal>, is_unwanted: bool) -> String {
    match (rehearsal, is_unwanted) {
        (Some(rehearsal), _) => format!("note: evaluated under encryption: {}", rehearsed_words(rehearsal)),
        (None, true) => "note: not evaluated under encryption, as asked for".to_owned(),
        (None, false) => {
            "note: not evaluated under encryption, which takes more than some seconds; `fhe-run demo` does it"
                .to_owned()
        }
    }
}

/// An encrypted evaluation in words.
pub(super) fn rehearsed_words(rehearsal: &Rehearsal) -> String {
    let Rehearsal { max_abs_error, predicted_max_abs_error, is_same_class, seconds, .. } = rehearsal;
    let class = if *is_same_class { "same class" } else { "ANOTHER class" };
    format!(
        "largest error {max_abs_error:.2e} (predicted at most {predicted_max_abs_error:.2e}), {class} as in the clear, {seconds:.1} s"
    )
}

/// What clustering did: plaintexts and bytes before and after, and how far the weights of every layer moved.
pub(super) fn clustering(report: &BuildReport) -> String {
    let Some(ClusterReport { clustering, plaintexts, program_bytes_before }) = &report.clustering else {
        return String::new();
    };
    let before = clustering.plaintexts_before.map_or_else(|| "as many".to_owned(), |n| n.to_string());
    let mut text = format!(
        "clustered: {before} distinct plaintexts become {plaintexts}, {program_bytes_before} bytes become {}\n",
        report.program_bytes
    );
    for layer in &clustering.layers {
        let _ = writeln!(
            text,
            "  {:24} {:7} weights, {} codebook(s) of at most {} entries, relative error {:.2e}",
            layer.name, layer.weights, layer.codebooks, layer.entries, layer.relative_error
        );
    }
    text
}

/// What was put in place of functions: a row for every layer, and what it does to the scores.
pub(super) fn approximation(found: &Approximation) -> String {
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    table.set_header(["layer", "function", "range", "degree", "error (rms)", "largest", "near the edge"]);
    for layer in &found.layers {
        table.add_row([
            layer.node.clone(),
            layer.function.clone(),
            format!("{:.2} to {:.2}", layer.low, layer.high),
            layer.degree.to_string(),
            format!("{:.3}", layer.rms_error),
            format!("{:.3}", layer.max_error),
            format!("{:.1} %", 100.0 * layer.near_edge),
        ]);
    }
    let agreement = match found.agreement {
        Some(share) => format!("{:.2} % of {} inputs keep their class", 100.0 * share, found.samples),
        None => format!("{} inputs", found.samples),
    };
    let error = 100.0 * found.score_error;
    format!(
        "approximated:\n{table}\n{agreement}, scores differ by {error:.1} % of their size from the model's\n"
    )
}

/// What `--like` changed: the program beside the one that it would have been.
pub(super) fn otherwise(program: &CheckedProgram, other: &CheckedProgram) -> String {
    let is_same = program.params().fingerprint() == other.params().fingerprint()
        && program.spec().rotation_keys == other.spec().rotation_keys;
    if is_same {
        return "note: built like the other program: its keys serve, and without `--like` they would, too"
            .to_owned();
    }
    let words = |program: &CheckedProgram| {
        let (params, spec, costs) = (program.params(), program.spec(), Estimate::new(program));
        let keys =
            format!("{} rotation keys ({})", spec.rotation_keys.len(), show_bytes(costs.upload_once_bytes));
        let error = spec.prediction.max_abs_error;
        let seconds = costs.core_seconds;
        let (n, bits) = (params.n(), params.log2_q() + params.log2_p());
        format!("N = {n}, log2(PQ) = {bits:.1}, {keys}, {seconds:.2e} core seconds, errors up to {error:.2e}")
    };
    format!(
        "note: built like the other program, whose keys serve: {}\nnote: without `--like` clients would make keys anew: {}",
        words(program),
        words(other)
    )
}
