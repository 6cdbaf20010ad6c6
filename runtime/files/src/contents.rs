//! What key and ciphertext files say of themselves in front: enough to tell one from another, without parameters or keys.
//!
//! Nothing behind the front is read, so nothing here was compared with a hash. It is for people; a reader that computes
//! with a file decodes all of it.

use std::io::Read;

use fhe_bytecode::Fingerprint;

use super::ciphertexts::{Role, named_request};
use super::codec::BodyReader;
use super::error::FormatError;
use super::header::{Header, Kind};
use super::names;

/// The front of a ciphertext file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contents {
    /// The program that the ciphertexts are for or from.
    pub program: Fingerprint,
    /// Inputs or results.
    pub role: Role,
    /// How many samples there are.
    pub n_samples: usize,
    /// Ciphertexts of one sample.
    pub n_ciphertexts: usize,
    /// Of results: the request that they answer; none in files of version 1.
    pub request: Option<Fingerprint>,
    /// Names of the samples: none, or one for each.
    pub names: Vec<String>,
}

/// Reads the front of a ciphertext file of `len` bytes.
///
/// # Errors
/// If it is no ciphertext file, or one whose front cannot be.
pub fn read_contents(from: impl Read, len: u64) -> Result<Contents, FormatError> {
    let mut reader = BodyReader::new(from, len)?;
    let header = Header::read(&mut reader, Kind::Ciphertexts)?;
    let program = Fingerprint(reader.array()?);
    let role = Role::read(&mut reader)?;
    let (n_samples, n_ciphertexts) = (reader.count(1)?, reader.count(1)?);
    let (request, names) = match header.version {
        1 => (None, Vec::new()),
        _ => (named_request(&mut reader, role)?, names::read(&mut reader, n_samples)?),
    };
    Ok(Contents { program, role, n_samples, n_ciphertexts, request, names })
}

/// How many keys a file of evaluation keys of `len` bytes has.
///
/// # Errors
/// If it is no such file.
pub fn count_evaluation_keys(from: impl Read, len: u64) -> Result<usize, FormatError> {
    let mut reader = BodyReader::new(from, len)?;
    Header::read(&mut reader, Kind::EvaluationKeys)?;
    reader.count(1)
}
