//! Program files as inputs of commands.

use std::path::Path;

use fhe_bytecode::{CheckedProgram, codec};

use crate::diagnostics::{Diagnostic, Kind};

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
