//! What stops a command, and its exit code.

use std::path::PathBuf;
use std::process::ExitCode;

use fhe_bytecode::codec::DecodeError;
use fhe_ckks::CkksError;
use fhe_client::ClientError;
use fhe_diagnostics::remedy;
use fhe_host::show_bytes;
use fhe_input::InputError;
use fhe_machine::VmError;

use super::remote::RemoteError;
use crate::store::FileError;
use crate::trial::{Deviation, TrialError};

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
    /// An input that the program does not take.
    #[error("{}: {cause}", path.display())]
    Sample {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: ClientError,
    },
    /// A file of so many samples that nobody can know whether all are meant.
    #[error("{}: holds {n_samples} samples, and --index does not say which are meant", path.display())]
    ManySamples {
        /// The file.
        path: PathBuf,
        /// How many it holds.
        n_samples: usize,
    },
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
    /// A name that is none of the model's inputs.
    #[error("the model has no input {name}: it has {known}")]
    NoSuchInput {
        /// The name.
        name: String,
        /// The model's inputs.
        known: String,
    },
    /// Encrypted inputs that do not make a whole one.
    #[error("{}: {reason}", path.display())]
    NotJoined {
        /// The file that does not fit.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// One file for two purposes.
    #[error("{}: is given for two purposes", path.display())]
    SameFile {
        /// The file.
        path: PathBuf,
    },
    /// Keys that take too much.
    #[error("the evaluation keys take {}, but {why} {}", show_bytes(*needed), show_bytes(*allowed))]
    KeyBytes {
        /// Bytes of the file.
        needed: u64,
        /// Bytes that may be taken.
        allowed: u64,
        /// Who allows no more.
        why: &'static str,
    },
    /// A server.
    #[error(transparent)]
    Remote(#[from] RemoteError),
    /// A result under encryption that is not what the program promises.
    #[error("{what}: {cause}")]
    Deviates {
        /// Which evaluation.
        what: String,
        /// How it differs.
        cause: Deviation,
    },
    /// Standard output is gone.
    #[error("cannot write the result")]
    Output(#[from] std::io::Error),
    /// A batch for which the memory is too little, where it is enough for fewer.
    #[error("{batch} inputs at once need {} of memory, but {} is allowed: it is enough for {fits}", show_bytes(*needed), show_bytes(*budget))]
    Batch {
        /// Inputs that were asked for.
        batch: usize,
        /// Inputs that fit.
        fits: u64,
        /// Bytes that all of them take.
        needed: u64,
        /// Bytes that are allowed.
        budget: u64,
    },
    /// The threads cannot be started.
    #[error("cannot start the threads: {0}")]
    Threads(String),
}

impl CliError {
    /// 3 for our bugs, 2 for the command line, 1 for the rest.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Vm(VmError::Bug(_) | VmError::Instruction { .. }) => ExitCode::from(3),
            Self::NpyNeedsRaw | Self::SameFile { .. } | Self::ManySamples { .. } => ExitCode::from(2),
            _ => ExitCode::from(1),
        }
    }

    /// What the user can do about it.
    pub(crate) fn help(&self) -> &'static str {
        match self {
            Self::File(error) => error.kind.help(),
            Self::Input(error) => remedy::input(&error.kind),
            Self::Sample { cause: ClientError::OutOfRange { .. }, .. }
            | Self::Client(ClientError::OutOfRange { .. }) => {
                "give bytes from 0 to 255 for pictures, or numbers as the model takes them; --any-range insists"
            }
            Self::Remote(error) => error.help(),
            Self::ManySamples { .. } => "choose with --index 0..8, or take them all with --index all",
            Self::Sample { .. } => "give an input of the model's shape",
            Self::KeyBytes { .. } => {
                "allow more with --max-key-bytes, make room, or compile for fewer rotations"
            }
            Self::Client(ClientError::WrongParameters { .. }) => {
                "make keys for this program with `fhe-run keygen`"
            }
            Self::Client(ClientError::Ckks(_)) => "encrypt values that the model was trained on",
            Self::Client(_) => "encrypt the input for this very program",
            Self::Vm(error) => machine_help(error),
            Self::Ckks(_) => "check that the machine has randomness, and report it if it has",
            Self::ReadProgram { .. } => remedy::READ,
            Self::Program { cause, .. } => remedy::program(cause),
            Self::Insecure { .. } => "add --insecure to use it anyway, on data that needs no protection",
            Self::SecretGiven { .. } => {
                "give the evaluation keys (--eval-keys), and keep the secret key with the client"
            }
            Self::NpyNeedsRaw => "add --raw and --result FILE (see docs/security.md)",
            Self::NoSuchInput { .. } => {
                "give one of these names; a model with one input needs no --model-input"
            }
            Self::NotJoined { .. } => {
                "encrypt each of the model's inputs once, with one key and as many samples, and join all of them"
            }
            Self::SameFile { .. } => "give every file a name of its own",
            Self::Deviates { .. } => {
                "give an input like those the model was trained on; if it is one, build again with `--calibrate IMAGES` or more `--precision`"
            }
            Self::Output(_) => remedy::OUTPUT,
            Self::Batch { .. } => "take fewer, or allow more with --memory",
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

/// What the user can do about an evaluation that failed.
fn machine_help(error: &VmError) -> &'static str {
    match error {
        VmError::MissingKey { .. } | VmError::WrongParameters { .. } => {
            "make keys for this program with `fhe-run keygen`"
        }
        VmError::WrongKey { .. } => "use the secret key and the evaluation keys of one `fhe-run keygen`",
        VmError::InputCount { .. } | VmError::InputForm { .. } | VmError::TensorLength { .. } => {
            "encrypt the input for this very program"
        }
        VmError::TooLittleMemory { .. } => {
            "allow more with --memory, raise the limits of this process (ulimit -v), or compile with less `fhec build --memory`"
        }
        VmError::Cancelled => "start again",
        VmError::Ckks(_) => "encrypt values that the model was trained on",
        _ => remedy::BUG,
    }
}
