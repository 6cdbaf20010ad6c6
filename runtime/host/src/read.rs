//! Reading whole files of bounded size.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Reads a file, but not more than one byte beyond `limit`: a device that never ends is like any file that is too large.
///
/// # Errors
/// If the file cannot be read.
pub fn read_bounded(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok(bytes)
}
