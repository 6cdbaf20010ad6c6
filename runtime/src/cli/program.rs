//! Loading a program, and the gate for insecure ones.

use std::path::{Path, PathBuf};

use fhe_bytecode::codec::{DEFAULT_LIMIT, decode, program_fingerprint};
use fhe_bytecode::{CheckedProgram, Fingerprint, Params};
use fhe_files::{Expected, Role};

use super::complain;
use super::error::CliError;

/// A program with the file it came from.
pub(crate) struct Program {
    pub path: PathBuf,
    pub checked: CheckedProgram,
    pub fingerprint: Fingerprint,
}

impl Program {
    /// Reads and checks a program file; warns if its parameters are insecure.
    pub(crate) fn load(path: &Path) -> Result<Self, CliError> {
        let read = |cause| CliError::ReadProgram { path: path.to_path_buf(), cause };
        let bytes = fhe_host::read_bounded(path, DEFAULT_LIMIT).map_err(read)?;
        let wrong = |cause| CliError::Program { path: path.to_path_buf(), cause };
        let checked = decode(&bytes, DEFAULT_LIMIT).map_err(wrong)?;
        let fingerprint = program_fingerprint(&bytes).unwrap_or(Fingerprint([0; 32]));
        if let Some(reason) = insecurity(checked.params()) {
            complain(&format!("warning: {}: {reason}", path.display()));
        }
        Ok(Self { path: path.to_path_buf(), checked, fingerprint })
    }

    /// Refuses insecure parameters unless the flag is given.
    pub(crate) fn check_security(&self, insecure_flag: bool) -> Result<(), CliError> {
        match insecurity(self.checked.params()) {
            Some(reason) if !insecure_flag => Err(CliError::Insecure { path: self.path.clone(), reason }),
            _ => Ok(()),
        }
    }

    /// What the files of encrypted inputs have to look like.
    pub(crate) fn expected_input(&self) -> Expected {
        let input = &self.checked.spec().input;
        Expected {
            program: self.fingerprint,
            role: Role::Input,
            n_ciphertexts: self.checked.input_layout().n_cts(),
            level: input.level,
            scale: input.scale,
        }
    }

    /// What the files of encrypted results have to look like.
    pub(crate) fn expected_result(&self) -> Expected {
        Expected {
            program: self.fingerprint,
            role: Role::Result,
            n_ciphertexts: self.checked.output_layout().n_cts(),
            level: self.checked.output_level(),
            scale: self.checked.output_scale(),
        }
    }
}

/// Why parameters are below the bar, if they are.
pub(crate) fn insecurity(params: &Params) -> Option<String> {
    if params.is_secure() {
        return None;
    }
    Some(match params.security_cap() {
        None => format!("INSECURE: a toy ring of degree 2^{} protects nothing", params.log_n()),
        Some(cap) => format!(
            "INSECURE: log2(PQ) = {:.1} exceeds the 128-bit bound of {cap} at N = 2^{}",
            params.log2_pq(),
            params.log_n()
        ),
    })
}
