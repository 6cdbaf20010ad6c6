//! `fhec report`: a page about a model or a program.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use fhe_bytecode::{CheckedProgram, codec};
use fhe_host::Text;

use super::Outcome;
use super::build::{Options, Progress};
use super::output::{check_output, write_atomically};
use super::program::{read_profile, read_program};
use crate::diagnostics::{Diagnostic, Kind, Words};
use crate::report::{Page, Recorder, precision_bits};

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
    /// A line for the page: who made it, when, what for
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    #[command(flatten)]
    options: Options,
}

impl Args {
    /// How the page is made. Without a date, so that the same command makes the same page; `--note` has room for one.
    fn provenance(&self, program: &CheckedProgram, models: &[PathBuf]) -> Vec<(&'static str, String)> {
        let command: Vec<String> = std::env::args().skip(1).collect();
        let mut rows = vec![("command", format!("fhec {}", command.join(" ")))];
        rows.extend(self.note.iter().map(|note| ("note", note.clone())));
        // They were read a moment ago; one that is gone since then has no hash to show.
        let hashes = models.iter().filter_map(|path| Some((path, blake3::hash(&std::fs::read(path).ok()?))));
        rows.extend(hashes.map(|(path, hash)| ("model, BLAKE3", format!("{hash} {}", path.display()))));
        let program = codec::program_fingerprint(&codec::encode(program));
        rows.extend(program.map(|fingerprint| ("program", fingerprint.to_string())));
        rows.push(("made by", format!("fhec {}", env!("CARGO_PKG_VERSION"))));
        rows
    }
}

pub(super) fn run(args: &Args, quiet: bool) -> Outcome {
    check_output(&args.output, fhe_diagnostics::text(Text::Html)).map_err(|d| vec![d])?;
    let mut progress = Progress::new(quiet, false);
    let written = page(args, &mut progress)
        .and_then(|html| write_atomically(&args.output, fhe_diagnostics::text(Text::Html), html.as_bytes()));
    progress.finish();
    written.map_err(|d| vec![d])?;
    if !quiet {
        eprintln!("{}: open it in a browser", args.output.display());
    }
    Ok(())
}

fn page(args: &Args, progress: &mut Progress) -> Result<String, Diagnostic> {
    if is_program(&args.models[0]) {
        if args.models.len() > 1 {
            return Err(Diagnostic::new(Kind::Usage, "a report is about one program"));
        }
        let program = read_program(&args.models[0])?;
        let measured = read_profile(args.profile.as_deref(), &program)?;
        let provenance = args.provenance(&program, &[]);
        let page = Page {
            program: &program,
            stages: None,
            precision_bits: None,
            measured: measured.as_ref(),
            check: None,
            provenance: &provenance,
        };
        return Ok(page.html());
    }
    let mut recorder = Recorder::new(progress);
    let compiled = args.options.compile(&args.models, &mut recorder)?;
    let name = || args.models[0].display().to_string();
    let stages = recorder.finish().map_err(|error| Diagnostic::pass(&name(), &error))?;
    let built = &compiled.built;
    let measured = read_profile(args.profile.as_deref(), &built.program)?;
    let provenance = args.provenance(&built.program, &args.models);
    let page = Page {
        program: &built.program,
        stages: Some(&stages),
        precision_bits: Some(precision_bits(built)),
        measured: measured.as_ref(),
        check: Some(&compiled.check),
        provenance: &provenance,
    };
    Ok(page.html())
}

/// Whether a file begins like a program.
fn is_program(path: &Path) -> bool {
    let mut start = [0; codec::MAGIC.len()];
    File::open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok() && start == codec::MAGIC
}
