//! ONNX models: the import hands out valid graphs or an error with words.
#![no_main]

use fhec::diagnostics::{Diagnostic, Words};
use fhec::import::{ImportError, ImportOptions, import_bytes};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    match import_bytes(data.to_vec(), &ImportOptions::default()) {
        Err(ImportError::Verify(errors)) => panic!("an invalid graph got out: {errors}"),
        Err(error) => assert!(!Diagnostic::import("model", &error).to_string().is_empty()),
        Ok(_) => {}
    }
});
