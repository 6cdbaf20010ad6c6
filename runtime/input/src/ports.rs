//! Samples of a model with several inputs: an array for each, joined as the program has them, or one of them alone.
//!
//! Arrays are numbers that the model takes as they are. Bytes are refused: means and deviations are for a single input.

use std::path::Path;

use fhe_bytecode::Port;

use crate::npy::Header;
use crate::numpy::{decode_npy_labels, is_label_name};
use crate::samples::{Samples, Values};
use crate::zip::Archive;
use crate::{ImageShape, InputErrorKind, bytes, csv, has_extension};

/// Decodes an archive with an array for every port, under its name, and joins them.
pub(crate) fn decode_all(data: &[u8], ports: &[Port], shape: ImageShape) -> Result<Samples, InputErrorKind> {
    if !is_archive(data) {
        let names: Vec<&str> = ports.iter().map(|port| port.name.as_str()).collect();
        let found = format!("no .npz archive with the arrays {}", names.join(", "));
        return Err(InputErrorKind::WrongShape { found, wanted: shape });
    }
    let mut archive = Archive::open(data)?;
    let mut joined = Joined::new(shape);
    if let Some(file) = archive.files().iter().find(|file| is_label_name(file.name)) {
        joined.labels = Some(decode_npy_labels(&archive.read(file)?)?);
    }
    for port in ports {
        joined.add(port, &member(&mut archive, port, shape)?)?;
    }
    joined.finish()
}

/// Decodes the numbers of one port: an array alone, in an archive under the port's name, or a table with a sample a row, in the
/// model's order. All other positions are zero.
pub(crate) fn decode_one(
    data: &[u8],
    path: &Path,
    port: &Port,
    shape: ImageShape,
) -> Result<Samples, InputErrorKind> {
    let mut joined = Joined::new(shape);
    match data {
        [0x1f, 0x8b, ..] => {
            let inner = bytes::gunzip(data)?;
            return match inner.starts_with(&[0x1f, 0x8b]) {
                true => Err(InputErrorKind::damaged("gzip", "compressed twice")),
                false => decode_one(&inner, &path.with_extension(""), port, shape),
            };
        }
        _ if is_archive(data) => {
            joined.add(port, &member(&mut Archive::open(data)?, port, shape)?)?;
        }
        [0x93, b'N', b'U', b'M', b'P', b'Y', ..] => joined.add(port, data)?,
        _ if has_extension(path, &["csv", "tsv", "txt"]) => {
            let row = ImageShape::new(port.n_numbers().unwrap_or(0), 1, 1);
            let table = csv::decode(data, row)?;
            joined.labels = table.labels.clone();
            joined.place(port, table.len(), table.values)?;
        }
        _ => {
            let found = format!("no .npy, .npz or .csv file with the numbers of {}", port.name);
            return Err(InputErrorKind::WrongShape { found, wanted: shape });
        }
    }
    joined.finish()
}

fn is_archive(data: &[u8]) -> bool {
    matches!(data, [b'P', b'K', 3 | 5, ..])
}

/// The array of a port in an archive.
fn member(archive: &mut Archive<'_>, port: &Port, shape: ImageShape) -> Result<Vec<u8>, InputErrorKind> {
    let name = format!("{}.npy", port.name);
    let files = archive.files();
    match files.iter().find(|file| file.name == name.as_bytes()) {
        Some(file) => archive.read(file),
        None => {
            let found = format!("no array named {}", port.name);
            Err(InputErrorKind::WrongShape { found, wanted: shape })
        }
    }
}

/// Samples in the making; what no array has told is zero.
struct Joined {
    shape: ImageShape,
    n_samples: Option<usize>,
    values: Vec<f64>,
    labels: Option<Vec<usize>>,
}

impl Joined {
    fn new(shape: ImageShape) -> Self {
        Self { shape, n_samples: None, values: Vec::new(), labels: None }
    }

    fn wrong(&self, found: String) -> InputErrorKind {
        InputErrorKind::WrongShape { found, wanted: self.shape }
    }

    /// Puts an array where its port is.
    fn add(&mut self, port: &Port, data: &[u8]) -> Result<(), InputErrorKind> {
        let header = Header::parse(data)?;
        let dims: Vec<usize> = port.dims.iter().map(|&d| d as usize).collect();
        let count = match &header.dims[..] {
            own if own == dims || own == &dims[1..] => 1,
            [count, rest @ ..] if rest == &dims[1..] => *count,
            own => return Err(self.wrong(format!("an array {} of {own:?}", port.name))),
        };
        self.place(port, count, header.values(data)?)
    }

    /// Puts `count` samples of a port, in the model's order, where they are.
    fn place(&mut self, port: &Port, count: usize, values: Values) -> Result<(), InputErrorKind> {
        let Values::Numbers(numbers) = values else {
            let found =
                format!("{} as pixels; of several inputs each is float32, as the model takes it", port.name);
            return Err(self.wrong(found));
        };
        if *self.n_samples.get_or_insert(count) != count {
            return Err(
                self.wrong(format!("{count} samples of {}, but others of the inputs before", port.name))
            );
        }
        let (n, len) = (self.shape.n_values(), port.n_numbers().unwrap_or(0).max(1));
        let range = port.range(n).filter(|_| numbers.len() == len.saturating_mul(count));
        let range = range.ok_or_else(|| self.wrong(format!("an array {} of another size", port.name)))?;
        self.values.resize(n.saturating_mul(count), 0.0);
        for (i, &number) in numbers.iter().enumerate() {
            self.values[i / len * n + range.start + port.position(i % len)] = number;
        }
        Ok(())
    }

    fn finish(self) -> Result<Samples, InputErrorKind> {
        match self.values.iter().find(|x| !x.is_finite()) {
            Some(&number) => Err(InputErrorKind::NotFinite { number }),
            None => {
                Ok(Samples { shape: self.shape, values: Values::Numbers(self.values), labels: self.labels })
            }
        }
    }
}
