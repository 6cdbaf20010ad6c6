//! Draws a program: one box per layer, with its level, sublevel and scale.

use super::drawing::{Drawing, DrawnNode, Family};
use super::html::Tip;
use super::layers::{Layer, LayerKind};
use super::profile::Measured;
use super::units;

/// Boxes and arrows of a program.
pub(super) fn draw(layers: &[Layer], measured: Option<&Measured>) -> Drawing {
    let edges =
        layers.iter().enumerate().flat_map(|(to, layer)| layer.operands.iter().map(move |&from| (from, to)));
    Drawing { edges: edges.collect(), nodes: layers.iter().map(|layer| node(layer, measured)).collect() }
}

/// What a layer is called in drawings and tables.
pub(super) fn title(layer: &Layer) -> &'static str {
    match layer.kind {
        LayerKind::Input => "input",
        LayerKind::Linear => "linear map",
        LayerKind::Product => "product",
        LayerKind::Sum => "sum",
    }
}

/// All figures of a layer.
pub(super) fn tip(layer: &Layer, measured: Option<&Measured>) -> Tip {
    let work = &layer.work;
    let resident = measured.and_then(|m| m.resident_bytes[layer.index]);
    let some = |n: usize| if n == 0 { String::new() } else { units::count(n as u64) };
    Tip::new(&layer.name)
        .line("computes", title(layer))
        .line("shape", &layer.shape)
        .line("level", layer.at())
        .line("scale", units::power(layer.scale_bits))
        .line(
            "ciphertexts",
            format!("{}, {} of their slots used", layer.ciphertexts, units::percent(layer.slots_used)),
        )
        .line("rotations", some(work.rotations))
        .line("plaintext products", some(work.plaintext_products))
        .line("ciphertext products", some(work.ciphertext_products))
        .line("time, predicted", units::seconds(layer.seconds))
        .line("time, measured", measured.map_or_else(String::new, |m| units::seconds(m.seconds[layer.index])))
        .line("memory, predicted", units::bytes(layer.bytes()))
        .line("memory, measured", resident.map_or_else(String::new, units::bytes))
        .line("noise in the result", noise(layer))
}

/// The noise of a layer as a power of two, with its share.
pub(super) fn noise(layer: &Layer) -> String {
    if layer.error > 0.0 {
        format!("{}, {} of the variance", units::power(layer.error.log2()), units::percent(layer.error_share))
    } else {
        String::new()
    }
}

/// The end of a layer's name in the model, which tells it from its neighbors; what it computes if it has none.
fn short_name(layer: &Layer) -> String {
    // Exporters write whole paths, and some a word before every name.
    let last = layer.name.rsplit('/').find(|part| !part.is_empty()).unwrap_or_default();
    match last.strip_prefix("node_").unwrap_or(last) {
        "" => title(layer).to_owned(),
        name => name.to_owned(),
    }
}

fn node(layer: &Layer, measured: Option<&Measured>) -> DrawnNode {
    DrawnNode {
        label: short_name(layer),
        detail: format!("{} · {}", title(layer), layer.shape),
        mark: layer.at(),
        family: match layer.kind {
            LayerKind::Input => Family::Port,
            LayerKind::Linear => Family::Linear,
            LayerKind::Product => Family::Product,
            LayerKind::Sum => Family::Free,
        },
        changed: false,
        tip: tip(layer, measured),
    }
}
