//! Arrays and files as samples of a model.
//!
//! An array is read as NumPy means it: in C order whatever its memory looks like, so that Fortran order, views and steps are
//! what they are in Python. Bytes are pixels and get the model's preprocessing; floating-point numbers are inputs of the model as
//! they are. Any other type is refused, because nobody can know which of the two it is. A model of several inputs takes a
//! dictionary with an array for each.

use std::path::{Path, PathBuf};

use fhe_bytecode::{InputSpec, Port, Preprocessing, Raw, Shape};
use fhe_input::{
    Collection, Fit, ImageShape, Samples, decode_joined, decode_part, read_joined, read_labels, read_part,
};
use pyo3::buffer::{Element, PyBuffer};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::fault::{Class, Fault};
use crate::paths::Source;

/// What a model takes for one sample.
#[derive(Clone, Copy)]
pub(crate) struct Wanted<'m> {
    pub(crate) shape: ImageShape,
    ports: &'m [Port],
}

impl<'m> Wanted<'m> {
    /// What an input of a program is, which is encrypted with `shape`.
    pub(crate) fn new(shape: Shape, input: &'m InputSpec) -> Self {
        let shape = ImageShape::new(shape.channels as usize, shape.height as usize, shape.width as usize);
        Self { shape: shape.with_channels_last(input.is_channels_last()), ports: &input.ports }
    }
}

/// Samples that the user gave.
pub(crate) enum Given {
    Files(Collection),
    Array(Samples),
}

impl Given {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Files(files) => files.len(),
            Self::Array(array) => array.len(),
        }
    }

    /// What messages call a sample.
    pub(crate) fn name(&self, index: usize) -> String {
        match self {
            Self::Files(files) => files.name(index),
            Self::Array(_) => format!("sample {index}"),
        }
    }

    /// The true class, where a file tells it.
    pub(crate) fn label(&self, index: usize) -> Option<usize> {
        match self {
            Self::Files(files) => files.label(index),
            Self::Array(array) => array.label(index),
        }
    }

    /// A sample as it was given.
    pub(crate) fn raw(&self, index: usize) -> Result<Raw<'_>, Fault> {
        let found = match self {
            Self::Files(files) => files.raw(index),
            Self::Array(array) => array.raw(index),
        };
        found.map_err(|error| Fault::input("samples", &error))
    }

    /// A sample as the model takes it.
    pub(crate) fn tensor(&self, index: usize, preprocessing: &Preprocessing) -> Result<Vec<f64>, Fault> {
        match self {
            Self::Files(files) => Ok(files.tensor(index, preprocessing)?),
            Self::Array(array) => {
                array.tensor(index, preprocessing).map_err(|error| Fault::input("samples", &error))
            }
        }
    }
}

/// What becomes of pictures of another size.
pub(crate) fn fit(resize: bool) -> Fit {
    if resize { Fit::Resize } else { Fit::Exact }
}

/// The samples in an array, in anything that NumPy makes one of, or in files and folders.
pub(crate) fn samples(given: &Bound<'_, PyAny>, wanted: Wanted<'_>, fit: Fit) -> PyResult<Given> {
    if wanted.ports.len() > 1 {
        return joined(given, wanted);
    }
    let shape = wanted.shape;
    if let Some(paths) = paths(given) {
        return Ok(Given::Files(Collection::read(&paths, shape, fit).map_err(Fault::from)?));
    }
    let array = given.py().import("numpy")?.call_method1("asarray", (given,))?;
    let dims: Vec<usize> = array.getattr("shape")?.extract()?;
    let dtype: String = array.getattr("dtype")?.getattr("name")?.extract()?;
    // NumPy calls numbers of the other byte order by the same name; as their own type they are read here.
    let native = array.getattr("dtype")?.getattr("isnative")?.extract::<bool>()?;
    let samples = match (dtype.as_str(), native) {
        ("uint8", _) => Samples::from_pixels(&dims, values::<u8>(&array)?, shape),
        ("float64", true) => Samples::from_numbers(&dims, values::<f64>(&array)?, shape),
        ("float32", true) => {
            let numbers = values::<f32>(&array)?.into_iter().map(f64::from).collect();
            Samples::from_numbers(&dims, numbers, shape)
        }
        _ => return Err(wrong_dtype(&dtype, native).into()),
    };
    let samples = samples.map_err(|error| Fault::input("samples", &error).with_fact("dims", dims.clone()))?;
    Ok(Given::Array(samples))
}

/// Samples of a model of several inputs: a dictionary of arrays, or the path of an archive of them.
fn joined(given: &Bound<'_, PyAny>, wanted: Wanted<'_>) -> PyResult<Given> {
    let Wanted { shape, ports } = wanted;
    let samples = match (given.downcast::<PyDict>(), paths(given).as_deref()) {
        (Ok(arrays), _) => {
            let archive = given.py().import("fhec._arrays")?.call_method1("archive", (arrays,))?;
            decode_joined(archive.extract()?, ports, shape)
                .map_err(|error| Fault::input("samples", &error))?
        }
        (_, Some([path])) => read_joined(path, ports, shape).map_err(Fault::from)?,
        _ => {
            let names: Vec<&str> = ports.iter().map(|port| port.name.as_str()).collect();
            let found = given.get_type().name()?.to_string();
            let what = format!("samples: {found}, but the model has the inputs {}", names.join(", "));
            return Err(Fault::new(Class::Data, "inputs", what)
                .with_remedy(
                    "give a dictionary with an array for each input, or the path of an .npz file of them",
                )
                .with_fact("found", found)
                .with_fact("wanted", names)
                .into());
        }
    };
    Ok(Given::Array(samples))
}

/// Samples of one of several inputs: an array, or the path of a file.
pub(crate) fn part(given: &Bound<'_, PyAny>, port: &Port, wanted: Wanted<'_>) -> PyResult<Given> {
    if let Some([path]) = paths(given).as_deref() {
        return Ok(Given::Array(read_part(path, port, wanted.shape).map_err(Fault::from)?));
    }
    let py = given.py();
    let arrays = PyDict::new(py);
    arrays.set_item(&port.name, given)?;
    let archive = py.import("fhec._arrays")?.call_method1("archive", (arrays,))?;
    let samples = decode_part(archive.extract()?, Path::new("samples.npz"), port, wanted.shape)
        .map_err(|error| Fault::input("samples", &error))?;
    Ok(Given::Array(samples))
}

/// A path, or a list of nothing but paths.
fn paths(given: &Bound<'_, PyAny>) -> Option<Vec<PathBuf>> {
    let path = |given: &Bound<'_, PyAny>| match Source::new(given) {
        Some(Source::File(path)) => Some(path),
        _ => None,
    };
    match given.downcast::<PyList>() {
        Ok(list) if !list.is_empty() => list.iter().map(|given| path(&given)).collect(),
        _ => path(given).map(|path| vec![path]),
    }
}

/// The values in C order.
fn values<T: Element>(array: &Bound<'_, PyAny>) -> PyResult<Vec<T>> {
    PyBuffer::<T>::get(array)?.to_vec(array.py())
}

fn wrong_dtype(found: &str, native: bool) -> Fault {
    let order = if native { "" } else { " of the other byte order" };
    let what = format!("samples: an array of {found}{order}, but uint8, float32 or float64 is needed");
    Fault::new(Class::Data, "dtype", what)
        .with_remedy(
            "pictures: .astype(numpy.uint8), from 0 to 255, and the model's normalization is applied; inputs that are normalized \
             already: .astype(numpy.float32)",
        )
        .with_fact("found", found)
        .with_fact("wanted", vec!["uint8", "float32", "float64"])
}

/// Classes, one for each of `n_samples`, below `n_scores`.
pub(crate) fn labels(given: &Bound<'_, PyAny>, n_samples: usize, n_scores: usize) -> PyResult<Vec<usize>> {
    let labels = match Source::new(given) {
        Some(Source::File(path)) => read_labels(&path).map_err(Fault::from)?,
        _ => classes(given)?,
    };
    if labels.len() != n_samples {
        let what = format!("{} labels for {n_samples} samples", labels.len());
        return Err(Fault::new(Class::Data, "label-count", what)
            .with_remedy("give the labels of these samples, one for each and in their order")
            .into());
    }
    match labels.iter().enumerate().find(|(_, label)| **label >= n_scores) {
        Some((i, label)) => {
            let what = format!("label {i} is {label}, the model has {n_scores} scores");
            Err(Fault::new(Class::Data, "no-class", what)
                .with_remedy("number the classes from 0, as the scores of the model are")
                .into())
        }
        None => Ok(labels),
    }
}

fn classes(given: &Bound<'_, PyAny>) -> PyResult<Vec<usize>> {
    let array = given.py().import("numpy")?.call_method1("asarray", (given,))?;
    let (dims, kind): (Vec<usize>, String) =
        (array.getattr("shape")?.extract()?, array.getattr("dtype")?.getattr("kind")?.extract()?);
    if dims.len() != 1 || !["i", "u"].contains(&kind.as_str()) {
        let dtype: String = array.getattr("dtype")?.getattr("name")?.extract()?;
        let what = format!(
            "labels: an array of {dtype} with shape {dims:?}, but whole numbers with shape [samples] are needed"
        );
        return Err(Fault::new(Class::Data, "no-labels", what)
            .with_remedy("give one whole number for each sample, from 0")
            .into());
    }
    let numbers = values::<i64>(&array.call_method1("astype", ("int64",))?)?;
    match numbers.iter().enumerate().find(|(_, n)| **n < 0) {
        Some((i, n)) => Err(Fault::new(Class::Data, "no-class", format!("label {i} is {n}"))
            .with_remedy("number the classes from 0, as the scores of the model are")
            .into()),
        None => Ok(numbers.into_iter().map(|n| n as usize).collect()),
    }
}

/// An array of `[rows, columns]` that owns its memory.
pub(crate) fn array<'py>(py: Python<'py>, rows: &[Vec<f64>], columns: usize) -> PyResult<Bound<'py, PyAny>> {
    let flat: Vec<f64> = rows.iter().flatten().copied().collect();
    let array = py.import("numpy")?.call_method1("empty", ((rows.len(), columns),))?;
    // A buffer of nothing has no address that it could be copied to.
    if !flat.is_empty() {
        PyBuffer::<f64>::get(&array)?.copy_from_slice(py, &flat)?;
    }
    Ok(array)
}
