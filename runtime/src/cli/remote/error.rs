//! Why a server cannot be used.

use std::io;
use std::path::PathBuf;

use fhe_bytecode::codec::DecodeError;
use fhe_files::FormatError;

/// Errors of `fhe-run remote`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RemoteError {
    /// An address that is none.
    #[error("{url:?} is no address of a server")]
    Url {
        /// What was given.
        url: String,
    },
    /// No connection, or one that broke too often.
    #[error("{url}: {cause}")]
    Connection {
        /// The server.
        url: String,
        /// What happened.
        cause: String,
    },
    /// The server refused.
    #[error("the server refuses ({status}, {code}): {message}")]
    Refused {
        /// Status of its answer.
        status: u16,
        /// Its word for it.
        code: String,
        /// Its sentence.
        message: String,
    },
    /// An answer that is none of this contract.
    #[error("the server's answer cannot be used: {0}")]
    Answer(String),
    /// No program, or several.
    #[error("{}; the server has {}", wanted.as_ref().map_or("which program is not said".to_owned(), |w| format!("no one program is {w:?}")), found.join(", "))]
    Programs {
        /// What was asked for.
        wanted: Option<String>,
        /// What there is.
        found: Vec<String>,
    },
    /// The server's program is another one.
    #[error("the server's program was {known} and is {found} now")]
    ProgramChanged {
        /// Hash of the program that keys were made for.
        known: String,
        /// Hash of the program that is served.
        found: String,
    },
    /// An interface that cannot be used.
    #[error("the server's interface: {0}")]
    Interface(#[source] DecodeError),
    /// An interface of another program.
    #[error("the server sent the interface of another program than it names")]
    OtherInterface,
    /// A program that asks for other sizes than its interface.
    #[error("the server says that {what} has {said} bytes, but by its interface there are {computed}")]
    Sizes {
        /// Of what.
        what: &'static str,
        /// What the server says.
        said: u64,
        /// What follows from the interface.
        computed: u64,
    },
    /// A result that cannot be used.
    #[error("the server's result {0}")]
    Result(#[source] FormatError),
    /// A result of another key.
    #[error("the server's result belongs to another key")]
    OtherKey,
    /// A job without a result.
    #[error("the job {state}: {message}")]
    Job {
        /// How it ended.
        state: String,
        /// Why.
        message: String,
    },
    /// A secret key of another program where this program's should be.
    #[error("{}: is the secret key of another program", path.display())]
    OtherSecret {
        /// The file.
        path: PathBuf,
    },
    /// The user's folder.
    #[error("{}: {cause}", path.display())]
    Home {
        /// The file or folder.
        path: PathBuf,
        /// What the operating system said.
        #[source]
        cause: io::Error,
    },
    /// No place for keys.
    #[error("there is no configuration folder")]
    NoHome,
}

impl RemoteError {
    /// What the user can do about it.
    pub(crate) fn help(&self) -> &'static str {
        match self {
            Self::Url { .. } => {
                "give one as in http://127.0.0.1:8080; https needs a build with the feature tls"
            }
            Self::Connection { .. } => {
                "check the address and that the server runs; what was sent stays there, so try again"
            }
            Self::Refused { status: 401, .. } => {
                "give a token with --token-file, or in the variable FHE_TOKEN"
            }
            Self::Refused { status: 429 | 503, .. } => "try again in a moment",
            Self::Refused { .. } | Self::Job { .. } => "see the server's message",
            Self::Programs { .. } => "say which with --program NAME",
            Self::ProgramChanged { .. } => "add --accept-program to make keys for the new program",
            Self::Answer(_)
            | Self::Interface(_)
            | Self::OtherInterface
            | Self::Sizes { .. }
            | Self::Result(_)
            | Self::OtherKey => "do not trust this server, or update fhe-run",
            Self::Home { .. } => "check the permissions of the folder, or choose another with --home",
            Self::OtherSecret { .. } => "move that file away, or choose another folder with --home",
            Self::NoHome => "choose a folder for keys with --home",
        }
    }
}
