//! The two classic binary dataset formats: CIFAR-10 batches and idx files.

use crate::samples::{Samples, Values};
use crate::{ImageShape, InputErrorKind};

/// One CIFAR-10 record: a label byte and three planes of 32x32 bytes.
const CIFAR_SHAPE: ImageShape = ImageShape::new(3, 32, 32);
const CIFAR_RECORD: usize = 1 + 3 * 32 * 32;

/// Decodes a CIFAR-10 binary batch.
pub(crate) fn decode_cifar(data: &[u8], shape: ImageShape) -> Result<Samples, InputErrorKind> {
    let records = cifar_records(data)?;
    if shape.with_channels_last(false) != CIFAR_SHAPE {
        return Err(InputErrorKind::WrongShape { found: format!("samples of {CIFAR_SHAPE}"), wanted: shape });
    }
    let mut pixels = Vec::with_capacity(data.len());
    let mut labels = Vec::with_capacity(data.len() / CIFAR_RECORD);
    for record in records {
        labels.push(usize::from(record[0]));
        pixels.extend_from_slice(&record[1..]);
    }
    Ok(Samples { shape, values: Values::Pixels(pixels), labels: Some(labels) })
}

/// Decodes the classes of a CIFAR-10 binary batch.
pub(crate) fn decode_cifar_labels(data: &[u8]) -> Result<Vec<usize>, InputErrorKind> {
    Ok(cifar_records(data)?.map(|record| usize::from(record[0])).collect())
}

fn cifar_records(data: &[u8]) -> Result<std::slice::ChunksExact<'_, u8>, InputErrorKind> {
    if data.is_empty() || !data.len().is_multiple_of(CIFAR_RECORD) {
        let reason = format!("{} bytes is no multiple of {CIFAR_RECORD}", data.len());
        return Err(InputErrorKind::damaged("CIFAR-10", reason));
    }
    Ok(data.chunks_exact(CIFAR_RECORD))
}

/// Decodes an idx file of unsigned bytes: samples, samples x rows x columns, or samples x channels x rows x columns.
pub(crate) fn decode_idx(data: &[u8], shape: ImageShape) -> Result<Samples, InputErrorKind> {
    let (dims, body) = idx(data)?;
    let found = match dims[..] {
        [_] => Some(ImageShape::new(1, 1, 1)),
        [_, height, width] => Some(ImageShape::new(1, height, width)),
        [_, channels, height, width] => Some(ImageShape::new(channels, height, width)),
        _ => None,
    };
    if found != Some(shape) {
        return Err(InputErrorKind::WrongShape { found: format!("bytes of {dims:?}"), wanted: shape });
    }
    Ok(Samples { shape, values: Values::Pixels(body.to_vec()), labels: None })
}

/// Decodes an idx file of one dimension: a class for each sample.
pub(crate) fn decode_idx_labels(data: &[u8]) -> Result<Vec<usize>, InputErrorKind> {
    let (dims, body) = idx(data)?;
    match dims[..] {
        [_] => Ok(body.iter().copied().map(usize::from).collect()),
        _ => Err(InputErrorKind::NotLabels { found: format!("bytes of {dims:?}") }),
    }
}

/// Dimensions and bytes of an idx file.
fn idx(data: &[u8]) -> Result<(Vec<usize>, &[u8]), InputErrorKind> {
    let damaged = |reason: String| InputErrorKind::damaged("idx", reason);
    let rank = usize::from(data[3]);
    let header = 4 + 4 * rank;
    if data.len() < header {
        return Err(damaged("header cut short".to_owned()));
    }
    let dims: Vec<usize> = data[4..header]
        .chunks_exact(4)
        .map(|d| u32::from_be_bytes([d[0], d[1], d[2], d[3]]) as usize)
        .collect();
    let body = &data[header..];
    let n_values = dims.iter().try_fold(1usize, |n, &d| n.checked_mul(d));
    if n_values != Some(body.len()) {
        return Err(damaged(format!("dimensions {dims:?} need another length than {} bytes", body.len())));
    }
    Ok((dims, body))
}
