//! What can be wrong with a key or ciphertext file.

use std::path::PathBuf;

use fhe_bytecode::Fingerprint;
use fhe_host::WriteError;

use super::header::Kind;
use crate::ckks::KeyId;

/// A key or ciphertext file that cannot be used or written, and why.
#[derive(Debug, thiserror::Error)]
#[error("{}: {kind}", path.display())]
pub struct FileError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    #[source]
    pub kind: FileErrorKind,
}

/// The reason inside a [`FileError`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileErrorKind {
    /// The operating system refused.
    #[error("cannot be read: {0}")]
    Io(#[from] std::io::Error),
    /// Not written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// Another kind of file, or none of ours.
    #[error("is {}, but {expected} is needed here", found.map_or("no file of fhe-run".to_owned(), |k| k.to_string()))]
    WrongKind {
        /// Kind by its magic, if it is one of ours.
        found: Option<Kind>,
        /// Kind the caller needs.
        expected: Kind,
    },
    /// Written by a newer release.
    #[error("has format version {found}; this release reads version {supported}")]
    UnsupportedVersion {
        /// Version in the file.
        found: u16,
        /// Version of this release.
        supported: u16,
    },
    /// Ends before its content does.
    #[error("is cut short: {needed} more bytes expected, {remaining} left")]
    Truncated {
        /// Bytes the next field takes.
        needed: u64,
        /// Bytes left.
        remaining: u64,
    },
    /// Goes on after its content ends.
    #[error("has {n_bytes} bytes after its end")]
    TrailingBytes {
        /// Bytes left over.
        n_bytes: u64,
    },
    /// Content and checksum disagree.
    #[error("is damaged: its checksum does not match")]
    WrongHash,
    /// A field with a value that cannot be.
    #[error("is damaged: {field} is {value}")]
    BadField {
        /// Which field.
        field: &'static str,
        /// Its value.
        value: String,
    },
    /// Made for other parameters.
    #[error("was made for parameters {found}, but {expected} are in use")]
    WrongParameters {
        /// Fingerprint in the file.
        found: Fingerprint,
        /// Fingerprint in use.
        expected: Fingerprint,
    },
    /// Made with another secret key.
    #[error("belongs to key {found}, but key {expected} is in use")]
    WrongKey {
        /// Key id in the file.
        found: KeyId,
        /// Key id in use.
        expected: KeyId,
    },
    /// Made for another program.
    #[error("was made for program {found}, but program {expected} is in use")]
    WrongProgram {
        /// Program fingerprint in the file.
        found: Fingerprint,
        /// Program in use.
        expected: Fingerprint,
    },
    /// An input where a result is needed, or the other way round.
    #[error("holds {found}, but {expected} is needed here")]
    WrongRole {
        /// What the file holds.
        found: &'static str,
        /// What is needed.
        expected: &'static str,
    },
    /// A secret key that other users of the machine can read.
    #[error("holds a secret key, but others can read it (mode {mode:04o})")]
    SecretReadable {
        /// Permission bits.
        mode: u32,
    },
}

impl FileErrorKind {
    /// What the user can do about it.
    pub fn help(&self) -> &'static str {
        match self {
            Self::Io(_) => "check the name and the permissions of the file",
            Self::Write(WriteError::Exists) => "choose a new name for the secret key",
            Self::Write(WriteError::OtherKind) => "choose another name, or remove that file first",
            Self::Write(WriteError::NoFolder(_)) => "make the folder first",
            Self::Write(_) => "check the permissions of the folder and the space left on its disk",
            Self::WrongKind { .. } => {
                "check the order of the arguments; `fhe-run info FILE` says what a file is"
            }
            Self::UnsupportedVersion { .. } => "use a newer release, or make the file again with this one",
            Self::Truncated { .. } | Self::TrailingBytes { .. } | Self::WrongHash | Self::BadField { .. } => {
                "copy the file again, or make it again"
            }
            Self::WrongParameters { .. } | Self::WrongProgram { .. } => {
                "make keys and ciphertexts with the very program file that is evaluated"
            }
            Self::WrongKey { .. } => "use the secret key and the evaluation keys of one `fhe-run keygen`",
            Self::WrongRole { .. } => "eval takes what encrypt wrote, decrypt takes what eval wrote",
            Self::SecretReadable { .. } => "run chmod 600 on it",
        }
    }
}
