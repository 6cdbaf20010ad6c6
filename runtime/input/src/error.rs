//! What can be wrong with an input file.

use std::path::PathBuf;

use fhe_bytecode::text::harmless;

use crate::ImageShape;

/// An input file that cannot be used, and why.
#[derive(Debug, thiserror::Error)]
#[error("{}: {kind}", harmless(&path.to_string_lossy()))]
pub struct InputError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    #[source]
    pub kind: InputErrorKind,
}

/// The reason inside an [`InputError`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InputErrorKind {
    /// The operating system refused.
    #[error("cannot be read: {0}")]
    Io(#[from] std::io::Error),
    /// Larger than the reader accepts, before or after decompression.
    #[error("larger than the limit of {limit} bytes, or unpacks to more")]
    TooLarge {
        /// Most bytes accepted.
        limit: u64,
    },
    /// A picture that would be stretched to more than a file of its length may unpack to.
    #[error("would have to be stretched to {wanted}, which takes more than the limit of {limit} bytes")]
    Stretched {
        /// What the model takes.
        wanted: ImageShape,
        /// Most bytes accepted.
        limit: u64,
    },
    /// No reader knows this content.
    #[error("unknown format")]
    UnknownFormat,
    /// Compressed by something this crate does not read.
    #[error("compressed by {tool}, which is not read here")]
    Compressed {
        /// Program that unpacks it.
        tool: &'static str,
    },
    /// An archive of files that are no arrays.
    #[error("a {tool} archive without arrays of NumPy")]
    Archive {
        /// Program that unpacks it.
        tool: &'static str,
    },
    /// The file breaks its format's rules.
    #[error("damaged {format} file: {reason}")]
    Damaged {
        /// Name of the format.
        format: &'static str,
        /// What a parser objected to.
        reason: String,
    },
    /// The file is sound, but its numbers are of a kind that is neither pixels nor model inputs.
    #[error("holds {found}, which are neither pixels (uint8) nor numbers (float32, float64, int32, int64)")]
    NumberKind {
        /// What it holds, as NumPy names it.
        found: String,
    },
    /// A number that is infinite or no number at all.
    #[error("holds {number}")]
    NotFinite {
        /// The number.
        number: f64,
    },
    /// A sound picture of a kind that is not read.
    #[error("is a picture with {found}, which are not read here")]
    Picture {
        /// What it has.
        found: &'static str,
    },
    /// A folder without pictures.
    #[error("holds no pictures (PNG, JPEG, BMP, WebP, TIFF)")]
    NoPictures,
    /// A picture of another size than the model's.
    #[error("is a picture of {width}x{height} pixels (width x height), but the model takes {wanted}")]
    WrongSize {
        /// Columns.
        width: u32,
        /// Rows.
        height: u32,
        /// Shape of the model's input.
        wanted: ImageShape,
    },
    /// The file is fine, but not for this model.
    #[error("holds {found}, but the model takes {wanted}")]
    WrongShape {
        /// Shape in the file.
        found: String,
        /// Shape of the model's input.
        wanted: ImageShape,
    },
    /// The file is fine, but holds no classes.
    #[error("holds {found}, not one class for each sample")]
    NotLabels {
        /// What it holds.
        found: String,
    },
    /// A number that names no class.
    #[error("label {index} is {number}, which is no class: classes are whole numbers from 0")]
    NotAClass {
        /// Which label, from 0.
        index: usize,
        /// The number.
        number: f64,
    },
    /// Sample number beyond the end.
    #[error("sample {index} does not exist: the file has {n_samples}")]
    NoSuchSample {
        /// Number asked for, from 0.
        index: usize,
        /// Samples in the file.
        n_samples: usize,
    },
    /// Preprocessing does not fit the channels.
    #[error("normalization has {found} channels, but the model takes {wanted}")]
    WrongNormalization {
        /// Entries of mean or standard deviation.
        found: usize,
        /// Shape of the model's input.
        wanted: ImageShape,
    },
}

impl InputErrorKind {
    /// A [`InputErrorKind::Damaged`] with the words of whatever refused the bytes.
    pub(crate) fn damaged(format: &'static str, reason: impl ToString) -> Self {
        Self::Damaged { format, reason: reason.to_string() }
    }
}
