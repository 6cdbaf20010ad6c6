//! Pictures, arrays and tables: what is accepted has samples of the model's shape, all of them numbers.
#![no_main]

use std::path::Path;

use fhe_bytecode::Preprocessing;
use fhe_input::{ImageShape, decode_samples};

const SHAPE: ImageShape = ImageShape::new(1, 2, 3);

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    // The beginning tells the format; only tables go by their name.
    let name = if data.starts_with(&[0x1f, 0x8b]) { "table.csv.gz" } else { "table.csv" };
    if let Ok(samples) = decode_samples(data, Path::new(name), SHAPE) {
        let by = Preprocessing { mean: vec![0.5], std: vec![0.25] };
        for index in 0..samples.len().min(100) {
            let tensor = samples.tensor(index, &by).expect("a sample that was read");
            assert!(tensor.len() == SHAPE.n_values() && tensor.iter().all(|v| v.is_finite()));
        }
        assert!(samples.tensor(samples.len(), &by).is_err(), "a sample beyond the last one");
    }
});
