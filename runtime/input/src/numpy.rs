//! NumPy arrays, alone (`.npy`) or in an archive (`.npz`).

use std::io::Cursor;

use npyz::npz::NpzArchive;
use npyz::{Deserialize, NpyFile, Order};

use crate::bytes::read_bounded;
use crate::labels::from_values;
use crate::picture::planes;
use crate::samples::{Samples, Values};
use crate::{ImageShape, InputErrorKind};

/// Longest header accepted; NumPy writes about a hundred bytes.
const MAX_HEADER: usize = 4096;
/// Most arrays accepted in an archive.
const MAX_ARRAYS: usize = 1024;

/// Decodes one array: samples in C order, channels first, or channels last where that is not ambiguous.
pub(crate) fn decode_npy(data: &[u8], shape: ImageShape) -> Result<Samples, InputErrorKind> {
    let array = Array::parse(data)?;
    let order = array.axis_order(shape)?;
    let values = match array.values {
        Values::Pixels(v) => Values::Pixels(order.channels_first(v, shape)),
        Values::Numbers(v) => Values::Numbers(order.channels_first(v, shape)),
    };
    Ok(Samples { shape, values, labels: None })
}

/// Decodes the first array of an archive that fits; an array named `y` or `labels` gives the labels.
pub(crate) fn decode_npz(data: &[u8], shape: ImageShape) -> Result<Samples, InputErrorKind> {
    let mut archive = Archive::new(data)?;
    let mut samples = Err(InputErrorKind::WrongShape { found: "no array".to_owned(), wanted: shape });
    let mut labels = None;
    for name in archive.names() {
        if is_label_name(&name) {
            labels = Some(Array::parse(&archive.read(&name)?)?);
        } else if samples.is_err() {
            samples = decode_npy(&archive.read(&name)?, shape);
        }
    }
    let mut samples = samples?;
    samples.labels = labels.map(Array::labels).transpose()?;
    Ok(samples)
}

/// Decodes one array of classes.
pub(crate) fn decode_npy_labels(data: &[u8]) -> Result<Vec<usize>, InputErrorKind> {
    Array::parse(data)?.labels()
}

/// Decodes the array of an archive that is named as labels are, or its only array.
pub(crate) fn decode_npz_labels(data: &[u8]) -> Result<Vec<usize>, InputErrorKind> {
    let mut archive = Archive::new(data)?;
    let names = archive.names();
    match (names.iter().find(|name| is_label_name(name)), &names[..]) {
        (Some(name), _) | (None, [name]) => decode_npy_labels(&archive.read(name)?),
        (None, _) => {
            let found = format!("{} arrays, none of them named y or labels", names.len());
            Err(InputErrorKind::NotLabels { found })
        }
    }
}

fn is_label_name(name: &str) -> bool {
    matches!(name, "y" | "labels" | "label")
}

/// Arrays that are unpacked one at a time.
struct Archive<'a>(NpzArchive<Cursor<&'a [u8]>>);

impl<'a> Archive<'a> {
    fn new(data: &'a [u8]) -> Result<Self, InputErrorKind> {
        NpzArchive::new(Cursor::new(data)).map(Self).map_err(|e| InputErrorKind::damaged("npz", e))
    }

    fn names(&self) -> Vec<String> {
        self.0.array_names().take(MAX_ARRAYS).map(str::to_owned).collect()
    }

    fn read(&mut self, name: &str) -> Result<Vec<u8>, InputErrorKind> {
        let file = self.0.zip_archive().by_name(&npyz::npz::file_name_from_array_name(name));
        read_bounded(file.map_err(|e| InputErrorKind::damaged("npz", e))?)
            .map_err(|e| InputErrorKind::damaged("npz", e))
    }
}

/// Where the channels are in the values of a file.
enum AxisOrder {
    ChannelsFirst,
    ChannelsLast,
}

impl AxisOrder {
    fn channels_first<T: Copy>(&self, values: Vec<T>, shape: ImageShape) -> Vec<T> {
        match self {
            Self::ChannelsFirst => values,
            Self::ChannelsLast => {
                values.chunks_exact(shape.n_values()).flat_map(|s| planes(s, shape.channels)).collect()
            }
        }
    }
}

/// Shape and values of an array.
struct Array {
    dims: Vec<usize>,
    values: Values,
}

impl Array {
    fn parse(data: &[u8]) -> Result<Self, InputErrorKind> {
        let damaged = |reason: String| InputErrorKind::damaged("npy", reason);
        let header_len = match data {
            [_, _, _, _, _, _, 1, _, a, b, ..] => usize::from(u16::from_le_bytes([*a, *b])),
            [_, _, _, _, _, _, 2 | 3, _, a, b, c, d, ..] => u32::from_le_bytes([*a, *b, *c, *d]) as usize,
            _ => return Err(damaged("no known version".to_owned())),
        };
        if header_len > MAX_HEADER {
            return Err(damaged(format!("header of {header_len} bytes")));
        }
        let file = NpyFile::new(data).map_err(|e| damaged(e.to_string()))?;
        if file.order() != Order::C {
            return Err(damaged("Fortran order: save with numpy.ascontiguousarray".to_owned()));
        }
        let n_values = file.shape().iter().try_fold(1u64, |n, &d| n.checked_mul(d));
        if n_values.is_none_or(|n| n > data.len() as u64) {
            return Err(damaged(format!("shape {:?} is larger than the file", file.shape())));
        }
        let dims = file.shape().iter().map(|&d| d as usize).collect();
        Ok(Self { dims, values: read_values(file)? })
    }

    /// The values as classes, from a vector or a column.
    fn labels(self) -> Result<Vec<usize>, InputErrorKind> {
        match self.dims[..] {
            [_] | [_, 1] => from_values(self.values),
            _ => Err(InputErrorKind::NotLabels { found: format!("an array of {:?}", self.dims) }),
        }
    }

    /// Accepts `[C,H,W]`, `[H,W,C]`, `[H,W]` for one channel and flat vectors, each also behind a sample axis.
    fn axis_order(&self, shape: ImageShape) -> Result<AxisOrder, InputErrorKind> {
        let ImageShape { channels, height, width } = shape;
        let fits = |dims: &[usize]| match *dims {
            [c, h, w] if (c, h, w) == (channels, height, width) => Some(AxisOrder::ChannelsFirst),
            [h, w, c] if (c, h, w) == (channels, height, width) => Some(AxisOrder::ChannelsLast),
            [h, w] if (1, h, w) == (channels, height, width) => Some(AxisOrder::ChannelsFirst),
            [n] if n == shape.n_values() => Some(AxisOrder::ChannelsFirst),
            _ => None,
        };
        let dims = &self.dims[..];
        fits(dims).or_else(|| dims.get(1..).and_then(fits)).ok_or_else(|| InputErrorKind::WrongShape {
            found: format!("an array of {dims:?}"),
            wanted: shape,
        })
    }
}

/// Reads values of any plain numeric type; unsigned bytes stay pixels.
fn read_values(file: NpyFile<&[u8]>) -> Result<Values, InputErrorKind> {
    let file = match file.try_data::<u8>() {
        Ok(data) => return Ok(Values::Pixels(collect(data)?)),
        Err(file) => file,
    };
    let file = match try_numbers::<f32>(file, f64::from)? {
        Ok(values) => return Ok(values),
        Err(file) => file,
    };
    let file = match try_numbers::<f64>(file, |x| x)? {
        Ok(values) => return Ok(values),
        Err(file) => file,
    };
    let file = match try_numbers::<i64>(file, |x| x as f64)? {
        Ok(values) => return Ok(values),
        Err(file) => file,
    };
    match try_numbers::<i32>(file, f64::from)? {
        Ok(values) => Ok(values),
        Err(file) => {
            let reason = format!("type {} is not u8, f32, f64, i32 or i64", file.dtype().descr());
            Err(InputErrorKind::damaged("npy", reason))
        }
    }
}

type Tried<'a> = Result<Values, NpyFile<&'a [u8]>>;

fn try_numbers<T: Deserialize>(
    file: NpyFile<&[u8]>,
    to_f64: fn(T) -> f64,
) -> Result<Tried<'_>, InputErrorKind> {
    let data = match file.try_data::<T>() {
        Ok(data) => data,
        Err(file) => return Ok(Err(file)),
    };
    let numbers: Vec<f64> = collect(data)?.into_iter().map(to_f64).collect();
    match numbers.iter().find(|x| !x.is_finite()) {
        Some(x) => Err(InputErrorKind::damaged("npy", format!("holds {x}"))),
        None => Ok(Ok(Values::Numbers(numbers))),
    }
}

fn collect<T: Deserialize>(data: npyz::NpyReader<T, &[u8]>) -> Result<Vec<T>, InputErrorKind> {
    data.collect::<Result<_, _>>().map_err(|e| InputErrorKind::damaged("npy", e))
}
