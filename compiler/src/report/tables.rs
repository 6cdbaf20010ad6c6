//! Tables of the page: levels, passes, layers, parameters.

use std::fmt::Write as _;

use fhe_bytecode::params::TowerIdx;
use fhe_bytecode::{CheckedProgram, Keys, Level, Params};

use super::html::{escape, with_powers};
use super::layers::Layer;
use super::profile::Measured;
use super::stages::{Stage, Stages};
use super::{program_drawing, units};

/// A column: its heading, and whether it holds numbers.
type Column = (&'static str, bool);

const TEXT: bool = false;
const NUMBER: bool = true;

/// A table; cells are escaped here.
fn table(columns: &[Column], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let class = |numeric: bool| if numeric { " class=\"num\"" } else { "" };
    let mut out = "<div class=\"scroll\"><table><thead><tr>".to_owned();
    for (name, numeric) in columns {
        let _ = write!(out, "<th scope=\"col\"{}>{}</th>", class(*numeric), escape(name));
    }
    out.push_str("</tr></thead><tbody>\n");
    for row in rows {
        out.push_str("<tr>");
        for (cell, (_, numeric)) in row.iter().zip(columns) {
            let _ = write!(out, "<td{}>{}</td>", class(*numeric), with_powers(cell));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>\n");
    out
}

/// Levels by configuration as bars, as `fhec levels` counts them.
pub(super) fn levels(stages: &Stages) -> String {
    let most = stages.configurations.iter().map(|r| r.levels).max().unwrap_or(1).max(1);
    let meaning = |name: &str| match name {
        "none" => "as imported",
        "F" => "node fusing",
        "R" => "weight redistribution",
        "FR" => "both",
        _ => "both, with tower reuse: what is built",
    };
    let bars = stages.configurations.iter().map(|row| {
        let width = 100.0 * f64::from(row.levels) / f64::from(most);
        format!(
            "<tr><th scope=\"row\">{}</th><td>{}</td><td class=\"bar\"><svg viewBox=\"0 0 100 10\" preserveAspectRatio=\"none\" \
             aria-hidden=\"true\"><rect width=\"{width:.2}\" height=\"10\"/></svg></td><td class=\"num\">{}</td>\
             <td class=\"num muted\">{}</td><td class=\"num muted\">{}</td></tr>\n",
            escape(row.name),
            meaning(row.name),
            row.levels,
            row.nodes,
            units::count(row.pt_mults),
        )
    });
    format!(
        "<div class=\"scroll\"><table class=\"levels\"><thead><tr><th scope=\"col\">passes</th><th scope=\"col\"></th><th scope=\"col\"></th>\
         <th scope=\"col\" class=\"num\">levels</th><th scope=\"col\" class=\"num\">nodes</th>\
         <th scope=\"col\" class=\"num\">products with constants</th></tr></thead><tbody>\n{}</tbody></table></div>\n",
        bars.collect::<String>()
    )
}

/// What every pass did.
pub(super) fn passes(stages: &[Stage]) -> String {
    let columns = [
        ("after", TEXT),
        ("what it does", TEXT),
        ("nodes", NUMBER),
        ("depth", NUMBER),
        ("what it counted", TEXT),
    ];
    let rows = stages.iter().map(|stage| {
        let counted =
            stage.counters.iter().map(|(name, n)| format!("{name} {n}")).collect::<Vec<_>>().join(", ");
        vec![
            stage.name.clone(),
            stage.summary.clone(),
            stage.n_nodes.to_string(),
            stage.depth.to_string(),
            if stage.changed || counted.is_empty() { counted } else { format!("nothing changed; {counted}") },
        ]
    });
    table(&columns, rows)
}

/// All figures of all layers.
pub(super) fn layers(layers: &[Layer], measured: Option<&Measured>) -> String {
    let mut columns = vec![
        ("#", NUMBER),
        ("layer", TEXT),
        ("computes", TEXT),
        ("shape", TEXT),
        ("level", TEXT),
        ("scale", NUMBER),
        ("cts", NUMBER),
        ("slots", NUMBER),
        ("rotations", NUMBER),
        ("products", NUMBER),
        ("time", NUMBER),
    ];
    if measured.is_some() {
        columns.push(("measured", NUMBER));
    }
    columns.extend([("memory", NUMBER), ("noise", NUMBER), ("share", NUMBER)]);
    let rows = layers.iter().enumerate().map(|(i, layer)| {
        let work = &layer.work;
        let mut row = vec![
            i.to_string(),
            layer.name.clone(),
            program_drawing::title(layer).to_owned(),
            layer.shape.clone(),
            layer.at(),
            units::power(layer.scale_bits),
            layer.ciphertexts.to_string(),
            units::percent(layer.slots_used),
            units::count(work.rotations as u64),
            units::count((work.plaintext_products + work.ciphertext_products) as u64),
            units::seconds(layer.seconds),
        ];
        row.extend(measured.map(|m| units::seconds(m.seconds[layer.index])));
        let noise = if layer.error > 0.0 { units::power(layer.error.log2()) } else { "–".to_owned() };
        row.extend([units::bytes(layer.bytes()), noise, units::percent(layer.error_share)]);
        row
    });
    table(&columns, rows)
}

/// How many towers every digit has.
fn digits(params: &Params) -> String {
    let all = (0..params.towers().len() as u16).map(|tower| params.digit_of(TowerIdx(tower)));
    let digits: Vec<usize> = all.collect();
    let sizes: Vec<String> = digits.chunk_by(|a, b| a == b).map(|digit| digit.len().to_string()).collect();
    sizes.join(" ")
}

/// How many towers every level has.
fn level_towers(params: &Params) -> String {
    let levels = (0..=params.max_level().0).map(|level| params.n_towers(Level(level)).to_string());
    levels.collect::<Vec<_>>().join(" ")
}

/// What lower levels have of their own.
fn segments(params: &Params) -> String {
    let one = |segment: &Params| {
        let (level, log_n) = (segment.max_level(), segment.log_n());
        let (n_special, bits) = (segment.special_primes().len(), segment.log2_pq());
        format!("from {level}: N 2^{log_n}, {n_special} special, keys of {bits:.0} bits")
    };
    let all: Vec<String> = params.segments().skip(1).map(one).collect();
    if all.is_empty() { "none".to_owned() } else { all.join("; ") }
}

/// The scheme's parameters.
pub(super) fn parameters(program: &CheckedProgram) -> String {
    let (spec, params) = (program.spec(), program.params());
    let bits = |primes: &[u64]| {
        primes.iter().map(|&p| format!("{:.1}", (p as f64).log2())).collect::<Vec<_>>().join("  ")
    };
    let shape =
        |layout: &fhe_bytecode::Layout| format!("{} in {} ciphertext(s)", layout.shape(), layout.n_cts());
    let bound = match params.security_cap() {
        Some(cap) => format!("at most {cap} bits are 128-bit secure"),
        None => "a toy ring protects nothing".to_owned(),
    };
    let slots = units::count(params.n() as u64 / 2);
    let rows = [
        ("levels", params.max_level().0.to_string()),
        (
            "ring degree N",
            format!("2^{}; {slots} slots, {} layout", params.n().trailing_zeros(), spec.origin.packing),
        ),
        ("modulus of the keys", format!("{:.1} bits; {bound}", params.log2_pq())),
        ("modulus of ciphertexts", format!("{:.1} bits", params.log2_q())),
        ("towers, bits", bits(params.towers())),
        ("special primes, bits", bits(params.special_primes())),
        ("digits of the keys, towers", digits(params)),
        ("towers of the levels, from the last", level_towers(params)),
        ("segments below", segments(params)),
        ("rotation keys", Keys::from(program).n_rotations().to_string()),
        (
            "input",
            format!("{}, scale {}", shape(program.input_layout()), units::power(spec.input.scale.log2())),
        ),
        (
            "output",
            format!(
                "{}, scale {}",
                shape(program.output_layout()),
                units::power(program.output_scale().log2())
            ),
        ),
    ];
    names_and_values(rows)
}

/// Names and values, one row each.
pub(super) fn names_and_values(rows: impl IntoIterator<Item = (&'static str, String)>) -> String {
    let row = |(name, value): (&str, String)| {
        format!("<tr><th scope=\"row\">{name}</th><td class=\"value\">{}</td></tr>\n", with_powers(&value))
    };
    format!(
        "<div class=\"scroll\"><table class=\"parameters\"><tbody>\n{}</tbody></table></div>\n",
        rows.into_iter().map(row).collect::<String>()
    )
}
