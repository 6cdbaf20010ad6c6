//! Files in a zip archive, as far as `numpy.savez` and `numpy.savez_compressed` write them.
//!
//! The directory at the end of the archive says what is where; it is read as a whole, one entry after the other. A file is
//! unpacked only when asked for, into as much room as the archive's budget has left: files may overlap, and a few bytes
//! may unpack to a thousand times as many, so the sum over all files is what counts.

use std::io::Read;

use flate2::Crc;
use flate2::read::DeflateDecoder;

use crate::InputErrorKind;
use crate::bytes::unpacked_limit;

/// Most files accepted in an archive.
const MAX_FILES: usize = 1024;
/// Bytes of the fixed part of the record that ends an archive, of a directory entry, and of a file's own header.
const END_LEN: usize = 22;
const ENTRY_LEN: usize = 46;
const LOCAL_LEN: usize = 30;
/// Longest comment behind the directory.
const MAX_COMMENT: usize = u16::MAX as usize;

/// An archive and what may still be unpacked from it.
#[derive(Debug)]
pub(crate) struct Archive<'d> {
    data: &'d [u8],
    files: Vec<Entry<'d>>,
    left: u64,
}

/// A file as the directory describes it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry<'d> {
    /// Its name.
    pub(crate) name: &'d [u8],
    method: u16,
    crc: u32,
    packed: usize,
    unpacked: u64,
    offset: usize,
}

fn damaged(reason: impl ToString) -> InputErrorKind {
    InputErrorKind::damaged("npz", reason)
}

impl<'d> Archive<'d> {
    /// Reads the directory.
    pub(crate) fn open(data: &'d [u8]) -> Result<Self, InputErrorKind> {
        let end = end_record(data).ok_or_else(|| damaged("no directory at its end"))?;
        let (count, start) = (usize::from(u16_at(end, 10)), u32_at(end, 16) as usize);
        if count > MAX_FILES {
            return Err(damaged(format!("{count} files, more than {MAX_FILES}")));
        }
        let mut rest = data.get(start..).ok_or_else(|| damaged("a directory beyond its end"))?;
        let mut files = Vec::new();
        for _ in 0..count {
            let (entry, after) = entry(rest).ok_or_else(|| damaged("a broken directory"))?;
            files.push(entry);
            rest = after;
        }
        Ok(Self { data, files, left: unpacked_limit(data.len()) })
    }

    /// The files, in the order of the directory.
    pub(crate) fn files(&self) -> Vec<Entry<'d>> {
        self.files.clone()
    }

    /// The first bytes of a file, at most `limit`.
    pub(crate) fn head(&mut self, file: &Entry<'d>, limit: usize) -> Result<Vec<u8>, InputErrorKind> {
        let mut head = Vec::new();
        self.reader(file)?.take(limit as u64).read_to_end(&mut head).map_err(damaged)?;
        self.charge(head.len() as u64)?;
        Ok(head)
    }

    /// A whole file.
    pub(crate) fn read(&mut self, file: &Entry<'d>) -> Result<Vec<u8>, InputErrorKind> {
        self.charge(file.unpacked)?;
        let mut whole = Vec::new();
        self.reader(file)?.take(file.unpacked + 1).read_to_end(&mut whole).map_err(damaged)?;
        if whole.len() as u64 != file.unpacked {
            return Err(damaged(format!("a file of another size than the {} bytes it tells", file.unpacked)));
        }
        let mut crc = Crc::new();
        crc.update(&whole);
        match crc.sum() == file.crc {
            true => Ok(whole),
            false => Err(damaged("a file with a wrong checksum")),
        }
    }

    fn charge(&mut self, bytes: u64) -> Result<(), InputErrorKind> {
        let limit = unpacked_limit(self.data.len());
        self.left = self.left.checked_sub(bytes).ok_or(InputErrorKind::TooLarge { limit })?;
        Ok(())
    }

    fn reader(&self, file: &Entry<'d>) -> Result<Box<dyn Read + 'd>, InputErrorKind> {
        let header =
            self.data.get(file.offset..).filter(|h| h.starts_with(b"PK\x03\x04") && h.len() >= LOCAL_LEN);
        let header = header.ok_or_else(|| damaged("a file that is not where the directory says"))?;
        let skip = LOCAL_LEN + usize::from(u16_at(header, 26)) + usize::from(u16_at(header, 28));
        let packed = header.get(skip..).and_then(|body| body.get(..file.packed));
        let packed = packed.ok_or_else(|| damaged("a file that ends beyond the archive"))?;
        match file.method {
            0 => Ok(Box::new(packed)),
            8 => Ok(Box::new(DeflateDecoder::new(packed))),
            other => {
                Err(damaged(format!("a file packed by method {other}: use numpy.savez or savez_compressed")))
            }
        }
    }
}

/// The record that ends an archive; a comment may follow it.
fn end_record(data: &[u8]) -> Option<&[u8]> {
    let last = data.len().checked_sub(END_LEN)?;
    let first = last.saturating_sub(MAX_COMMENT);
    (first..=last).rev().map(|at| &data[at..]).find(|record| record.starts_with(b"PK\x05\x06"))
}

/// One entry of the directory and what follows it.
fn entry(data: &[u8]) -> Option<(Entry<'_>, &[u8])> {
    let fixed = data.get(..ENTRY_LEN).filter(|e| e.starts_with(b"PK\x01\x02"))?;
    let [name, extra, comment] = [28, 30, 32].map(|at| usize::from(u16_at(fixed, at)));
    let entry = Entry {
        name: data.get(ENTRY_LEN..ENTRY_LEN + name)?,
        method: u16_at(fixed, 10),
        crc: u32_at(fixed, 16),
        packed: u32_at(fixed, 20) as usize,
        unpacked: u64::from(u32_at(fixed, 24)),
        offset: u32_at(fixed, 42) as usize,
    };
    Some((entry, data.get(ENTRY_LEN + name + extra + comment..)?))
}

fn u16_at(data: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([data[at], data[at + 1]])
}

fn u32_at(data: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([data[at], data[at + 1], data[at + 2], data[at + 3]])
}
