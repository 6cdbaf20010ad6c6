//! One evaluation: keys and input from the store, a result to it.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::PathBuf;
use std::sync::Arc;

use fhe_ckks::{EvaluationKeys, KeyId, key_request};
use fhe_files::{
    Ciphertexts, FormatError, Request, Stored, decode_request, decode_requested_keys, encode_ciphertexts,
};
use fhe_machine::{Cancel, Input, Observer, Profile, Session, VmError};

use super::{Problem, problem};
use crate::catalog::Entry;
use crate::ids::KeyName;
use crate::memory::Reservation;

/// Why there is no result.
#[derive(Debug)]
pub enum Failure {
    /// Nobody wants it.
    Cancelled,
    /// It cannot be.
    Problem(Problem),
}

/// A finished evaluation.
#[derive(Debug)]
pub struct Report {
    /// The result file.
    pub result: Vec<u8>,
    /// Where the time went.
    pub profile: Profile,
}

/// Bytes that are read when they are needed: a file, or what another machine has.
pub trait Source: Send + Sync {
    /// A reader of all of them, and their number.
    ///
    /// # Errors
    /// If they are not there.
    fn open(&self) -> io::Result<(Box<dyn Read + Send>, u64)>;
}

impl Source for PathBuf {
    fn open(&self) -> io::Result<(Box<dyn Read + Send>, u64)> {
        let file = File::open(self)?;
        let len = file.metadata()?.len();
        Ok((Box::new(BufReader::with_capacity(1 << 16, file)), len))
    }
}

/// What one evaluation works on.
pub struct Evaluation<'a> {
    /// The program.
    pub entry: &'a Entry,
    /// Whose key.
    pub key: KeyName,
    /// The evaluation keys.
    pub keys: &'a dyn Source,
    /// The input.
    pub input: &'a dyn Source,
    /// Memory for it.
    pub reservation: &'a Reservation,
    /// Who may end it.
    pub cancel: &'a Cancel,
    /// Who is told.
    pub observer: &'a dyn Observer,
}

impl Evaluation<'_> {
    /// Reads and checks the evaluation keys, for those who evaluate in another way.
    ///
    /// # Errors
    /// If they cannot be read or are not this program's.
    pub fn read_keys(&self) -> Result<EvaluationKeys, Failure> {
        read_keys(self.entry, self.key, self.keys)
    }
}

/// Evaluates; a seam for tests.
pub type Evaluator = dyn Fn(Evaluation<'_>) -> Result<Report, Failure> + Send + Sync;

/// Evaluates with the machine.
pub(crate) fn evaluate(work: Evaluation<'_>) -> Result<Report, Failure> {
    let Evaluation { entry, reservation, cancel, observer, .. } = work;
    let (read, request, input) = read_input(entry, work.key, work.input)?;
    let keys = reservation.keys(|| work.read_keys())?;
    let session = Session::new(Arc::clone(&entry.model), keys).map_err(refused)?;
    let (result, profile) = session.evaluate(input, cancel, observer).map_err(refused)?;
    let samples = vec![result.into_iter().map(Stored::Full).collect()];
    let (key_id, request) = (KeyId(work.key.0), Some(request.hash));
    let result = Ciphertexts { key_id, samples, names: read.names, request };
    let mut bytes = Vec::with_capacity(entry.result_bytes as usize);
    encode_ciphertexts(&mut bytes, entry.model.context(), &entry.expected_result, &result)
        .map_err(|error| Failure::Problem(problem("internal", format!("the result {error}"))))?;
    Ok(Report { result: bytes, profile })
}

fn refused(error: VmError) -> Failure {
    match error {
        VmError::Cancelled => Failure::Cancelled,
        VmError::MissingKey { .. } | VmError::WrongParameters { .. } | VmError::WrongKey { .. } => {
            Failure::Problem(problem("bad-keys", error.to_string()))
        }
        VmError::InputCount { .. } | VmError::InputForm { .. } => {
            Failure::Problem(problem("bad-input", error.to_string()))
        }
        error => Failure::Problem(problem("internal", error.to_string())),
    }
}

/// Reads and checks one encrypted input of one client.
pub(crate) fn read_input(
    entry: &Entry,
    key: KeyName,
    from: &dyn Source,
) -> Result<(Ciphertexts, Request, Input), Failure> {
    let bad = |message: String| Failure::Problem(problem("bad-input", message));
    let (file, len) = from.open().map_err(|error| Failure::Problem(problem("store", error.to_string())))?;
    let context = entry.model.context();
    let (read, request) = decode_request(file, len, context, &entry.expected_input)
        .map_err(|error| bad(format!("the input {error}")))?;
    if read.key_id != KeyId(key.0) {
        return Err(bad(format!("the input belongs to key {}, not to key {}", read.key_id, KeyId(key.0))));
    }
    let [sample] = &read.samples[..] else {
        return Err(bad(format!("the input has {} samples: send one at a time", read.samples.len())));
    };
    let expanded = sample.iter().map(|stored| stored.clone().expand(context)).collect();
    let input = Input::new(context, read.key_id, expanded);
    Ok((read, request, input))
}

/// Reads and checks one client's keys, all of them.
pub(crate) fn read_keys(entry: &Entry, key: KeyName, from: &dyn Source) -> Result<EvaluationKeys, Failure> {
    let bad = |message: String| Failure::Problem(problem("bad-keys", message));
    let (file, len) = from.open().map_err(|error| Failure::Problem(problem("store", error.to_string())))?;
    let context = entry.model.context();
    let wanted = key_request(context, entry.model.program());
    let keys = decode_requested_keys(file, len, context, &wanted).map_err(|error| match error {
        FormatError::Io(error) => Failure::Problem(problem("store", error.to_string())),
        error => bad(format!("the file of evaluation keys {error}")),
    })?;
    match keys.id() == KeyId(key.0) {
        true => Ok(keys),
        false => {
            Err(bad(format!("the evaluation keys belong to key {}, not to key {}", keys.id(), KeyId(key.0))))
        }
    }
}
