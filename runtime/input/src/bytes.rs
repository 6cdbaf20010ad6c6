//! Bounded reading of files and of gzip streams.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use flate2::read::MultiGzDecoder;

use crate::InputErrorKind;

/// Most bytes of one file, before and after decompression. The largest usual file, 50,000 CIFAR images, is 150 MB.
pub(crate) const MAX_BYTES: u64 = 512 << 20;

/// Bytes that any packed file may unpack to: a screen of the largest usual size, in color,
const FREE_UNPACKED: u64 = 32 << 20;
/// and for every byte of it. Digits pack to a fifth, photographs to a tenth. Together a file below 1 MiB takes less than 64.
const UNPACKED_PER_BYTE: u64 = 16;

/// Most bytes that a packed file of this length may unpack to, in sum.
pub(crate) fn unpacked_limit(packed: usize) -> u64 {
    (packed as u64).saturating_mul(UNPACKED_PER_BYTE).saturating_add(FREE_UNPACKED).min(MAX_BYTES)
}

/// Reads a whole file, at most [`MAX_BYTES`] of it.
pub(crate) fn read_file(path: &Path) -> Result<Vec<u8>, InputErrorKind> {
    read_bounded(File::open(path)?, MAX_BYTES)
}

/// Unpacks gzip data to at most [`unpacked_limit`].
pub(crate) fn gunzip(data: &[u8]) -> Result<Vec<u8>, InputErrorKind> {
    read_bounded(MultiGzDecoder::new(data), unpacked_limit(data.len())).map_err(|kind| match kind {
        InputErrorKind::Io(e) => InputErrorKind::damaged("gzip", e),
        other => other,
    })
}

/// Reads to the end; the buffer grows with what arrives, not with what a header claims.
fn read_bounded(reader: impl Read, limit: u64) -> Result<Vec<u8>, InputErrorKind> {
    let mut data = Vec::new();
    reader.take(limit + 1).read_to_end(&mut data)?;
    if data.len() as u64 > limit {
        return Err(InputErrorKind::TooLarge { limit });
    }
    Ok(data)
}
