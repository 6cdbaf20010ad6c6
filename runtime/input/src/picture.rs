//! Pictures: one sample, gray or RGB as the model wants it.
//!
//! PNG, JPEG, BMP, WebP and TIFF. Pixels of more than eight bits keep them. Colors become luminance for a model of one channel
//! and gray is repeated for one of three; transparency is ignored.

use std::io::Cursor;

use image::imageops::FilterType;
use image::{DynamicImage, ImageError, ImageReader, Limits};

use crate::bytes::unpacked_limit;
use crate::samples::{Samples, Values};
use crate::tiff;
use crate::{Fit, ImageShape, InputErrorKind};

/// Most bytes the image decoder may allocate, of a file of any length: enough for any input size a network takes.
const MAX_DECODED_BYTES: u64 = 256 << 20;

/// Bytes of a pixel while it is stretched: four numbers.
const STRETCHED_PIXEL_BYTES: u64 = 16;

/// How the names of pictures end.
pub(crate) const ENDINGS: [&str; 7] = ["png", "jpg", "jpeg", "bmp", "webp", "tif", "tiff"];

/// Whether a file begins like a picture.
pub(crate) fn is_picture(data: &[u8]) -> bool {
    match data {
        [0x89, b'P', b'N', b'G', ..] | [0xff, 0xd8, 0xff, ..] => true,
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => true,
        // Two letters are little; a BMP goes on with its length and four zeros.
        [b'B', b'M', _, _, _, _, 0, 0, 0, 0, ..] => true,
        [b'I', b'I', 42, 0, ..] | [b'M', b'M', 0, 42, ..] => true,
        _ => false,
    }
}

/// Decodes a picture. Another size than the model's is refused unless it is asked to fit, because how to crop or resize is
/// part of how a model was trained.
pub(crate) fn decode(data: &[u8], shape: ImageShape, fit: Fit) -> Result<Samples, InputErrorKind> {
    let wrong = |error: ImageError| match error {
        ImageError::Limits(_) => InputErrorKind::TooLarge { limit: decoded_limit(data) },
        other => InputErrorKind::damaged("image", other),
    };
    let is_one_page = tiff::is_one_page(data)?;
    let (width, height) = reader(data)?.into_dimensions().map_err(wrong)?;
    let has_size = (width as usize, height as usize) == (shape.width, shape.height);
    if !has_size && fit == Fit::Exact {
        return Err(InputErrorKind::WrongSize { width, height, wanted: shape });
    }
    if ![1, 3].contains(&shape.channels) {
        return Err(InputErrorKind::WrongShape { found: "a picture".to_owned(), wanted: shape });
    }
    if !is_one_page {
        return Err(InputErrorKind::Picture { found: "several pages" });
    }
    let mut decoded = reader(data)?.decode().map_err(wrong)?;
    if matches!(decoded, DynamicImage::ImageRgb32F(_) | DynamicImage::ImageRgba32F(_)) {
        return Err(InputErrorKind::Picture { found: "floating-point pixels" });
    }
    if !has_size {
        let axis = |extent: usize| {
            u32::try_from(extent).map_err(|_| InputErrorKind::WrongSize { width, height, wanted: shape })
        };
        let (wide, high) = (axis(shape.width)?, axis(shape.height)?);
        // The model's author chose the size: rows are stretched first, then columns.
        let pixels = u64::from(high).saturating_mul(u64::from(wide.max(width)));
        let limit = decoded_limit(data);
        if pixels.saturating_mul(STRETCHED_PIXEL_BYTES) > limit {
            return Err(InputErrorKind::Stretched { wanted: shape, limit });
        }
        decoded = decoded.resize_exact(wide, high, FilterType::Triangle);
    }
    let is_deep = matches!(
        decoded,
        DynamicImage::ImageLuma16(_)
            | DynamicImage::ImageLumaA16(_)
            | DynamicImage::ImageRgb16(_)
            | DynamicImage::ImageRgba16(_)
    );
    let values = match (shape.channels, is_deep) {
        (1, false) => Values::Pixels(decoded.to_luma8().into_raw()),
        (1, true) => Values::Deep(decoded.to_luma16().into_raw()),
        (_, false) => Values::Pixels(planes(&decoded.to_rgb8().into_raw(), 3)),
        (_, true) => Values::Deep(planes(&decoded.to_rgb16().into_raw(), 3)),
    };
    Ok(Samples { shape, values, labels: None })
}

/// Most bytes that a picture may unpack to, as any packed file.
fn decoded_limit(data: &[u8]) -> u64 {
    unpacked_limit(data.len()).min(MAX_DECODED_BYTES)
}

fn reader(data: &[u8]) -> Result<ImageReader<Cursor<&[u8]>>, InputErrorKind> {
    let mut reader = ImageReader::new(Cursor::new(data)).with_guessed_format()?;
    let mut limits = Limits::default();
    limits.max_alloc = Some(decoded_limit(data));
    reader.limits(limits);
    Ok(reader)
}

/// From pixel-interleaved channels to one plane after the other.
pub(crate) fn planes<T: Copy>(interleaved: &[T], channels: usize) -> Vec<T> {
    (0..channels).flat_map(|c| interleaved.iter().skip(c).step_by(channels).copied()).collect()
}
