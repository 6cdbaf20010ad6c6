//! What a program takes for one input, and whether the model can mean anything by it.

use std::ops::Range;

use fhe_bytecode::{Interface, Interval, Port, Raw};

use super::error::ClientError;

/// The model's preprocessing, in the one place where front ends find it; refuses what is far outside the inputs that the
/// model was calibrated on.
///
/// # Errors
/// If the input has another size than the program's, or as [`check_range`].
pub fn prepare(interface: &Interface, raw: Raw<'_>) -> Result<Vec<f64>, ClientError> {
    let tensor = prepare_unchecked(interface, raw)?;
    check_range(interface, &tensor)?;
    Ok(tensor)
}

/// As [`prepare`], for who insists on any number.
///
/// # Errors
/// If the input has another size than the program's.
pub fn prepare_unchecked(interface: &Interface, raw: Raw<'_>) -> Result<Vec<f64>, ClientError> {
    let shape = interface.input_layout().shape();
    let (found, expected) = (raw.len(), shape.len());
    match found == expected {
        true => Ok(interface.input().preprocessing.tensor(raw, shape.channels as usize)),
        false => Err(ClientError::TensorLength { found, expected }),
    }
}

/// As [`prepare`], for one of several inputs alone: positions of the others are zero, and are not judged.
///
/// # Errors
/// As [`prepare`].
pub fn prepare_part(interface: &Interface, port: &Port, raw: Raw<'_>) -> Result<Vec<f64>, ClientError> {
    let tensor = prepare_unchecked(interface, raw)?;
    let outside = port.range(tensor.len()).and_then(|range| Outside::among(interface, &tensor, range));
    refuse_far(outside)?;
    Ok(tensor)
}

/// The number of an input that lies furthest outside those that the model was calibrated on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outside {
    /// Its position in the input.
    pub index: usize,
    /// The number.
    pub value: f64,
    /// What the model was calibrated on.
    pub range: Interval,
}

impl Outside {
    /// The worst number of an input; nothing where all are such as the model was calibrated on, or nobody knows.
    pub fn of(interface: &Interface, tensor: &[f64]) -> Option<Self> {
        Self::among(interface, tensor, 0..tensor.len())
    }

    /// The same of some positions; others are not judged.
    pub fn among(interface: &Interface, tensor: &[f64], positions: Range<usize>) -> Option<Self> {
        let range = interface.input().range?;
        let worst = |value: &(usize, f64)| distance(value.1, range);
        let all = tensor.iter().copied().enumerate().skip(positions.start).take(positions.len());
        let (index, value) = all.max_by(|a, b| worst(a).total_cmp(&worst(b)))?;
        (distance(value, range) > 0.0).then_some(Self { index, value, range })
    }

    /// Whether it lies outside by more than the calibrated numbers are apart.
    pub fn is_far(&self) -> bool {
        distance(self.value, self.range) > (self.range.high - self.range.low).max(f64::MIN_POSITIVE)
    }
}

impl std::fmt::Display for Outside {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "value {} is {}, outside the calibrated inputs {}", self.index, self.value, self.range)
    }
}

/// How far a number lies outside; what is no number lies furthest.
fn distance(value: f64, range: Interval) -> f64 {
    if value.is_nan() { f64::INFINITY } else { (range.low - value).max(value - range.high) }
}

/// Refuses an input with a number that lies outside the calibrated ones by more than these are apart.
///
/// # Errors
/// The number that is furthest outside, where it is, and what the model expects.
pub fn check_range(interface: &Interface, tensor: &[f64]) -> Result<(), ClientError> {
    refuse_far(Outside::of(interface, tensor))
}

fn refuse_far(outside: Option<Outside>) -> Result<(), ClientError> {
    match outside.filter(Outside::is_far) {
        Some(Outside { index, value, range }) => Err(ClientError::OutOfRange { index, value, range }),
        None => Ok(()),
    }
}
