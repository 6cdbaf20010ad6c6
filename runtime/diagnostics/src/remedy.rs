//! What to do about the errors that both commands meet.

use fhe_bytecode::codec::DecodeError;
use fhe_host::WriteError;
use fhe_input::InputErrorKind;

/// About a file that cannot be read.
pub const READ: &str = "check the name and the permissions of the file";

/// About standard output that cannot be written.
pub const OUTPUT: &str = "check where standard output goes and the space left there";

/// About a bug of ours.
pub const BUG: &str = "this is a bug: please report it with the lines above and the model or program";

/// About a file that was not written.
#[must_use]
pub fn write(error: &WriteError) -> &'static str {
    match error {
        WriteError::Exists => "choose a new name: keys and unrounded values are never replaced",
        WriteError::OtherKind => "choose another name, or remove that file first",
        WriteError::NoFolder(_) => "make the folder first",
        _ => "check the permissions of the folder and the space left on its disk",
    }
}

/// About a program or interface that cannot be used.
#[must_use]
pub fn program(error: &DecodeError) -> &'static str {
    match error {
        DecodeError::NotAProgram | DecodeError::NotAnInterface => {
            "give a .fhebc file, as `fhec build` writes it"
        }
        DecodeError::Version(_) => "use a newer release",
        _ => "copy the program again, or compile the model again with `fhec build`",
    }
}

/// About an input file that cannot be used.
#[must_use]
pub fn input(error: &InputErrorKind) -> &'static str {
    match error {
        InputErrorKind::Io(_) => READ,
        InputErrorKind::TooLarge { .. } => "split the file",
        InputErrorKind::Stretched { .. } => "ask whoever made the program why it wants pictures of that size",
        InputErrorKind::UnknownFormat => {
            "give PNG, JPEG, BMP, WebP, TIFF, .npy, .npz, .csv, CIFAR-10 .bin or idx (each may be gzipped), with the usual ending"
        }
        InputErrorKind::Compressed { .. } => "unpack it first",
        InputErrorKind::Archive { .. } => "unpack it, and give the folder",
        InputErrorKind::Damaged { .. } => "write the file again",
        InputErrorKind::WrongShape { .. } => {
            "resize, crop or convert the input as the images were on which the model was trained"
        }
        InputErrorKind::WrongSize { .. } => {
            "resize or crop it as the images were on which the model was trained, or stretch it with --resize"
        }
        InputErrorKind::NumberKind { .. } => "save it as float32, or as uint8 if it holds pixels",
        InputErrorKind::Picture { .. } => "save it as a PNG of 8 or 16 bits, or its numbers as a NumPy array",
        InputErrorKind::NotFinite { .. } => "write the file again with finite numbers",
        InputErrorKind::NoPictures => "give a folder with pictures, or a file",
        InputErrorKind::NotLabels { .. } => {
            "give one class for each sample: an idx file, a NumPy vector, or a table with one number a row"
        }
        InputErrorKind::NotAClass { .. } => "number the classes from 0, as the scores of the model are",
        InputErrorKind::NoSuchSample { .. } => "count from 0 and choose a smaller --index",
        InputErrorKind::WrongNormalization { .. } => {
            "compile with as many --mean and --std as there are channels"
        }
        _ => "give another file",
    }
}
