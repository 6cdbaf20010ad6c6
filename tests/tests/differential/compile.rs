//! The way from bytes to a program, with the options that users get who give none.

use fhec::import::{ImportOptions, Imported, import_bytes};
use fhec::pipeline::Built;
use fhec::{Calibration, Model, Request};

use crate::judge::Rings;

pub(crate) struct Compiled {
    pub(crate) imported: Imported,
    pub(crate) built: Built,
}

/// # Errors
/// The text of the refusal.
pub(crate) fn compile(
    bytes: Vec<u8>,
    calibration: Option<&[Vec<f64>]>,
    rings: Rings,
) -> Result<Compiled, String> {
    let imported = import_bytes(bytes, &ImportOptions::default()).map_err(|e| format!("{e}: {e:?}"))?;
    let request = Request {
        toy: rings == Rings::Toy,
        log_n: Some(rings.log_n()),
        calibration: calibration.map_or(Calibration::MadeUp, |inputs| Calibration::Inputs(inputs.to_vec())),
        ..Request::new(Model::imported("network", imported.clone()))
    };
    let built = fhec::compile(&request, &mut ()).map_err(|e| e.to_string())?.built;
    Ok(Compiled { imported, built })
}
