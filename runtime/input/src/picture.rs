//! PNG and JPEG images: one sample, gray or RGB as the model wants it.

use std::io::Cursor;

use image::{ImageReader, Limits};

use crate::samples::{Samples, Values};
use crate::{ImageShape, InputErrorKind};

/// Most bytes the image decoder may allocate: enough for any input size a network takes.
const MAX_DECODED_BYTES: u64 = 256 << 20;

/// Decodes an image of exactly the model's height and width.
///
/// Colors become luminance for a model of one channel and gray is repeated for one of three; size is never changed,
/// because how to crop or resize is part of how the model was trained.
pub(crate) fn decode(data: &[u8], shape: ImageShape) -> Result<Samples, InputErrorKind> {
    let (width, height) = reader(data)?.into_dimensions().map_err(|e| InputErrorKind::damaged("image", e))?;
    if (width as usize, height as usize) != (shape.width, shape.height) {
        let found = format!("an image of {width}x{height} pixels (width x height)");
        return Err(InputErrorKind::WrongShape { found, wanted: shape });
    }
    let decoded = reader(data)?.decode().map_err(|e| InputErrorKind::damaged("image", e))?;
    let pixels = match shape.channels {
        1 => decoded.to_luma8().into_raw(),
        3 => planes(&decoded.to_rgb8().into_raw(), 3),
        _ => return Err(InputErrorKind::WrongShape { found: "an image".to_owned(), wanted: shape }),
    };
    Ok(Samples { shape, values: Values::Pixels(pixels), labels: None })
}

fn reader(data: &[u8]) -> Result<ImageReader<Cursor<&[u8]>>, InputErrorKind> {
    let mut reader = ImageReader::new(Cursor::new(data)).with_guessed_format()?;
    let mut limits = Limits::default();
    limits.max_alloc = Some(MAX_DECODED_BYTES);
    reader.limits(limits);
    Ok(reader)
}

/// From pixel-interleaved channels to one plane after the other.
pub(crate) fn planes<T: Copy>(interleaved: &[T], channels: usize) -> Vec<T> {
    (0..channels).flat_map(|c| interleaved.iter().skip(c).step_by(channels).copied()).collect()
}
