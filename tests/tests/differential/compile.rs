//! The way from bytes to a program: the compiler's one door, with the options that users get who give none.

use std::ops::RangeInclusive;

use fhe_bytecode::CheckedProgram;
use fhec::diagnostics::{Diagnostic, Words};
use fhec::import::{ImportOptions, Imported, import_bytes};
use fhec::{Calibration, Model, Request, compile};

/// What the model is called.
const NAME: &str = "random.onnx";

/// Ring degrees that a build may choose from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rings {
    /// Protect nothing.
    Toy,
    /// As by default.
    Secure,
}

impl Rings {
    /// What is asked for, as log2.
    fn log_n(self) -> Option<RangeInclusive<u32>> {
        match self {
            Self::Toy => Some(9..=11),
            Self::Secure => None,
        }
    }
}

/// A model as it was read, and its program.
pub(crate) struct Tried {
    pub(crate) imported: Imported,
    pub(crate) program: CheckedProgram,
}

/// Why a network was not built, as a user reads it.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    /// The stable name of the reason.
    pub(crate) code: &'static str,
    /// Everything that is printed.
    pub(crate) text: String,
    /// It names a layer and says what to do, and is not the compiler's own fault.
    pub(crate) is_helpful: bool,
}

/// Compiles an ONNX model.
///
/// # Errors
/// The refusal.
pub(crate) fn try_compile(
    bytes: Vec<u8>,
    calibration: Option<&[Vec<f64>]>,
    rings: Rings,
) -> Result<Tried, Refusal> {
    try_compile_with(bytes, calibration, rings, |_| ())
}

/// The same with changes to what is asked for.
///
/// # Errors
/// The refusal.
pub(crate) fn try_compile_with(
    bytes: Vec<u8>,
    calibration: Option<&[Vec<f64>]>,
    rings: Rings,
    change: impl FnOnce(&mut Request),
) -> Result<Tried, Refusal> {
    let mut request = Request {
        calibration: calibration.map_or(Calibration::MadeUp, |inputs| Calibration::Inputs(inputs.to_vec())),
        toy: rings == Rings::Toy,
        log_n: rings.log_n(),
        ..Request::new(Model::onnx(NAME, bytes.clone()))
    };
    change(&mut request);
    match compile(&request, &mut ()) {
        Ok(compiled) => {
            let imported = import_bytes(bytes, &ImportOptions::default()).unwrap();
            Ok(Tried { imported, program: compiled.built.program })
        }
        Err(error) => {
            let shown = Diagnostic::compile(NAME, &error);
            let has_help = shown.help.is_some()
                || (!shown.places.is_empty() && shown.places.iter().all(|place| place.help.is_some()));
            let text = shown.to_string();
            // Nodes of the written models are called /Conv_3 and the like.
            let is_helpful = has_help && text.contains('/') && !error.is_bug();
            Err(Refusal { code: error.code(), text, is_helpful })
        }
    }
}
