//! The description of input and output, and what the program says of its layers and itself.

use super::MAX_ERRORS;
use super::error::Fault;
use crate::ids::LayoutId;
use crate::layout::Layout;
use crate::program::{
    InputSpec, MAX_PORTS, Origin, OutputSpec, Port, Prediction, ProgramSpec, Tail, batch, batch_ports,
};
use crate::text::{harmless, is_harmless};

/// Characters of a bad text that an error repeats.
const MAX_TEXT: usize = 40;

/// What is wrong with ends, peaks and predictions.
pub(super) fn header(spec: &ProgramSpec, layouts: &[Layout]) -> Vec<Fault> {
    let mut faults = ends(&spec.input, &spec.output, layouts);
    faults.extend(texts(&spec.origin, &spec.input, &spec.output));
    faults.extend(bad_text("layer", spec.layers.iter().map(|layer| &layer.name)));
    let peaks = spec.layers.iter().map(|layer| layer.peak);
    faults.extend(peaks.filter(|peak| !(peak.is_finite() && *peak >= 0.0)).take(MAX_ERRORS).map(Fault::Peak));
    let layers = spec.layers.iter().flat_map(|layer| [layer.seconds, layer.error]);
    let numbers = predicted(&spec.prediction).into_iter().chain(layers);
    faults.extend(bad_prediction(numbers));
    faults
}

/// What is wrong with the texts that are for people: a terminal must not obey them.
pub(super) fn texts(origin: &Origin, input: &InputSpec, output: &OutputSpec) -> Vec<Fault> {
    let origins = [&origin.model, &origin.producer, &origin.packing];
    let of = [
        bad_text("origin", origins),
        bad_text("input", [&input.name]),
        bad_text("output", [&output.name]),
        bad_text("label", &output.labels),
        bad_text("port", input.ports.iter().chain(&output.ports).map(|port| &port.name)),
        bad_text("tail", output.tails.iter().flat_map(|tail| tail.classes.iter().chain([&tail.name]))),
    ];
    of.into_iter().flatten().collect()
}

/// The first text with a character that a terminal would obey.
fn bad_text<'a>(what: &'static str, texts: impl IntoIterator<Item = &'a String>) -> Option<Fault> {
    let bad = texts.into_iter().find(|text| !is_harmless(text))?;
    Some(Fault::Text { what, text: repeated(bad) })
}

/// As much of a text as an error may repeat: the terminal and the reader are safe from the rest.
fn repeated(text: &str) -> String {
    harmless(&text.chars().take(MAX_TEXT).collect::<String>())
}

/// The numbers of a prediction.
pub(super) fn predicted(prediction: &Prediction) -> [f64; 3] {
    [prediction.seconds, prediction.encode_seconds, prediction.max_abs_error]
}

/// The first number that cannot be a prediction.
pub(super) fn bad_prediction(numbers: impl IntoIterator<Item = f64>) -> Option<Fault> {
    numbers.into_iter().find(|v| !(v.is_finite() && *v >= 0.0)).map(Fault::Prediction)
}

/// What is wrong with layouts, preprocessing, labels and ranges of input and output.
pub(super) fn ends(input: &InputSpec, output: &OutputSpec, layouts: &[Layout]) -> Vec<Fault> {
    let mut faults = Vec::new();
    for id in [input.layout, output.layout] {
        if id.index() >= layouts.len() {
            faults.push(Fault::Missing { what: format!("layout {id}") });
        }
    }
    let per_channel = |id: LayoutId, field, found: usize| {
        let needed = layouts.get(id.index())?.shape().channels as usize;
        (found != 0 && found != needed).then_some(Fault::PerChannel { field, found, needed })
    };
    let preprocessing = &input.preprocessing;
    faults.extend(per_channel(input.layout, "mean", preprocessing.mean.len()));
    faults.extend(per_channel(input.layout, "std", preprocessing.std.len()));
    faults.extend(per_channel(output.layout, "labels", output.labels.len()));
    if preprocessing.mean.iter().any(|v| !v.is_finite()) {
        faults.push(Fault::NotFinite);
    }
    let bad = preprocessing.std.iter().find(|v| !(v.is_normal() && **v > 0.0));
    faults.extend(bad.map(|&v| Fault::Deviation(v)));
    let ranges = [input.range, output.range].into_iter().flatten();
    faults.extend(ranges.filter(|range| !range.is_ordered()).map(Fault::Interval));
    let layout = |id: LayoutId| layouts.get(id.index());
    let (from, to) = (layout(input.layout), layout(output.layout));
    let mut bad: Vec<Fault> = from.and_then(|layout| bad_ports(&input.ports, layout)).into_iter().collect();
    bad.extend(to.and_then(|layout| bad_ports(&output.ports, layout)));
    if let (Some(from), Some(to), true) = (from, to, bad.is_empty()) {
        let (inputs, results) =
            (batch(&input.ports, from.shape().len()), batch(&output.ports, to.shape().len()));
        bad.extend((inputs != results).then_some(Fault::Batch { inputs, results }));
    }
    faults.extend(bad);
    faults.extend(to.and_then(|layout| bad_tail(output, layout.shape().len())));
    faults
}

/// The first port of an end that leaves its tensors, or is not repeated for each of several.
fn bad_ports(ports: &[Port], layout: &Layout) -> Option<Fault> {
    let len = layout.shape().len();
    let batch = batch(ports, len);
    if batch == 1 || ports.len() > MAX_PORTS {
        return bad_port(ports, len);
    }
    let one = &ports[..ports.len() / batch];
    match batch.is_multiple_of(layout.members()) && ports == batch_ports(one, len, batch) {
        true => bad_port(one, len),
        false => bad_port(ports, len),
    }
}

/// The first port that leaves the tensor or takes numbers of the one before it.
fn bad_port(ports: &[Port], len: usize) -> Option<Fault> {
    let mut end = 0;
    let fault = |port: &Port| Some(Fault::Port(repeated(&port.name)));
    for (i, port) in ports.iter().enumerate() {
        match port.range(len) {
            Some(range) if i < MAX_PORTS && range.start >= end => end = range.end,
            _ => return fault(port),
        }
    }
    None
}

/// The first tail that starts nowhere, cannot take its scores, or has names for another number of classes.
fn bad_tail(output: &OutputSpec, len: usize) -> Option<Fault> {
    let fits = |tail: &Tail| {
        let scores = match output.ports.get(tail.port as usize) {
            Some(port) => port.n_numbers(),
            None => (tail.port == 0 && output.ports.is_empty()).then_some(len),
        };
        scores.is_some_and(|n| tail.fits(n))
    };
    let is_bad = |(i, tail): &(usize, &Tail)| *i >= MAX_PORTS || !fits(tail);
    output.tails.iter().enumerate().find(is_bad).map(|(_, tail)| Fault::Tail(repeated(&tail.name)))
}
