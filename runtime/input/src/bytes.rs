//! Bounded reading of files and of gzip streams.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use flate2::read::MultiGzDecoder;

use crate::InputErrorKind;

/// Most bytes of one file, before and after decompression. The largest usual file, 50,000 CIFAR images, is 150 MB.
pub(crate) const MAX_BYTES: u64 = 512 << 20;

/// Reads a whole file, at most [`MAX_BYTES`] of it.
pub(crate) fn read_file(path: &Path) -> Result<Vec<u8>, InputErrorKind> {
    read_bounded(File::open(path)?)
}

/// Unpacks gzip data to at most [`MAX_BYTES`].
pub(crate) fn gunzip(data: &[u8]) -> Result<Vec<u8>, InputErrorKind> {
    read_bounded(MultiGzDecoder::new(data)).map_err(|kind| match kind {
        InputErrorKind::Io(e) => InputErrorKind::damaged("gzip", e),
        other => other,
    })
}

/// Reads to the end; the buffer grows with what arrives, not with what a header claims.
pub(crate) fn read_bounded(reader: impl Read) -> Result<Vec<u8>, InputErrorKind> {
    let mut data = Vec::new();
    reader.take(MAX_BYTES + 1).read_to_end(&mut data)?;
    if data.len() as u64 > MAX_BYTES {
        return Err(InputErrorKind::TooLarge { limit: MAX_BYTES });
    }
    Ok(data)
}
