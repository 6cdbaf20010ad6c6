//! What the three targets for input files share.

use std::path::Path;

use fhe_bytecode::Preprocessing;
use fhe_input::{ImageShape, Samples, decode_samples};

/// Reads an input by the name its file would have.
pub(super) fn read(input: &[u8], name: &str, shape: ImageShape) -> Option<Samples> {
    let read = decode_samples(input, Path::new(name), shape);
    // Every error must be printable.
    read.inspect_err(|e| assert!(!e.to_string().is_empty())).ok()
}

/// Takes every sample that there is, and one more.
pub(super) fn exercise(samples: &Samples, shape: ImageShape) -> Result<(), String> {
    let by = Preprocessing { mean: vec![0.5; shape.channels], std: vec![0.25; shape.channels] };
    for index in 0..samples.len().min(1000) {
        let tensor = samples.tensor(index, &by).map_err(|e| e.to_string())?;
        if tensor.len() != shape.n_values() || tensor.iter().any(|v| !v.is_finite()) {
            return Err("a sample that is no model input was accepted".to_owned());
        }
        samples.label(index);
    }
    match samples.tensor(samples.len(), &by) {
        Ok(_) => Err("a sample beyond the last one".to_owned()),
        Err(_) => Ok(()),
    }
}
