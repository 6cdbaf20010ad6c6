//! The `fhec` command: the compiler's command line, joined with what it does not know itself.
//!
//! The compiler links no code for secret keys. A build ends with an encrypted evaluation all the same, so the command brings
//! one along: keys are made, used once and forgotten here.

#![forbid(unsafe_code)]

use fhe_bytecode::CheckedProgram;
use fhe_runtime::Trial;
use fhec::{RehearsalError, Rehearse};

fn main() -> std::process::ExitCode {
    fhec::cli::main(&ThrowAwayKeys, ORIGINAL)
}

/// Evaluates models as they were exported.
#[cfg(feature = "oracle")]
const ORIGINAL: Option<fhec::levels::OpenOriginal> =
    Some(|path, imported| Ok(Box::new(fhec_oracle::Oracle::from_file(path, imported)?)));
#[cfg(not(feature = "oracle"))]
const ORIGINAL: Option<fhec::levels::OpenOriginal> = None;

/// Evaluates under keys that nobody keeps.
struct ThrowAwayKeys;

impl Rehearse for ThrowAwayKeys {
    fn scores(
        &self,
        program: &CheckedProgram,
        input: &[f64],
        memory: u64,
    ) -> Result<Vec<f64>, RehearsalError> {
        Trial::once(program, input, memory).map_err(RehearsalError::new)
    }
}
