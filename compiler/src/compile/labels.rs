//! What a program tells its users: names, preprocessing and classes, from the request or from the model.

use fhe_bytecode::program::MAX_PORTS;
use fhe_bytecode::text::harmless;
use fhe_bytecode::{Origin, Port, Preprocessing, Tail, TailStep, batch_ports};
use fhec_ir::NodeId;

use super::{CompileError, Request, Statistic};
use crate::emit::Labels;
use crate::import::{Imported, InputInfo};

/// Most inputs that are evaluated together.
const MAX_BATCH: usize = 64;

/// The request's word where there is one, else the model's.
pub(super) fn labels(request: &Request, imported: &Imported) -> Result<Labels, CompileError> {
    let first_port = imported.ports.first().and_then(Port::n_numbers);
    let n_scores = imported.graph.outputs().first().map_or(0, |&id| imported.graph.shape(id).len());
    let is_one = imported.ports.len() < 2;
    let classes = match request.classes.is_empty() {
        true => imported.labels.clone().or_else(|| classes_of_tails(imported, n_scores)).unwrap_or_default(),
        false => request.classes.iter().map(|class| harmless(class)).collect(),
    };
    // Labels are for the scores; of several outputs they name the first.
    let n_named = if is_one { n_scores } else { first_port.unwrap_or(n_scores) };
    if !classes.is_empty() && classes.len() != n_named {
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
        classes: if is_one { classes } else { Vec::new() },
        input_ports: of_batch(request, ports(imported), imported.graph.inputs(), imported),
        output_ports: of_batch(request, imported.ports.clone(), imported.graph.outputs(), imported),
        tails: imported.tails.clone(),
    })
}

/// Refuses a batch that nothing is placed for.
pub(super) fn check_batch(request: &Request, imported: &Imported) -> Result<(), CompileError> {
    let batch = request.batch;
    let n_ports = imported.inputs.len().max(imported.ports.len()).max(1);
    let what = match () {
        () if !batch.is_power_of_two() || batch > MAX_BATCH => "is no power of two up to 64",
        () if batch > 1 && request.models.len() > 1 => "does not go with an ensemble",
        () if batch > 1 && request.cluster.is_some() => "does not go with clustered weights",
        () if batch > 1 && n_ports.saturating_mul(batch) > MAX_PORTS => {
            "has more inputs and outputs than a program can name"
        }
        () => return Ok(()),
    };
    Err(CompileError::Batch { batch, what })
}

/// The ports of an end, for every input of a batch.
fn of_batch(request: &Request, one: Vec<Port>, ends: Vec<NodeId>, imported: &Imported) -> Vec<Port> {
    let Some(&end) = ends.first() else { return one };
    if request.batch <= 1 {
        return one;
    }
    let shape = imported.graph.shape(end);
    let dims = [1, shape.c, shape.h, shape.w].map(|d| d as u32).to_vec();
    let whole = Port { name: String::new(), dims, channels_last: false, offset: 0 };
    let one = if one.is_empty() { vec![whole] } else { one };
    batch_ports(&one, shape.len(), request.batch)
}

/// The names that the model's own tail has for every score.
fn classes_of_tails(imported: &Imported, n_scores: usize) -> Option<Vec<String>> {
    let votes = |tail: &Tail| tail.steps.iter().any(|step| matches!(step, TailStep::Votes { .. }));
    let named = |tail: &&Tail| tail.classes.len() == n_scores && !votes(tail);
    imported.tails.iter().find(named).map(|tail| tail.classes.clone())
}

/// The model's inputs; none for a network that comes from no file.
pub(super) fn ports(imported: &Imported) -> Vec<Port> {
    imported.inputs.iter().filter(|input| !input.name.is_empty()).map(InputInfo::port).collect()
}

/// The request's word where there is one, else the model's, for every channel.
pub(super) fn preprocessing(request: &Request, imported: &Imported) -> Result<Preprocessing, CompileError> {
    let channels = imported.graph.inputs().first().map_or(1, |&id| imported.graph.shape(id).c);
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
