//! What can be wrong with a key or ciphertext file.

use fhe_bytecode::{Fingerprint, Level};

use super::header::Kind;
use fhe_ckks::{KeyId, KeyUse};

/// Why the content of a file is refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// The operating system refused.
    #[error("cannot be read: {0}")]
    Io(#[from] std::io::Error),
    /// Another kind of file, or none of ours.
    #[error("is {}, but {expected} is needed here", found.map_or("no file of fhe-run".to_owned(), |k| k.to_string()))]
    WrongKind {
        /// Kind by its magic, if it is one of ours.
        found: Option<Kind>,
        /// Kind the caller needs.
        expected: Kind,
    },
    /// Written by a newer release.
    #[error("has format version {found}; this release reads versions 1 to {supported}")]
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
    /// A key that the program does not ask for.
    #[error("has a key for {key_use} up to level {level}, which the program does not ask for")]
    KeyNotAsked {
        /// What the key is for.
        key_use: KeyUse,
        /// Its level.
        level: Level,
    },
    /// A key that the program asks for is not there.
    #[error("has no key for {key_use} up to level {level}, which the program asks for")]
    KeyMissing {
        /// What the key would be for.
        key_use: KeyUse,
        /// Its level.
        level: Level,
    },
    /// The answer to another request.
    #[error("answers request {found}, but the request is {expected}: it is stale, or of somebody else")]
    WrongRequest {
        /// Request in the file.
        found: Fingerprint,
        /// Hash of the request in use.
        expected: Fingerprint,
    },
    /// A result that names no request.
    #[error("does not say which request it answers (format version 1)")]
    NoRequest,
    /// More or fewer results than inputs.
    #[error("has {found} samples, but the request has {expected}")]
    WrongSamples {
        /// Samples in the file.
        found: usize,
        /// Samples of the request.
        expected: usize,
    },
    /// An input where a result is needed, or the other way round.
    #[error("holds {found}, but {expected} is needed here")]
    WrongRole {
        /// What the file holds.
        found: &'static str,
        /// What is needed.
        expected: &'static str,
    },
}
