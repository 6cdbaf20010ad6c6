//! What a program tells its users: names, preprocessing and classes, from the request or from the model.

use fhe_bytecode::text::harmless;
use fhe_bytecode::{Origin, Preprocessing};

use super::{CompileError, Request, Statistic};
use crate::emit::Labels;
use crate::import::Imported;

/// The request's word where there is one, else the model's.
pub(super) fn labels(request: &Request, imported: &Imported) -> Result<Labels, CompileError> {
    let n_scores = imported.graph.outputs().first().map_or(0, |&id| imported.graph.shape(id).len());
    let classes = match request.classes.is_empty() {
        true => imported.labels.clone().unwrap_or_default(),
        false => request.classes.iter().map(|class| harmless(class)).collect(),
    };
    if !classes.is_empty() && classes.len() != n_scores {
        return Err(CompileError::Classes { given: classes.len(), scores: n_scores });
    }
    Ok(Labels {
        origin: Origin {
            model: request.models.first().map_or_else(String::new, |model| harmless(&model.stem())),
            producer: concat!("fhec ", env!("CARGO_PKG_VERSION")).to_owned(),
            packing: String::new(),
        },
        input: imported.inputs.first().map_or_else(String::new, |i| i.name.clone()),
        output: imported.outputs.first().cloned().unwrap_or_default(),
        preprocessing: preprocessing(request, imported)?,
        classes,
    })
}

fn preprocessing(request: &Request, imported: &Imported) -> Result<Preprocessing, CompileError> {
    let channels = imported.inputs.first().map_or(1, |i| i.shape.c);
    let from_model = imported.preprocessing.as_ref();
    let of = |what: Statistic, given: &[f64], stored: Option<&Vec<f64>>| {
        if let Some(&value) =
            given.iter().find(|v| !v.is_finite() || (what == Statistic::Deviation && **v <= 0.0))
        {
            return Err(CompileError::Statistic { what, value });
        }
        let values = if given.is_empty() { stored.cloned().unwrap_or_default() } else { given.to_vec() };
        match values.len() {
            1 => Ok(vec![values[0]; channels]),
            n if n == 0 || n == channels => Ok(values),
            given => Err(CompileError::Preprocessing { what, given, channels }),
        }
    };
    Ok(Preprocessing {
        mean: of(Statistic::Mean, &request.preprocessing.mean, from_model.map(|p| &p.mean))?,
        std: of(Statistic::Deviation, &request.preprocessing.std, from_model.map(|p| &p.std))?,
    })
}
