//! Program files as inputs of commands.

use std::path::Path;

use fhe_bytecode::CheckedProgram;
use fhe_bytecode::codec;
use fhe_diagnostics::remedy;

use crate::diagnostics::{Diagnostic, Kind};
use crate::report::Measured;

/// Largest profile that is read.
const MAX_PROFILE_BYTES: u64 = 256 << 20;

/// Reads and checks a program.
pub(super) fn read_program(path: &Path) -> Result<CheckedProgram, Diagnostic> {
    let cannot = |why: String| Diagnostic::new(Kind::Cannot, format!("{}: {why}", path.display()));
    let bytes = fhe_host::read_bounded(path, codec::DEFAULT_LIMIT)
        .map_err(|e| cannot(format!("cannot be read: {e}")).with_help(remedy::READ))?;
    codec::decode(&bytes, codec::DEFAULT_LIMIT)
        .map_err(|e| cannot(e.to_string()).with_help(remedy::program(&e)))
}

/// The profile at a path, if one is given, of a program.
pub(super) fn read_profile(
    path: Option<&Path>,
    program: &CheckedProgram,
) -> Result<Option<Measured>, Diagnostic> {
    let Some(path) = path else { return Ok(None) };
    let cannot = |why: String| Diagnostic::new(Kind::Cannot, format!("{}: {why}", path.display()));
    let json = fhe_host::read_bounded(path, MAX_PROFILE_BYTES)
        .map_err(|e| cannot(format!("cannot be read: {e}")))?;
    if json.len() as u64 > MAX_PROFILE_BYTES {
        return Err(cannot(format!("more than the {MAX_PROFILE_BYTES} bytes that a profile may have")));
    }
    Measured::new(&json, program).map(Some).map_err(|e| {
        cannot(e.to_string())
            .with_help("measure the same program with `fhe-run bench model.fhebc --profile profile.json`")
    })
}
