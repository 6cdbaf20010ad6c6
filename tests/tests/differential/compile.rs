//! The way from bytes to a program, with the options that users get who give none.

use fhe_bytecode::Preprocessing;
use fhec::emit::Labels;
use fhec::import::{ImportOptions, Imported, import_bytes};
use fhec::pipeline::{BuildOptions, Built, LayoutChoice, MADE_UP_INPUTS, build};
use fhec::schedule::made_up_inputs;
use fhec_ir::verify;
use fhec_passes::{Config, Manager, ManagerOptions, PassCx, pipeline};

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
    let mut graph = imported.graph.clone();
    let has_ranges = graph.ids().any(|id| graph.node(id).range.is_some());
    let inputs = match calibration {
        Some(inputs) => inputs.to_vec(),
        None if has_ranges => Vec::new(),
        None => made_up_inputs(graph.shape(graph.inputs()[0]), &Preprocessing::default(), MADE_UP_INPUTS),
    };
    let manager =
        Manager::new(pipeline(Config::ALL), ManagerOptions::default()).map_err(|e| e.to_string())?;
    let mut cx = PassCx::with_calibration(inputs.into_iter().map(|input| vec![input]).collect());
    manager.run(&mut graph, &mut cx).map_err(|e| e.to_string())?;
    let options = BuildOptions {
        layout: LayoutChoice::Auto,
        log_n: rings.log_n(),
        memory: 16 << 30,
        calibration: calibration.unwrap_or_default().to_vec(),
        ..BuildOptions::default()
    };
    let verified = verify(&graph).map_err(|e| e.to_string())?;
    let built = build(verified, &options, Labels::default()).map_err(|e| e.to_string())?;
    Ok(Compiled { imported, built })
}
