//! `fhec inspect`: what is in a program file.

use std::fmt::Write;
use std::path::PathBuf;

use fhe_bytecode::{CheckedProgram, Interval};
use fhe_host::show_bytes;

use super::Outcome;
use super::output::print;
use super::program::read_program;
use crate::diagnostics::Diagnostic;

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Form {
    /// Parameters, layers and instructions for people
    Text,
    /// Everything but the constants, for other programs
    Json,
    /// Everything, to edit and read back
    Ron,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  fhec inspect model.fhebc
  fhec inspect model.fhebc --format ron > model.ron")]
pub(super) struct Args {
    /// Program file
    program: PathBuf,
    /// How to write it
    #[arg(long, value_enum, default_value_t = Form::Text)]
    format: Form,
}

pub(super) fn run(args: &Args) -> Outcome {
    let program = read_program(&args.program).map_err(|d| vec![d])?;
    let bug = |e: String| vec![Diagnostic::bug(format!("the program cannot be printed: {e}"))];
    let text = match args.format {
        Form::Text => text(&program),
        Form::Json => {
            let mut value = serde_json::to_value(program.spec()).map_err(|e| bug(e.to_string()))?;
            if let Some(fields) = value.as_object_mut() {
                fields.remove("constants");
            }
            serde_json::to_string_pretty(&value).map_err(|e| bug(e.to_string()))?
        }
        Form::Ron => program.spec().to_ron().map_err(|e| bug(e.to_string()))?,
    };
    print(&text)
}

/// Parameters, then the instructions with what they define, layer by layer.
fn text(program: &CheckedProgram) -> String {
    let (spec, params) = (program.spec(), program.params());
    let bits = |primes: &[u64]| {
        primes.iter().map(|&p| format!("{:.1}", (p as f64).log2())).collect::<Vec<_>>().join(" ")
    };
    let mut out = format!(
        "N = {}, log2(Q) = {:.1}, log2(PQ) = {:.1}{}\ntowers (bits) {}\nspecial primes (bits) {}, {} towers per digit\n",
        params.n(),
        params.log2_q(),
        params.log2_pq(),
        if params.is_secure() { ", 128-bit security" } else { ", NOT SECURE" },
        bits(params.towers()),
        bits(params.special_primes()),
        params.digit_size(),
    );
    let input = program.input_layout();
    let _ = writeln!(
        out,
        "input {:?} {} in {} ciphertext(s) at {} scale {}",
        spec.input.name,
        input.shape(),
        input.n_cts(),
        spec.input.level,
        spec.input.scale
    );
    let output = program.output_layout();
    let _ = writeln!(
        out,
        "output {:?} {} in {} ciphertext(s) at {} scale {}",
        spec.output.name,
        output.shape(),
        output.n_cts(),
        program.output_level(),
        program.output_scale()
    );
    let _ = writeln!(
        out,
        "rotation keys {}, constants {}, keys of {}, ciphertexts and sums of {}",
        spec.rotation_keys.len(),
        spec.constants.tensors.len(),
        show_bytes(program.key_bytes()),
        show_bytes(program.peak_bytes()),
    );
    let range = |range: Option<Interval>| range.map_or("unknown".to_owned(), |range| range.to_string());
    let _ = writeln!(
        out,
        "the file claims: model {:?} by {:?}, {:?} layout, inputs in {}, scores in {}, {:.2} core-seconds, errors below {:.2e}",
        spec.origin.model,
        spec.origin.producer,
        spec.origin.packing,
        range(spec.input.range),
        range(spec.output.range),
        spec.prediction.seconds,
        spec.prediction.max_abs_error,
    );
    let mut layer = None;
    for step in program.steps() {
        let instruction = step.instruction;
        if layer != Some(instruction.layer) {
            layer = Some(instruction.layer);
            let _ = writeln!(out, "\n{}", spec.layers[instruction.layer.index()].name.escape_debug());
        }
        let _ = write!(out, "  {instruction}");
        if let Some(fact) = step.result {
            let _ = write!(
                out,
                " : {} @{} scale={}",
                program.layout(fact.layout).shape(),
                fact.level,
                fact.scale
            );
        }
        out.push('\n');
    }
    out
}
