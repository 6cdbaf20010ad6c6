//! Reads images and tensors from the files people have, as inputs of a model.
//!
//! Pictures (PNG, JPEG, BMP, WebP, TIFF), NumPy arrays (`.npy`, `.npz`), CSV tables, CIFAR-10 binary batches and idx files
//! (as MNIST ships them), each also gzipped. A file is read once into [`Samples`]; [`Samples::tensor`] gives one sample as
//! `f64` values in `[channel, y, x]` order. Pixels (bytes) go through the model's
//! [`Preprocessing`](fhe_bytecode::Preprocessing); other numbers are model inputs as they are.
//!
//! Whatever the bytes, reading gives an error and never a panic, and allocates no more than a small multiple of the
//! file (after decompression, which is bounded).
#![forbid(unsafe_code)]
// Numbers come from files: none may lose a part of itself.
#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)
)]

mod bytes;
mod collection;
mod csv;
mod dataset;
mod error;
mod labels;
mod npy;
mod numpy;
mod picture;
mod ports;
mod samples;
mod shape;
mod tiff;
mod zip;

use std::path::Path;

use fhe_bytecode::Port;

pub use collection::{Beside, Collection, files};
pub use error::{InputError, InputErrorKind};
pub use labels::{decode_labels, read_labels};
pub use samples::Samples;
pub use shape::ImageShape;

/// Reads every sample of `path` for a model that takes tensors of `shape`.
///
/// The format is told from the content, and from the name only where the content does not tell (CSV, CIFAR-10).
///
/// # Errors
/// If the file cannot be read, is of no known format, is damaged, or holds tensors of another shape.
pub fn read_samples(path: &Path, shape: ImageShape) -> Result<Samples, InputError> {
    read_samples_fitted(path, shape, Fit::Exact)
}

/// What becomes of a picture of another size than the model's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Fit {
    /// It is refused.
    #[default]
    Exact,
    /// It is stretched to the model's height and width, by averaging and linear interpolation.
    Resize,
}

/// As [`read_samples`]; pictures of another size are treated as `fit` says.
///
/// # Errors
/// As [`read_samples`].
pub fn read_samples_fitted(path: &Path, shape: ImageShape, fit: Fit) -> Result<Samples, InputError> {
    let read =
        || -> Result<Samples, InputErrorKind> { decode_fitted(&bytes::read_file(path)?, path, shape, fit) };
    read().map_err(|kind| InputError { path: path.to_path_buf(), kind })
}

/// Reads every sample for a model of several inputs: a NumPy archive with an array for each, under its name.
///
/// # Errors
/// As [`read_samples`].
pub fn read_joined(path: &Path, ports: &[Port], shape: ImageShape) -> Result<Samples, InputError> {
    let read = || decode_joined(&bytes::read_file(path)?, ports, shape);
    read().map_err(|kind| InputError { path: path.to_path_buf(), kind })
}

/// Decodes the bytes of such an archive.
///
/// # Errors
/// As [`read_samples`].
pub fn decode_joined(data: &[u8], ports: &[Port], shape: ImageShape) -> Result<Samples, InputErrorKind> {
    ports::decode_all(data, ports, shape)
}

/// Reads every sample of one of several inputs: `.npy`, `.npz` with an array of its name, or a table. What other inputs have
/// is zero.
///
/// # Errors
/// As [`read_samples`].
pub fn read_part(path: &Path, port: &Port, shape: ImageShape) -> Result<Samples, InputError> {
    let read = || decode_part(&bytes::read_file(path)?, path, port, shape);
    read().map_err(|kind| InputError { path: path.to_path_buf(), kind })
}

/// Decodes the bytes of such a file; `path` gives hints only and is not opened.
///
/// # Errors
/// As [`read_samples`].
pub fn decode_part(
    data: &[u8],
    path: &Path,
    port: &Port,
    shape: ImageShape,
) -> Result<Samples, InputErrorKind> {
    ports::decode_one(data, path, port, shape)
}

/// Decodes the bytes of a file; `path` gives hints only and is not opened.
///
/// # Errors
/// As [`read_samples`].
pub fn decode_samples(data: &[u8], path: &Path, shape: ImageShape) -> Result<Samples, InputErrorKind> {
    decode_fitted(data, path, shape, Fit::Exact)
}

/// As [`decode_samples`]; pictures of another size are treated as `fit` says.
///
/// # Errors
/// As [`read_samples`].
pub fn decode_fitted(
    data: &[u8],
    path: &Path,
    shape: ImageShape,
    fit: Fit,
) -> Result<Samples, InputErrorKind> {
    match data {
        [0x1f, 0x8b, ..] => match bytes::gunzip(data)? {
            inner if inner.starts_with(&[0x1f, 0x8b]) => {
                Err(InputErrorKind::damaged("gzip", "compressed twice"))
            }
            inner => decode_fitted(&inner, &path.with_extension(""), shape, fit),
        },
        [0xfd, b'7', b'z', b'X', b'Z', ..] => Err(InputErrorKind::Compressed { tool: "xz" }),
        [0x93, b'N', b'U', b'M', b'P', b'Y', ..] => numpy::decode_npy(data, shape),
        [b'P', b'K', 3 | 5, ..] => numpy::decode_npz(data, shape),
        _ if data.get(257..262) == Some(b"ustar") => Err(InputErrorKind::Archive { tool: "tar" }),
        _ if picture::is_picture(data) => picture::decode(data, shape, fit),
        [0, 0, 8, 1..=4, ..] => dataset::decode_idx(data, shape),
        _ if has_extension(path, &["bin"]) => dataset::decode_cifar(data, shape),
        _ if has_extension(path, &["csv", "tsv", "txt"]) => csv::decode(data, shape),
        _ => Err(InputErrorKind::UnknownFormat),
    }
}

fn has_extension(path: &Path, wanted: &[&str]) -> bool {
    path.extension().is_some_and(|e| wanted.iter().any(|w| e.eq_ignore_ascii_case(w)))
}

#[cfg(test)]
mod tests;
