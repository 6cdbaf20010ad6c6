//! tract's own evaluation of the untouched model: the oracle for everything the compiler does to it.
//!
//! A crate of its own, because tract takes as long to build as everything else together and only tests and
//! `fhec levels --verify` ask it. Only models that were imported reach it, so every shape and constant it sees has been checked;
//! what panics all the same is contained.

#![forbid(unsafe_code)]

use std::path::Path;
use std::sync::Arc;

use fhe_bytecode::Port;
use fhec::import::{Imported, InputInfo, contain, decode};
use fhec::levels::{Original, OriginalError};
use prost::Message;
use tract_onnx::pb;
use tract_onnx::prelude::{
    Datum, InferenceFact, InferenceModelExt, IntoRunnable, TValue, TVec, Tensor, TractResult, TypedSimplePlan,
};

/// A model ready to be evaluated in single precision.
#[derive(Debug)]
pub struct Oracle {
    plan: Arc<TypedSimplePlan>,
    inputs: Vec<InputInfo>,
    ports: Vec<Port>,
}

impl Oracle {
    /// Loads the file `imported` came from.
    ///
    /// # Errors
    /// When the file cannot be read or tract does not support it.
    pub fn from_file(path: &Path, imported: &Imported) -> Result<Self, OriginalError> {
        let bytes = std::fs::read(path).map_err(failed)?;
        let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Self::load(&bytes, Some(folder), imported)
    }

    /// Loads the bytes `imported` came from.
    ///
    /// # Errors
    /// When tract does not support the model.
    pub fn from_bytes(bytes: &[u8], imported: &Imported) -> Result<Self, OriginalError> {
        Self::load(bytes, None, imported)
    }

    fn load(bytes: &[u8], folder: Option<&Path>, imported: &Imported) -> Result<Self, OriginalError> {
        let plan = flatten(contain(|| plan(bytes, folder, imported)))?;
        Ok(Oracle { plan, inputs: imported.inputs.clone(), ports: imported.ports.clone() })
    }

    fn run_plan(&self, inputs: &[&[f64]]) -> TractResult<Vec<Vec<f64>>> {
        let mut tensors: TVec<TValue> = TVec::new();
        let is_joined = self.inputs.len() > inputs.len();
        for (i, info) in self.inputs.iter().enumerate() {
            let values = match is_joined {
                true => &inputs[0][info.offset..info.offset + info.shape.len()],
                false => inputs[i],
            };
            let values: Vec<f32> = info.to_onnx_order(values).into_iter().map(|v| v as f32).collect();
            tensors.push(Tensor::from_shape(&info.dims, &values)?.into());
        }
        let outputs = self.plan.run(tensors)?;
        let numbers = |t: &TValue| -> TractResult<Vec<f64>> {
            Ok(t.cast_to::<f64>()?.to_plain_array_view::<f64>()?.iter().copied().collect())
        };
        let outputs = outputs.iter().map(numbers).collect::<TractResult<Vec<_>>>()?;
        // Several outputs of the model lie one behind the other in that of the graph.
        let ordered = outputs.iter().zip(&self.ports).flat_map(|(numbers, port)| {
            let mut ordered = vec![0.0; numbers.len()];
            numbers.iter().enumerate().for_each(|(i, &number)| ordered[port.position(i)] = number);
            ordered
        });
        Ok(if self.ports.is_empty() { outputs } else { vec![ordered.collect()] })
    }
}

impl Original for Oracle {
    fn run(&self, inputs: &[&[f64]]) -> Result<Vec<Vec<f64>>, OriginalError> {
        flatten(contain(|| self.run_plan(inputs)))
    }
}

fn plan(bytes: &[u8], folder: Option<&Path>, imported: &Imported) -> TractResult<Arc<TypedSimplePlan>> {
    // tract has types of its own for what the import has checked and cleaned.
    let proto = pb::ModelProto::decode(decode(bytes)?.encode_to_vec().as_slice())?;
    let folder = folder.and_then(Path::to_str);
    let mut model = tract_onnx::onnx().with_ignore_value_info(true).parse(&proto, folder)?.model;
    for (i, info) in imported.inputs.iter().enumerate() {
        model.set_input_fact(i, InferenceFact::dt_shape(f32::datum_type(), &info.dims))?;
    }
    let outlets: Vec<_> = imported.outputs.iter().filter_map(|name| model.find_outlet_label(name)).collect();
    if !outlets.is_empty() {
        model.select_output_outlets(&outlets)?;
    }
    model.into_optimized()?.into_runnable()
}

fn flatten<T>(result: Result<TractResult<T>, String>) -> Result<T, OriginalError> {
    match result {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(failed(format!("{error:#}"))),
        Err(panic) => Err(failed(panic)),
    }
}

fn failed(why: impl ToString) -> OriginalError {
    OriginalError(format!("tract cannot evaluate the model: {}", why.to_string()))
}
