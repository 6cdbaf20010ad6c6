//! What stops a command, and its exit code.

use std::path::PathBuf;
use std::process::ExitCode;

use fhe_bytecode::codec::DecodeError;
use fhe_input::InputError;

use crate::ckks::CkksError;
use crate::files::FileError;
use crate::vm::VmError;

/// Errors of the command line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CliError {
    /// A key or ciphertext file.
    #[error(transparent)]
    File(#[from] FileError),
    /// An input image or tensor.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The machine.
    #[error(transparent)]
    Vm(#[from] VmError),
    /// The scheme.
    #[error(transparent)]
    Ckks(#[from] CkksError),
    /// A program file that cannot be read.
    #[error("{}", path.display())]
    ReadProgram {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        cause: std::io::Error,
    },
    /// A program file that is damaged or wrong.
    #[error("{}", path.display())]
    Program {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        cause: DecodeError,
    },
    /// A program whose parameters are below the bar, without the flag.
    #[error("{}: {reason}; add --insecure to use it anyway, on data that needs no protection", path.display())]
    Insecure {
        /// The program.
        path: PathBuf,
        /// How far below.
        reason: String,
    },
    /// A secret key given to the server's side.
    #[error("{} is a secret key: eval needs no secret and does not touch one", path.display())]
    SecretGiven {
        /// The file.
        path: PathBuf,
    },
    /// Raw values asked for in a form that has no other.
    #[error("--format npy writes unrounded values: it needs --raw and --result FILE (see docs/security.md)")]
    NpyNeedsRaw,
    /// Standard output is gone.
    #[error("cannot write the result")]
    Output(#[from] std::io::Error),
    /// The threads cannot be started.
    #[error("cannot start the threads: {0}")]
    Threads(String),
}

impl CliError {
    /// 3 for our bugs, 1 for the rest.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Vm(VmError::Bug(_) | VmError::Instruction { .. }) => ExitCode::from(3),
            _ => ExitCode::from(1),
        }
    }
}
