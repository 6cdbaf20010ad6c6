//! Program files as inputs of commands.

use std::path::Path;

use fhe_bytecode::{CheckedProgram, codec};

use crate::diagnostics::{Diagnostic, Kind};
use crate::report::Measured;

/// Largest profile that is read.
const MAX_PROFILE_BYTES: u64 = 256 << 20;

/// Largest program file that is read.
const MAX_PROGRAM_BYTES: u64 = 4 << 30;

/// Reads and checks a program.
pub(super) fn read_program(path: &Path) -> Result<CheckedProgram, Diagnostic> {
    let cannot = |why: String| Diagnostic::new(Kind::Cannot, format!("{}: {why}", path.display()));
    let size = std::fs::metadata(path).map_err(|e| cannot(format!("cannot be read: {e}")))?.len();
    if size > MAX_PROGRAM_BYTES {
        return Err(cannot(format!("{size} bytes is more than a program may have")));
    }
    let bytes = std::fs::read(path).map_err(|e| cannot(format!("cannot be read: {e}")))?;
    codec::decode(&bytes, MAX_PROGRAM_BYTES).map_err(|e| cannot(e.to_string()))
}

/// The profile at a path, if one is given, of a program.
pub(super) fn read_profile(
    path: Option<&Path>,
    program: &CheckedProgram,
) -> Result<Option<Measured>, Diagnostic> {
    let Some(path) = path else { return Ok(None) };
    let cannot = |why: String| Diagnostic::new(Kind::Cannot, format!("{}: {why}", path.display()));
    let size = std::fs::metadata(path).map_err(|e| cannot(format!("cannot be read: {e}")))?.len();
    if size > MAX_PROFILE_BYTES {
        return Err(cannot(format!("{size} bytes is more than a profile may have")));
    }
    let json = std::fs::read(path).map_err(|e| cannot(format!("cannot be read: {e}")))?;
    Measured::new(&json, program).map(Some).map_err(|e| {
        cannot(e.to_string())
            .with_help("measure the same program with `fhe-run bench model.fhebc --profile profile.json`")
    })
}
