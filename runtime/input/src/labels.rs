//! Files of true classes: one number a sample.
//!
//! idx files of one dimension, NumPy arrays of one dimension (or a column), archives with an array `y` or `labels`, tables
//! with one number a row, and CIFAR-10 batches, whose records begin with the class; each also gzipped. Anything else,
//! and any number that is no class, is refused: a label that is read wrongly would look like a bad model.

use std::path::Path;

use crate::samples::Values;
use crate::{InputError, InputErrorKind, bytes, csv, dataset, has_extension, numpy, picture};

/// Reads the classes of all samples.
///
/// # Errors
/// If the file cannot be read, is of a format that holds no classes, or holds numbers that are no classes.
pub fn read_labels(path: &Path) -> Result<Vec<usize>, InputError> {
    let read = || -> Result<Vec<usize>, InputErrorKind> { decode_labels(&bytes::read_file(path)?, path) };
    read().map_err(|kind| InputError { path: path.to_path_buf(), kind })
}

/// Decodes the bytes of a file; `path` gives hints only and is not opened.
///
/// # Errors
/// As [`read_labels`].
pub fn decode_labels(data: &[u8], path: &Path) -> Result<Vec<usize>, InputErrorKind> {
    let not_labels = |found: &str| InputErrorKind::NotLabels { found: found.to_owned() };
    match data {
        [0x1f, 0x8b, ..] => match bytes::gunzip(data)? {
            inner if inner.starts_with(&[0x1f, 0x8b]) => {
                Err(InputErrorKind::damaged("gzip", "compressed twice"))
            }
            inner => decode_labels(&inner, &path.with_extension("")),
        },
        [0xfd, b'7', b'z', b'X', b'Z', ..] => Err(InputErrorKind::Compressed { tool: "xz" }),
        [0x93, b'N', b'U', b'M', b'P', b'Y', ..] => numpy::decode_npy_labels(data),
        [b'P', b'K', 3 | 5, ..] => numpy::decode_npz_labels(data),
        _ if picture::is_picture(data) => Err(not_labels("a picture")),
        [0, 0, 8, 1..=4, ..] => dataset::decode_idx_labels(data),
        _ if has_extension(path, &["bin"]) => dataset::decode_cifar_labels(data),
        _ if has_extension(path, &["csv", "tsv", "txt"]) => csv::decode_labels(data),
        _ => Err(InputErrorKind::UnknownFormat),
    }
}

/// Classes from numbers of a file, which must be whole and not negative.
pub(crate) fn from_values(values: Values) -> Result<Vec<usize>, InputErrorKind> {
    match values {
        Values::Pixels(bytes) => Ok(bytes.into_iter().map(usize::from).collect()),
        Values::Deep(words) => Ok(words.into_iter().map(usize::from).collect()),
        Values::Numbers(numbers) => numbers.into_iter().enumerate().map(|(i, x)| class(i, x)).collect(),
    }
}

/// One class from a number of a file.
pub(crate) fn class(index: usize, number: f64) -> Result<usize, InputErrorKind> {
    let is_class = number >= 0.0 && number <= f64::from(u32::MAX) && number.fract() == 0.0;
    // A whole number of 32 bits: nothing is lost.
    #[cfg_attr(not(test), expect(clippy::cast_possible_truncation, clippy::cast_sign_loss))]
    let class = number as usize;
    if is_class { Ok(class) } else { Err(InputErrorKind::NotAClass { index, number }) }
}
