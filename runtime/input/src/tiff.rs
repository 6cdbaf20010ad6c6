//! What a TIFF says before its pixels: looked at before the decoder, which makes room for every list of numbers that the file
//! merely names and knows the first page only.

use crate::InputErrorKind;

/// Bytes of an entry of a page's table: what it is, the kind of its numbers, how many, and where they are.
const ENTRY: usize = 12;

/// Whether a file is no TIFF, or one of a single page.
///
/// # Errors
/// When the table of the first page names more numbers than the file has bytes for.
pub(crate) fn is_one_page(data: &[u8]) -> Result<bool, InputErrorKind> {
    let is_little = match data {
        [b'I', b'I', 42, 0, ..] => true,
        [b'M', b'M', 0, 42, ..] => false,
        _ => return Ok(true),
    };
    let number = |at: usize, n_bytes: usize| -> Option<usize> {
        let bytes = data.get(at..at.checked_add(n_bytes)?)?;
        let digits = |sum: usize, byte: &u8| sum << 8 | usize::from(*byte);
        Some(if is_little { bytes.iter().rev().fold(0, digits) } else { bytes.iter().fold(0, digits) })
    };
    let cut = || InputErrorKind::damaged("image", "the table of a TIFF is cut off");
    let table = number(4, 4).ok_or_else(cut)?;
    let n_entries = number(table, 2).ok_or_else(cut)?;
    for entry in (0..n_entries).map(|i| table + 2 + ENTRY * i) {
        let (kind, count) = (number(entry + 2, 2).ok_or_else(cut)?, number(entry + 4, 4).ok_or_else(cut)?);
        if count.saturating_mul(bytes_of(kind)) > data.len() {
            return Err(InputErrorKind::damaged("image", "a TIFF names more numbers than it holds"));
        }
    }
    // Behind the entries is the place of the next page.
    Ok(number(table + 2 + ENTRY * n_entries, 4).ok_or_else(cut)? == 0)
}

/// Bytes of one number of a kind.
fn bytes_of(kind: usize) -> usize {
    match kind {
        1 | 2 | 6 | 7 => 1,
        3 | 8 => 2,
        4 | 9 | 11 | 13 => 4,
        _ => 8,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table with one entry, and the place of the next page.
    fn tiff(count: u32, next: u32) -> Vec<u8> {
        let mut data = vec![b'I', b'I', 42, 0, 8, 0, 0, 0, 1, 0];
        data.extend([0x11, 0x01, 4, 0]);
        data.extend([count.to_le_bytes(), 24u32.to_le_bytes(), next.to_le_bytes()].concat());
        data
    }

    #[test]
    fn lists_beyond_the_file_are_refused_before_they_are_read() {
        assert!(is_one_page(&tiff(6, 0)).unwrap());
        assert!(!is_one_page(&tiff(6, 8)).unwrap());
        for count in [7, 4_653_057, u32::MAX] {
            let error = is_one_page(&tiff(count, 0)).unwrap_err();
            assert!(error.to_string().contains("more numbers than it holds"), "{error}");
        }
        for len in 4..26 {
            assert!(is_one_page(&tiff(1, 0)[..len]).is_err(), "{len} bytes");
        }
        assert!(is_one_page(b"no TIFF").unwrap());
    }
}
