//! NumPy arrays as samples: alone (`.npy`) or in an archive (`.npz`).

use crate::labels::from_values;
use crate::npy::{Header, MAX_HEAD};
use crate::picture::planes;
use crate::samples::{Samples, Values};
use crate::zip::Archive;
use crate::{ImageShape, InputErrorKind};

/// Decodes one array: samples in C order, channels first, or channels last where that is not ambiguous.
pub(crate) fn decode_npy(data: &[u8], shape: ImageShape) -> Result<Samples, InputErrorKind> {
    let header = Header::parse(data)?;
    axis_order(&header.dims, shape)?;
    arranged(&header.dims, header.values(data)?, shape)
}

impl Samples {
    /// The samples of an array of bytes in memory, in C order: pixels from 0 to 255. What files of arrays may be, it may be.
    ///
    /// # Errors
    /// If the array has another shape than `shape`, with a sample axis or without.
    pub fn from_pixels(dims: &[usize], values: Vec<u8>, shape: ImageShape) -> Result<Self, InputErrorKind> {
        arranged(dims, Values::Pixels(values), shape)
    }

    /// The samples of an array of numbers in memory, in C order: inputs of the model as they are.
    ///
    /// # Errors
    /// If the array has another shape than `shape`, with a sample axis or without, or a value that is no number.
    pub fn from_numbers(dims: &[usize], values: Vec<f64>, shape: ImageShape) -> Result<Self, InputErrorKind> {
        match values.iter().find(|x| !x.is_finite()) {
            Some(&number) => Err(InputErrorKind::NotFinite { number }),
            None => arranged(dims, Values::Numbers(values), shape),
        }
    }
}

/// The values of an array of extents `dims` as samples, channels first.
fn arranged(dims: &[usize], values: Values, shape: ImageShape) -> Result<Samples, InputErrorKind> {
    let order = axis_order(dims, shape)?;
    let values = match values {
        Values::Pixels(v) => Values::Pixels(order.channels_first(v, shape)),
        Values::Deep(v) => Values::Deep(order.channels_first(v, shape)),
        Values::Numbers(v) => Values::Numbers(order.channels_first(v, shape)),
    };
    Ok(Samples { shape, values, labels: None })
}

/// Decodes the first array of an archive that fits; an array named `y` or `labels` gives the labels.
///
/// Arrays that are not used are not unpacked beyond their headers.
pub(crate) fn decode_npz(data: &[u8], shape: ImageShape) -> Result<Samples, InputErrorKind> {
    let mut archive = Archive::open(data)?;
    let mut samples = Err(InputErrorKind::Archive { tool: "zip" });
    let mut labels = None;
    for file in archive.files() {
        if is_label_name(file.name) {
            labels = Some(decode_npy_labels(&archive.read(&file)?)?);
        } else if file.name.ends_with(b".npy") && samples.is_err() {
            let head = archive.head(&file, MAX_HEAD)?;
            let fits = Header::parse(&head).and_then(|header| axis_order(&header.dims, shape));
            samples = match fits {
                Ok(_) => Ok(decode_npy(&archive.read(&file)?, shape)?),
                Err(error) => Err(error),
            };
        }
    }
    let mut samples = samples?;
    samples.labels = labels;
    Ok(samples)
}

/// Decodes one array of classes: a vector or a column.
pub(crate) fn decode_npy_labels(data: &[u8]) -> Result<Vec<usize>, InputErrorKind> {
    let header = Header::parse(data)?;
    match header.dims[..] {
        [_] | [_, 1] => from_values(header.values(data)?),
        _ => Err(InputErrorKind::NotLabels { found: format!("an array of {:?}", header.dims) }),
    }
}

/// Decodes the array of an archive that is named as labels are, or its only array.
pub(crate) fn decode_npz_labels(data: &[u8]) -> Result<Vec<usize>, InputErrorKind> {
    let mut archive = Archive::open(data)?;
    let arrays: Vec<_> = archive.files().into_iter().filter(|f| f.name.ends_with(b".npy")).collect();
    match (arrays.iter().find(|f| is_label_name(f.name)), &arrays[..]) {
        (Some(file), _) | (None, [file]) => decode_npy_labels(&archive.read(file)?),
        (None, _) => {
            let found = format!("{} arrays, none of them named y or labels", arrays.len());
            Err(InputErrorKind::NotLabels { found })
        }
    }
}

pub(crate) fn is_label_name(file: &[u8]) -> bool {
    matches!(file, b"y.npy" | b"labels.npy" | b"label.npy")
}

/// Where the channels are in the values of a file.
#[derive(Clone, Copy)]
enum AxisOrder {
    ChannelsFirst,
    ChannelsLast,
}

impl AxisOrder {
    fn channels_first<T: Copy>(self, values: Vec<T>, shape: ImageShape) -> Vec<T> {
        match self {
            Self::ChannelsFirst => values,
            Self::ChannelsLast => {
                values.chunks_exact(shape.n_values()).flat_map(|s| planes(s, shape.channels)).collect()
            }
        }
    }
}

/// Accepts `[C,H,W]`, `[H,W,C]` (what is both is as the model has it), `[H,W]` for one channel, `[C,W]` for one row and
/// `[C,D,H,W]` and flat vectors, each also behind a sample axis: the shape that the ONNX model has, with its batch or without.
fn axis_order(dims: &[usize], shape: ImageShape) -> Result<AxisOrder, InputErrorKind> {
    let ImageShape { channels, height, width, channels_last } = shape;
    let flat = if channels_last { AxisOrder::ChannelsLast } else { AxisOrder::ChannelsFirst };
    let fits = |dims: &[usize]| match *dims {
        [h, w, c] if channels_last && (c, h, w) == (channels, height, width) => Some(AxisOrder::ChannelsLast),
        [w, c] if channels_last && (c, 1, w) == (channels, height, width) => Some(AxisOrder::ChannelsLast),
        [c, h, w] if (c, h, w) == (channels, height, width) => Some(AxisOrder::ChannelsFirst),
        [h, w, c] if (c, h, w) == (channels, height, width) => Some(AxisOrder::ChannelsLast),
        [h, w] if (1, h, w) == (channels, height, width) => Some(AxisOrder::ChannelsFirst),
        [c, w] if (c, 1, w) == (channels, height, width) => Some(AxisOrder::ChannelsFirst),
        [n] if n == shape.n_values() => Some(flat),
        _ => None,
    };
    // A volume: its channels and depths together are the channels here.
    let volume = |dims: &[usize]| match *dims {
        [c, d, h, w] if (c.saturating_mul(d), h, w) == (channels, height, width) => {
            Some(AxisOrder::ChannelsFirst)
        }
        _ => None,
    };
    fits(dims)
        .or_else(|| dims.get(1..).and_then(fits))
        .or_else(|| volume(dims))
        .or_else(|| dims.get(1..).and_then(volume))
        .ok_or_else(|| InputErrorKind::WrongShape { found: format!("an array of {dims:?}"), wanted: shape })
}
