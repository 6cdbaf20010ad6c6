//! `fhec build`: an ONNX model to a program file.

mod options;
mod progress;

use std::path::PathBuf;

use fhe_bytecode::codec;
use fhe_diagnostics::complain;
use fhe_host::{Content, Text};

pub(super) use self::options::Options;
pub(super) use self::progress::Progress;
use super::Outcome;
use super::output::{
    Form, approximation, check_output, clustering, otherwise, print, print_json, rehearsed_note,
    rehearsed_words, self_check, summary, unknown_statistics, write_atomically,
};
use super::program::read_profile;
use crate::diagnostics::{Diagnostic, Kind};
use crate::import::Note;
use crate::report::{BuildReport, Estimate, cores};
use crate::stages::StageKind;
use crate::{Compiled, Rehearsal, Rehearse};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  fhec build model.onnx -o model.fhebc
  fhec build model.onnx -o model.fhebc --report report.json --calibrate test_batch.bin
  fhec build model.onnx -o model.fhebc --layout hw --sublevels 1
  fhec build model.onnx -o model.fhebc --report report.json --profile profile.json
  fhec build model.onnx -o model.fhebc --mean 0.1307 --std 0.3081 --labels 0,1,2,3,4,5,6,7,8,9
  fhec build model.onnx -o model.fhebc --layout hw --cluster slice --centroids 64
  fhec build member1.onnx member2.onnx member3.onnx -o ensemble.fhebc
  fhec build model.onnx -o model.fhebc --calibrate images.npy --approximate
  fhec build model.onnx -o model.fhebc --model-output probabilities
  fhec build model.onnx -o four.fhebc --batch 4
  fhec build retrained.onnx -o model-2.fhebc --like model.fhebc
  fhec build model.onnx -o toy.fhebc --toy
  fhec build model.onnx -o model.fhebc --print-after scheduled")]
pub(super) struct Args {
    /// ONNX file; several of one architecture become an ensemble whose scores are averaged
    #[arg(required = true)]
    models: Vec<PathBuf>,
    /// Program file to write; beside it goes what clients need of it, ending in .fhei
    #[arg(long, short)]
    output: PathBuf,
    /// Write a report about the program, as JSON
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Put measured times into the report: JSON that `fhe-run bench` wrote for this program with its `--profile`
    #[arg(long, value_name = "FILE")]
    profile: Option<PathBuf>,
    /// Leave out the encrypted evaluation under throw-away keys that a build ends with where it takes a few seconds
    #[arg(long)]
    no_check: bool,
    /// Sum up on standard error, or print the report as JSON
    #[arg(long, value_enum, default_value_t = Form::Text)]
    format: Form,
    /// Print the text form of a stage on standard output (may be repeated)
    #[arg(long, value_enum, value_name = "STAGE", value_delimiter = ',')]
    print_after: Vec<StageKind>,
    /// Price of a core for an hour: says what a thousand images cost
    #[arg(long, value_name = "PRICE", value_parser = super::price)]
    core_hour: Option<f64>,
    #[command(flatten)]
    options: Options,
}

pub(super) fn run(args: &Args, quiet: bool, by: &dyn Rehearse) -> Outcome {
    if args.format == Form::Json && !args.print_after.is_empty() {
        let usage = "--print-after and --format json both write to standard output";
        let help = "write the report with --report FILE";
        return Err(vec![Diagnostic::new(Kind::Usage, usage.to_owned()).with_help(help)]);
    }
    super::memory::check(&args.models).map_err(|d| vec![d])?;
    super::interface::beside(&args.output).map_err(|d| vec![d])?;
    check_output(&args.output, Content::Magic(&codec::MAGIC)).map_err(|d| vec![d])?;
    if let Some(path) = &args.report {
        check_output(path, fhe_diagnostics::text(Text::Json)).map_err(|d| vec![d])?;
    }
    let mut progress = Progress::new(quiet, args.print_after.contains(&StageKind::Circuit));
    let result = args.options.compile(&args.models, &mut progress);
    let rehearsal = match &result {
        Ok(compiled) if !args.no_check && compiled.is_quick() => {
            progress.rehearse();
            rehearsed(compiled, by, args.options.memory()).map(Some)
        }
        _ => Ok(None),
    };
    progress.finish();
    progress.printed?;
    let (compiled, rehearsal) = (result.map_err(|d| vec![d])?, rehearsal.map_err(|d| vec![d])?);
    let built = &compiled.built;
    let bytes = codec::encode(&built.program);
    let mut report = BuildReport::new(&compiled, bytes.len());
    report.rehearsal = rehearsal;
    let measured = read_profile(args.profile.as_deref(), &built.program).map_err(|d| vec![d])?;
    if let Some(measured) = &measured {
        report.compare(measured);
    }
    write_atomically(&args.output, Content::Magic(&codec::MAGIC), &bytes).map_err(|d| vec![d])?;
    super::interface::write_beside(&args.output, &built.program).map_err(|d| vec![d])?;
    if let Some(path) = &args.report {
        let json = serde_json::to_vec_pretty(&report)
            .map_err(|e| vec![Diagnostic::bug(format!("the report cannot be written: {e}"))])?;
        write_atomically(path, fhe_diagnostics::text(Text::Json), &json).map_err(|d| vec![d])?;
    }
    // The circuit was printed as soon as there was one.
    for stage in args.print_after.iter().filter(|stage| **stage != StageKind::Circuit) {
        print(&built.text(*stage))?;
    }
    if args.format == Form::Json {
        return print_json(&report);
    }
    if !quiet {
        let costs = Estimate::new(&built.program).within(args.options.memory());
        let costs = costs.words(cores(), args.core_hour);
        eprint!("{}{costs}{}", summary(&report, &args.output), clustering(&report));
        let is_listed = |note: &&Note| compiled.approximation.is_none() || !note.is_approximation();
        compiled.notes.iter().filter(is_listed).for_each(|note| complain(&format!("note: {note}")));
        if let Some(found) = &compiled.approximation {
            eprint!("{}", approximation(found));
        }
        let shape = compiled.graph.shape(compiled.graph.inputs()[0]);
        if let Some(note) = unknown_statistics(&built.program.spec().input, shape) {
            complain(&note);
        }
        if let Some(other) = args.options.otherwise(&args.models) {
            complain(&otherwise(&built.program, &other.built.program));
        }
        self_check(&compiled.check).iter().for_each(|line| complain(line));
        complain(&rehearsed_note(rehearsal.as_ref(), args.no_check));
    }
    Ok(())
}

/// One encrypted evaluation; a program that does not keep its promise is not written.
fn rehearsed(compiled: &Compiled, by: &dyn Rehearse, memory: u64) -> Result<Rehearsal, Diagnostic> {
    let rehearsal = compiled.rehearse(by, memory).map_err(|error| {
        Diagnostic::bug(format!("the program cannot be evaluated under encryption: {error}"))
    })?;
    match rehearsal.is_passed() {
        true => Ok(rehearsal),
        false => Err(Diagnostic::bug(format!(
            "the program is wrong under encryption: {}",
            rehearsed_words(&rehearsal)
        ))),
    }
}
