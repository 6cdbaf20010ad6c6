//! What a program takes for one input, and whether the model can mean anything by it.

use fhe_bytecode::{Interface, Interval, Raw};

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

/// Refuses a number that lies outside the calibrated inputs by more than their own spread.
///
/// # Errors
/// The number that is furthest outside, where it is, and what the model expects.
pub fn check_range(interface: &Interface, tensor: &[f64]) -> Result<(), ClientError> {
    let Some(range) = interface.input().range else { return Ok(()) };
    let spread = (range.high - range.low).max(f64::MIN_POSITIVE);
    let near = Interval { low: range.low - spread, high: range.high + spread };
    let distance = |value: f64| match value.is_nan() {
        true => f64::INFINITY,
        false => (near.low - value).max(value - near.high),
    };
    let worst = (0..tensor.len()).max_by(|&a, &b| distance(tensor[a]).total_cmp(&distance(tensor[b])));
    match worst.map(|index| (index, tensor[index])) {
        Some((index, value)) if distance(value) > 0.0 => Err(ClientError::OutOfRange { index, value, range }),
        _ => Ok(()),
    }
}
