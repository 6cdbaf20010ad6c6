//! Arrays and files as samples of a model.
//!
//! An array is read as NumPy means it: in C order whatever its memory looks like, so that Fortran order, views and steps are
//! what they are in Python. Bytes are pixels and get the model's preprocessing; floating-point numbers are inputs of the model as
//! they are. Any other type is refused, because nobody can know which of the two it is.

use fhe_bytecode::{Interface, Shape};
use fhe_input::{ImageShape, Samples, read_labels, read_samples};
use pyo3::buffer::{Element, PyBuffer};
use pyo3::prelude::*;

use crate::fault::{Class, Fault};
use crate::paths::Source;

/// The shape of one sample of a model.
pub(crate) fn image_shape(shape: Shape) -> ImageShape {
    ImageShape::new(shape.channels as usize, shape.height as usize, shape.width as usize)
}

/// The samples in an array, in anything that NumPy makes one of, or in a file.
pub(crate) fn samples(given: &Bound<'_, PyAny>, shape: ImageShape) -> PyResult<Samples> {
    if let Some(Source::File(path)) = Source::new(given) {
        return Ok(read_samples(&path, shape).map_err(Fault::from)?);
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
    samples.map_err(|error| Fault::input("samples", &error).with_fact("dims", dims.clone()).into())
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

/// Every sample as the model takes it.
pub(crate) fn tensors(samples: &Samples, interface: &Interface) -> Result<Vec<Vec<f64>>, Fault> {
    let preprocessing = &interface.input().preprocessing;
    (0..samples.len())
        .map(|i| samples.tensor(i, preprocessing).map_err(|error| Fault::input("samples", &error)))
        .collect()
}
