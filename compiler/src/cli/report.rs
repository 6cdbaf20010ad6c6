//! `fhec report`: a page about a model or a program.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use fhe_bytecode::codec;
use fhec_ir::Graph;
use fhec_passes::{Pass, PassError, PassRun};

use super::Outcome;
use super::build::{Options, Progress};
use super::output::{check_output, write_atomically};
use super::program::{read_profile, read_program};
use crate::diagnostics::{Diagnostic, Kind, Words};
use crate::import::Imported;
use crate::levels::{LevelsOptions, last_row, partial_rows};
use crate::report::{Page, Stages, precision_bits};
use crate::{Observer, Stage};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  fhec report model.onnx -o report.html
  fhec report model.onnx -o report.html --calibrate images/ --layout packed
  fhec report model.fhebc -o report.html
  fhe-run bench model.fhebc --profile profile.json && fhec report model.fhebc -o report.html --profile profile.json

A model is built in memory, with the options of `fhec build`; a program is shown as it is, so these options change nothing.
The page needs no network and no other file.")]
pub(super) struct Args {
    /// ONNX file (several are an ensemble), or a program file
    #[arg(required = true, value_name = "MODEL")]
    models: Vec<PathBuf>,
    /// HTML file to write
    #[arg(long, short)]
    output: PathBuf,
    /// Show measured times and memory: JSON that `fhe-run bench` or `fhe-run eval` wrote with its `--profile`
    #[arg(long, value_name = "FILE")]
    profile: Option<PathBuf>,
    #[command(flatten)]
    options: Options,
}

pub(super) fn run(args: &Args, quiet: bool) -> Outcome {
    check_output(&args.output, fhe_diagnostics::TEXT).map_err(|d| vec![d])?;
    let mut recorder =
        Recorder { progress: Progress::new(quiet, false), stages: Stages::default(), failed: None };
    let written = page(args, &mut recorder)
        .and_then(|html| write_atomically(&args.output, fhe_diagnostics::TEXT, html.as_bytes()));
    recorder.progress.finish();
    written.map_err(|d| vec![d])?;
    if !quiet {
        eprintln!("{}: open it in a browser", args.output.display());
    }
    Ok(())
}

fn page(args: &Args, recorder: &mut Recorder) -> Result<String, Diagnostic> {
    if is_program(&args.models[0]) {
        if args.models.len() > 1 {
            return Err(Diagnostic::new(Kind::Usage, "a report is about one program"));
        }
        let program = read_program(&args.models[0])?;
        let measured = read_profile(args.profile.as_deref(), &program)?;
        let page =
            Page { program: &program, stages: None, precision_bits: None, measured: measured.as_ref() };
        return Ok(page.html());
    }
    let compiled = args.options.compile(&args.models, recorder)?;
    if let Some(error) = &recorder.failed {
        return Err(Diagnostic::pass(&args.models[0].display().to_string(), error));
    }
    let built = &compiled.built;
    let measured = read_profile(args.profile.as_deref(), &built.program)?;
    let page = Page {
        program: &built.program,
        stages: Some(&recorder.stages),
        precision_bits: Some(precision_bits(built)),
        measured: measured.as_ref(),
    };
    Ok(page.html())
}

/// Keeps the graph on its way, for the page.
struct Recorder {
    progress: Progress,
    stages: Stages,
    failed: Option<PassError>,
}

impl Observer for Recorder {
    fn stage(&mut self, stage: Stage<'_>) {
        self.progress.stage(stage);
    }

    fn fraction(&mut self, done: usize, of: usize) {
        self.progress.fraction(done, of);
    }

    fn imported(&mut self, model: &Imported) {
        self.stages = Stages::imported(&model.graph);
        match partial_rows(&model.graph, &LevelsOptions::default()) {
            Ok(rows) => self.stages.configurations = rows,
            Err(error) => self.failed = Some(error),
        }
    }

    fn passed(&mut self, pass: &dyn Pass, run: &PassRun, graph: &Graph) {
        self.stages.push(run, pass.summary(), graph);
    }

    fn optimized(&mut self, graph: &Graph) {
        self.stages.configurations.push(last_row(graph));
    }
}

/// Whether a file begins like a program.
fn is_program(path: &Path) -> bool {
    let mut start = [0; codec::MAGIC.len()];
    File::open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok() && start == codec::MAGIC
}
