//! Files as streams: bounded reading with the checksum computed on the way, and writing section by section.

use super::wire::Writer;
use super::{CHECKSUM_BYTES, DecodeError};
use std::io::{self, Read, Write};

/// Bytes that are hashed and forgotten at a time.
const CHUNK_BYTES: usize = 1 << 16;

/// Reads at most `limit` bytes and hashes what it reads once a context is known.
pub(super) struct Stream<R> {
    input: R,
    limit: u64,
    read: u64,
    hasher: Option<blake3::Hasher>,
}

impl<R: Read> Stream<R> {
    pub(super) fn new(input: R, limit: u64) -> Self {
        Self { input, limit, read: 0, hasher: None }
    }

    /// Begins the checksum, with what was read before.
    pub(super) fn start(&mut self, context: &str, first: &[u8]) {
        let mut hasher = blake3::Hasher::new_derive_key(context);
        hasher.update(first);
        self.hasher = Some(hasher);
    }

    /// The next `count` bytes appended to `bytes`, or as many as there are; memory follows the bytes that are really there.
    fn append(&mut self, count: u64, bytes: &mut Vec<u8>) -> Result<u64, DecodeError> {
        let before = bytes.len();
        let left = self.limit.saturating_sub(self.read);
        let taken = self.input.by_ref().take(count.min(left.saturating_add(1))).read_to_end(bytes);
        let taken = taken.map_err(|e| DecodeError::Read(e.kind()))? as u64;
        self.read = self.read.saturating_add(taken);
        if self.read > self.limit {
            return Err(DecodeError::TooLarge { found: self.read, limit: self.limit });
        }
        if let Some(hasher) = &mut self.hasher {
            hasher.update(&bytes[before..]);
        }
        Ok(taken)
    }

    fn exactly(&mut self, count: u64, bytes: &mut Vec<u8>) -> Result<(), DecodeError> {
        match self.append(count, bytes)? == count {
            true => Ok(()),
            false => Err(self.error("unexpected end")),
        }
    }

    pub(super) fn array<const LEN: usize>(&mut self) -> Result<[u8; LEN], DecodeError> {
        let mut bytes = Vec::with_capacity(LEN);
        self.exactly(LEN as u64, &mut bytes)?;
        let mut array = [0; LEN];
        array.copy_from_slice(&bytes);
        Ok(array)
    }

    /// `count` sections as they are, at most `most` bytes, and where they began.
    pub(super) fn sections(&mut self, count: usize, most: u64) -> Result<(usize, Vec<u8>), DecodeError> {
        let start = self.position();
        let mut bytes = Vec::new();
        for _ in 0..count {
            let begin = bytes.len();
            self.exactly(12, &mut bytes)?;
            let mut length = [0; 8];
            length.copy_from_slice(&bytes[begin + 4..]);
            let length = u64::from_le_bytes(length);
            if length.saturating_add(bytes.len() as u64) > most {
                return Err(self.error("section too large"));
            }
            self.exactly(length, &mut bytes)?;
        }
        Ok((start, bytes))
    }

    /// Everything up to the checksum, at most `most` bytes, and where it began.
    pub(super) fn read_to_the_end(mut self, most: u64) -> Result<(usize, Vec<u8>), DecodeError> {
        let start = self.position();
        // The checksum itself is not hashed.
        let hasher = self.hasher.take();
        self.limit = self.limit.min(self.read.saturating_add(most));
        let mut bytes = Vec::new();
        self.append(u64::MAX, &mut bytes)?;
        let Some(end) = bytes.len().checked_sub(CHECKSUM_BYTES) else {
            return Err(self.error("unexpected end"));
        };
        let written = bytes.split_off(end);
        match hasher.map(|mut hasher| *hasher.update(&bytes).finalize().as_bytes()) {
            Some(sum) if sum == *written => Ok((start, bytes)),
            _ => Err(DecodeError::Checksum),
        }
    }

    /// Hashes everything up to the checksum, and gives the checksum.
    pub(super) fn skip_to_the_end(mut self) -> Result<[u8; CHECKSUM_BYTES], DecodeError> {
        let mut hasher = self.hasher.take().unwrap_or_default();
        let mut held = Vec::with_capacity(CHUNK_BYTES + CHECKSUM_BYTES);
        loop {
            let taken = self.append(CHUNK_BYTES as u64, &mut held)?;
            let Some(end) = held.len().checked_sub(CHECKSUM_BYTES) else {
                return Err(self.error("unexpected end"));
            };
            if taken == 0 {
                break;
            }
            hasher.update(&held[..end]);
            held.drain(..end);
        }
        match hasher.finalize().as_bytes().as_slice() == held {
            true => Ok(*hasher.finalize().as_bytes()),
            false => Err(DecodeError::Checksum),
        }
    }

    /// Appends everything that is left; gives the limit.
    pub(super) fn rest(mut self, bytes: &mut Vec<u8>) -> Result<u64, DecodeError> {
        self.append(u64::MAX, bytes).map(|_| self.limit)
    }

    fn position(&self) -> usize {
        usize::try_from(self.read).unwrap_or(usize::MAX)
    }

    fn error(&self, what: &'static str) -> DecodeError {
        DecodeError::Malformed { section: "HEAD".to_owned(), offset: self.position(), what }
    }
}

/// Writes sections one at a time and computes the checksum on the way.
pub(super) struct SectionWriter<'a, W: ?Sized> {
    out: &'a mut W,
    hasher: blake3::Hasher,
}

impl<'a, W: Write + ?Sized> SectionWriter<'a, W> {
    pub(super) fn new(out: &'a mut W, context: &str) -> Self {
        Self { out, hasher: blake3::Hasher::new_derive_key(context) }
    }

    pub(super) fn raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.hasher.update(bytes);
        self.out.write_all(bytes)
    }

    /// A section: tag, length of eight bytes, content.
    pub(super) fn section(&mut self, tag: &[u8; 4], content: &dyn Fn(&mut Writer)) -> io::Result<()> {
        let mut inner = Writer::default();
        content(&mut inner);
        let bytes = inner.finish();
        self.raw(tag)?;
        self.raw(&(bytes.len() as u64).to_le_bytes())?;
        self.raw(&bytes)
    }

    /// The checksum, at the end of the file.
    pub(super) fn finish(self) -> io::Result<[u8; CHECKSUM_BYTES]> {
        let checksum = *self.hasher.finalize().as_bytes();
        self.out.write_all(&checksum).map(|()| checksum)
    }
}

/// The bytes that something writes.
pub(super) fn collected(write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(&mut bytes).expect("a vector takes every byte");
    bytes
}
