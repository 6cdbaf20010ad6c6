//! Program files as inputs of commands.

use std::path::Path;

use fhe_bytecode::CheckedProgram;
use fhe_bytecode::codec::{self, DecodeError};

use crate::diagnostics::{Diagnostic, Kind};
use crate::report::Measured;

/// Largest profile that is read.
const MAX_PROFILE_BYTES: u64 = 256 << 20;

/// Reads and checks a program.
pub(super) fn read_program(path: &Path) -> Result<CheckedProgram, Diagnostic> {
    let cannot = |why: String| Diagnostic::new(Kind::Cannot, format!("{}: {why}", path.display()));
    let bytes = fhe_host::read_bounded(path, codec::DEFAULT_LIMIT).map_err(|e| {
        cannot(format!("cannot be read: {e}")).with_help("check the name and the permissions of the file")
    })?;
    codec::decode(&bytes, codec::DEFAULT_LIMIT).map_err(|e| {
        cannot(e.to_string()).with_help(match e {
            DecodeError::NotAProgram => "give a .fhebc file, as `fhec build` writes it",
            _ => "copy the program again, or compile the model again with `fhec build`",
        })
    })
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
