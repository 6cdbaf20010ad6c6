//! What stops a command, and its exit code.

use std::path::PathBuf;
use std::process::ExitCode;

use fhe_bytecode::codec::DecodeError;
use fhe_ckks::CkksError;
use fhe_client::ClientError;
use fhe_input::InputError;
use fhe_machine::VmError;

use crate::store::FileError;
use crate::trial::TrialError;

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
    /// The client's side.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The machine.
    #[error(transparent)]
    Vm(#[from] VmError),
    /// The scheme.
    #[error(transparent)]
    Ckks(#[from] CkksError),
    /// A program file that cannot be read.
    #[error("{}: cannot be read", path.display())]
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
    #[error("{}: {reason}", path.display())]
    Insecure {
        /// The program.
        path: PathBuf,
        /// How far below.
        reason: String,
    },
    /// A secret key given to the server's side.
    #[error("{}: is a secret key, and eval touches no secret", path.display())]
    SecretGiven {
        /// The file.
        path: PathBuf,
    },
    /// Raw values asked for in a form that has no other.
    #[error("--format npy writes unrounded values")]
    NpyNeedsRaw,
    /// One file for two purposes.
    #[error("{}: is given for two purposes", path.display())]
    SameFile {
        /// The file.
        path: PathBuf,
    },
    /// Standard output is gone.
    #[error("cannot write the result")]
    Output(#[from] std::io::Error),
    /// The threads cannot be started.
    #[error("cannot start the threads: {0}")]
    Threads(String),
}

/// What to do about a bug of ours.
pub(crate) const BUG_HELP: &str =
    "this is a bug of fhe-run: please report it with the lines above and the program";

impl CliError {
    /// 3 for our bugs, 2 for the command line, 1 for the rest.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Vm(VmError::Bug(_) | VmError::Instruction { .. }) => ExitCode::from(3),
            Self::NpyNeedsRaw | Self::SameFile { .. } => ExitCode::from(2),
            _ => ExitCode::from(1),
        }
    }

    /// What the user can do about it.
    pub(crate) fn help(&self) -> &'static str {
        match self {
            Self::File(error) => error.kind.help(),
            Self::Input(error) => error.kind.help(),
            Self::Client(ClientError::WrongParameters { .. }) => {
                "make keys for this program with `fhe-run keygen`"
            }
            Self::Client(ClientError::Ckks(_)) => "encrypt values that the model was trained on",
            Self::Client(_) => "encrypt the input for this very program",
            Self::Vm(error) => error.help(),
            Self::Ckks(_) => "check that the machine has randomness, and report it if it has",
            Self::ReadProgram { .. } => "check the name and the permissions of the file",
            Self::Program { cause: DecodeError::NotAProgram, .. } => {
                "give a .fhebc file, as `fhec build` writes it"
            }
            Self::Program { cause: DecodeError::Version(_), .. } => "use a newer release of fhe-run",
            Self::Program { .. } => "copy the program again, or compile the model again with `fhec build`",
            Self::Insecure { .. } => "add --insecure to use it anyway, on data that needs no protection",
            Self::SecretGiven { .. } => {
                "give the evaluation keys (--eval-keys), and keep the secret key with the client"
            }
            Self::NpyNeedsRaw => "add --raw and --result FILE (see docs/security.md)",
            Self::SameFile { .. } => "give every file a name of its own",
            Self::Output(_) => "check where standard output goes and the space left there",
            Self::Threads(_) => "ask for fewer threads, or raise the limits of this process",
        }
    }
}

impl From<TrialError> for CliError {
    fn from(error: TrialError) -> Self {
        match error {
            TrialError::Client(error) => Self::Client(error),
            TrialError::Vm(error) => Self::Vm(error),
            TrialError::Ckks(error) => Self::Ckks(error),
        }
    }
}
