//! Finished results of a batch, kept beside the output until all of them are there.
//!
//! `RESULTS.partial` has one record per finished sample: its length as eight bytes, and a ciphertext file of that one sample,
//! which names program, key and request and ends with its hash. So what belongs to another batch or was cut off is told by
//! reading, and whatever follows it is left out. Evaluation gives the same bits again, so a batch that went on from
//! here is the batch that was never interrupted.

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use fhe_ckks::{Context, KeyId};
use fhe_files::{Ciphertexts, Expected, Kind, Request, Stored, decode_ciphertexts, encode_ciphertexts};
use fhe_host::{Resumable, WriteError};

use crate::store::{FileError, FileErrorKind};

/// One batch: its program and context, its key, and the request that it answers.
#[derive(Clone, Copy)]
pub struct Batch<'a> {
    /// Tables of the parameters.
    pub context: &'a Context,
    /// What a result looks like.
    pub expected: &'a Expected,
    /// The key of inputs and results.
    pub key_id: KeyId,
    /// The inputs.
    pub request: Request,
}

/// The file of finished results.
pub struct Partial<'a> {
    batch: Batch<'a>,
    path: PathBuf,
    /// Nothing for a single sample, or an output that is no file.
    file: Option<(File, Resumable)>,
}

impl<'a> Partial<'a> {
    /// Opens the file beside `output` and gives the results in it that are whole and answer the batch's request.
    ///
    /// # Errors
    /// If the file cannot be read or written.
    pub fn open(output: &Path, batch: Batch<'a>) -> Result<(Self, Vec<Vec<Stored>>), FileError> {
        let path = path_of(output);
        // A pipe or a device has nothing beside it.
        if batch.request.n_samples < 2 || output.exists() && !output.is_file() {
            return Ok((Self { batch, path, file: None }, Vec::new()));
        }
        let open = || -> Result<_, FileErrorKind> {
            let mut file =
                OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path)?;
            if !is_ours(&mut file)? {
                return Err(WriteError::OtherKind.into());
            }
            let (samples, end) = whole_records(&mut file, &batch)?;
            file.set_len(end)?;
            file.seek(SeekFrom::End(0))?;
            Ok((file, samples))
        };
        let (file, samples) = open().map_err(|kind| FileError { path: path.clone(), kind })?;
        let resumable = Resumable::register(&path);
        Ok((Self { batch, path, file: Some((file, resumable)) }, samples))
    }

    /// Keeps the next result.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn push(&mut self, sample: &[Stored]) -> Result<(), FileError> {
        let Some((file, _)) = &mut self.file else { return Ok(()) };
        let Batch { context, expected, key_id, request } = self.batch;
        let one =
            Ciphertexts { request: Some(request.hash), ..Ciphertexts::new(key_id, vec![sample.to_vec()]) };
        let mut record = vec![0; 8];
        let written = encode_ciphertexts(&mut record, context, expected, &one).map_err(Into::into);
        let length = (record.len() - 8) as u64;
        record[..8].copy_from_slice(&length.to_le_bytes());
        let written = written.and_then(|_| Ok(file.write_all(&record)?));
        written.map_err(|kind| FileError { path: self.path.clone(), kind })
    }

    /// Removes the file: the results are where they belong.
    pub fn remove(self) {
        if self.file.is_some() {
            // One that is left is of no harm: it answers this request only.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Where the finished results of an output are kept.
fn path_of(output: &Path) -> PathBuf {
    let mut name = output.as_os_str().to_owned();
    name.push(".partial");
    name.into()
}

/// Whether a file is empty or begins as a record does; a record may have been cut.
fn is_ours(file: &mut File) -> io::Result<bool> {
    let mut first = Vec::new();
    Read::by_ref(file).take(16).read_to_end(&mut first)?;
    file.rewind()?;
    let magic = first.get(8..).unwrap_or_default();
    Ok(Kind::Ciphertexts.magic().starts_with(magic))
}

/// The results of the batch at the start of a file, and the byte that they end at.
fn whole_records(file: &mut File, batch: &Batch<'_>) -> io::Result<(Vec<Vec<Stored>>, u64)> {
    let len = file.metadata()?.len();
    let mut reader = BufReader::new(file);
    let (mut samples, mut end) = (Vec::new(), 0);
    while samples.len() < batch.request.n_samples {
        let mut length = [0; 8];
        if len - end < 8 {
            break;
        }
        reader.read_exact(&mut length)?;
        let length = u64::from_le_bytes(length);
        if length > len - end - 8 {
            break;
        }
        let record = decode_ciphertexts((&mut reader).take(length), length, batch.context, batch.expected);
        let Ok(Ciphertexts { key_id, samples: mut one, request, .. }) = record else { break };
        if key_id != batch.key_id || request != Some(batch.request.hash) || one.len() != 1 {
            break;
        }
        samples.append(&mut one);
        end += 8 + length;
    }
    Ok((samples, end))
}
