//! Loading a program or its interface, and the gate for insecure ones.

use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fhe_bytecode::codec::{DEFAULT_LIMIT, DecodeError, decode, read_interface};
use fhe_bytecode::{CheckedProgram, Interface, Params};
pub use fhe_client::insecurity;

use super::complain;
use super::error::CliError;

/// A program with the file it came from: what evaluates needs.
pub(crate) struct Program {
    pub path: PathBuf,
    pub checked: CheckedProgram,
    pub interface: Arc<Interface>,
}

/// An interface with the file it came from, which may be a program: what a client needs.
pub(crate) struct Contract {
    pub path: PathBuf,
    pub interface: Arc<Interface>,
}

impl Contract {
    /// Reads and checks the interface of a program; warns if its parameters are insecure.
    pub(crate) fn load(path: &Path) -> Result<Self, CliError> {
        let unreadable = |cause| CliError::ReadProgram { path: path.to_path_buf(), cause };
        let file = std::fs::File::open(path).map_err(unreadable)?;
        let interface = read_interface(BufReader::new(file), DEFAULT_LIMIT).map_err(|cause| match cause {
            DecodeError::Read(kind) => unreadable(kind.into()),
            cause => CliError::Program { path: path.to_path_buf(), cause },
        })?;
        warn(path, interface.params());
        Ok(Self { path: path.to_path_buf(), interface: Arc::new(interface) })
    }

    /// Refuses insecure parameters unless the flag is given.
    pub(crate) fn check_security(&self, insecure_flag: bool) -> Result<(), CliError> {
        check_security(&self.path, self.interface.params(), insecure_flag)
    }
}

impl Program {
    /// Reads and checks a program file; warns if its parameters are insecure.
    pub(crate) fn load(path: &Path) -> Result<Self, CliError> {
        let read = |cause| CliError::ReadProgram { path: path.to_path_buf(), cause };
        let bytes = fhe_host::read_bounded(path, DEFAULT_LIMIT).map_err(read)?;
        let wrong = |cause| CliError::Program { path: path.to_path_buf(), cause };
        let checked = decode(&bytes, DEFAULT_LIMIT).map_err(wrong)?;
        warn(path, checked.params());
        let interface = Arc::new(checked.interface());
        Ok(Self { path: path.to_path_buf(), checked, interface })
    }

    /// Refuses insecure parameters unless the flag is given.
    pub(crate) fn check_security(&self, insecure_flag: bool) -> Result<(), CliError> {
        check_security(&self.path, self.checked.params(), insecure_flag)
    }
}

fn warn(path: &Path, params: &Params) {
    if let Some(reason) = insecurity(params) {
        complain(&format!("warning: {}: {reason}", path.display()));
    }
}

fn check_security(path: &Path, params: &Params, insecure_flag: bool) -> Result<(), CliError> {
    match insecurity(params) {
        Some(reason) if !insecure_flag => Err(CliError::Insecure { path: path.to_path_buf(), reason }),
        _ => Ok(()),
    }
}
