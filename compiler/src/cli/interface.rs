//! `fhec interface`: the part of a program that clients need, in a file of its own.

use std::fs::File;
use std::path::{Path, PathBuf};

use fhe_bytecode::codec;
use fhe_bytecode::{CheckedProgram, Interface};
use fhe_diagnostics::remedy;
use fhe_host::Content;

use super::Outcome;
use super::output::write_atomically;
use crate::diagnostics::{Diagnostic, Kind};

/// How the names of interface files end.
const EXTENSION: &str = "fhei";

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  fhec interface model.fhebc
  fhec interface model.fhebc -o model.fhei")]
pub(super) struct Args {
    /// Program file
    program: PathBuf,
    /// Interface file to write [default: the program's name, ending in .fhei]
    #[arg(long, short)]
    output: Option<PathBuf>,
}

pub(super) fn run(args: &Args) -> Outcome {
    let interface = read(&args.program).map_err(|d| vec![d])?;
    let output = match &args.output {
        Some(path) => path.clone(),
        None => beside(&args.program).map_err(|d| vec![d])?,
    };
    write(&output, &interface).map_err(|d| vec![d])
}

/// Writes the interface of a program that was just written beside it; nothing beside a pipe or a device.
pub(super) fn write_beside(program_path: &Path, program: &CheckedProgram) -> Result<(), Diagnostic> {
    if !program_path.is_file() {
        return Ok(());
    }
    write(&beside(program_path)?, &program.interface())
}

/// The name of the interface of a program file.
pub(super) fn beside(program: &Path) -> Result<PathBuf, Diagnostic> {
    let path = program.with_extension(EXTENSION);
    if path == program {
        let what = format!("{}: interfaces end in .{EXTENSION}, and programs in .fhebc", program.display());
        return Err(Diagnostic::new(Kind::Usage, what).with_help("give the program another name"));
    }
    Ok(path)
}

fn write(path: &Path, interface: &Interface) -> Result<(), Diagnostic> {
    let bytes = codec::encode_interface(interface);
    write_atomically(path, Content::Magic(&codec::INTERFACE_MAGIC), &bytes)
}

fn read(path: &Path) -> Result<Interface, Diagnostic> {
    let cannot = |why: String| Diagnostic::new(Kind::Cannot, format!("{}: {why}", path.display()));
    let file =
        File::open(path).map_err(|e| cannot(format!("cannot be read: {e}")).with_help(remedy::READ))?;
    codec::read_interface(file, codec::DEFAULT_LIMIT)
        .map_err(|e| cannot(e.to_string()).with_help(remedy::program(&e)))
}
