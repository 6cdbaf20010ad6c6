//! Levels as a table, Markdown, JSON or RON.

use std::fmt::Write as _;

use comfy_table::{CellAlignment, Table, presets};

use super::ModelLevels;
use crate::report::cores;

/// How a report is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// For people.
    #[default]
    Table,
    /// For scripts: a list with one object per model.
    Json,
    /// The same in Rusty Object Notation.
    Ron,
    /// For documents.
    Markdown,
}

/// What a table shows beside the answer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shown {
    /// The nodes of the last configuration: a wide table.
    pub nodes: bool,
    /// How long the passes took.
    pub timings: bool,
    /// Price of a core for an hour.
    pub price: Option<f64>,
}

/// The text of a report.
pub fn render(reports: &[ModelLevels], format: Format, shown: Shown) -> String {
    let mut reports = reports.to_vec();
    if !shown.timings {
        reports.iter_mut().for_each(|r| r.timings.clear());
    }
    match format {
        Format::Json => serde_json::to_string_pretty(&reports).expect("a report is plain data") + "\n",
        Format::Ron => {
            let pretty = ron::ser::PrettyConfig::default();
            ron::ser::to_string_pretty(&reports, pretty).expect("a report is plain data") + "\n"
        }
        Format::Table | Format::Markdown => tables(&reports, format, shown),
    }
}

fn tables(reports: &[ModelLevels], format: Format, shown: Shown) -> String {
    let mut text = String::new();
    if reports.len() > 1 {
        push(&mut text, &overview(reports), format, "levels");
    }
    for report in reports {
        for (pass, printed) in &report.printed {
            let _ = writeln!(text, "{} after {pass}:\n{printed}", report.model);
        }
        text.push_str(&answer(report, shown.price));
        push(&mut text, &configurations(report), format, "");
        if format == Format::Table && reports.len() == 1 {
            text.push_str(WORDS);
        }
        if shown.nodes {
            push(&mut text, &nodes(report), format, "nodes of the last configuration");
        }
        if !report.timings.is_empty() {
            push(&mut text, &timings(report), format, "passes of the last configuration");
        }
        if let Some(agreement) = report.agreement {
            let _ = writeln!(
                text,
                "verified: {} random inputs, largest difference to the original model {:.2e} of its range\n",
                agreement.inputs, agreement.error
            );
        }
    }
    text
}

/// What the columns and rows mean, for those who see them for the first time.
const WORDS: &str = "\
levels    pieces of modulus on the longest path: more need a larger ring
depth     multiplications on the longest path
ct mults  products of two encrypted numbers, pt mults: with a weight
none      as imported; F: layers fused; R: factors moved to other layers
FRT       both, and two multiplications to a level: what `fhec build` builds
";

/// The answer: levels, and what they cost if that was asked for.
fn answer(report: &ModelLevels, price: Option<f64>) -> String {
    let before = report.configurations.first().map_or(0, |row| row.levels);
    let after = report.configurations.last().map_or(0, |row| row.levels);
    let mut text = format!("{} needs {after} levels ({before} as imported)", report.model);
    match report.cost {
        None => text.push('\n'),
        Some(cost) => {
            if cost.levels != after {
                let _ = write!(text, ", {} once scheduled", cost.levels);
            }
            let _ = write!(text, "; N = 2^{}\n{}", cost.log_n, cost.estimate.words(cores(), price));
        }
    }
    text
}

/// One row per model: the shape of the paper's Table 1.
fn overview(reports: &[ModelLevels]) -> (Vec<String>, Vec<Vec<String>>) {
    let names: Vec<&str> = reports.first().map(|r| r.levels.keys().copied().collect()).unwrap_or_default();
    let mut header = vec!["model".to_owned(), "degree".to_owned()];
    header.extend(names.iter().map(|n| n.to_string()));
    let rows = reports.iter().map(|r| {
        let mut row = vec![r.model.clone(), r.degree.to_string()];
        row.extend(r.levels.values().map(u32::to_string));
        row
    });
    (header, rows.collect())
}

fn configurations(report: &ModelLevels) -> (Vec<String>, Vec<Vec<String>>) {
    let header = ["configuration", "levels", "depth", "ct mults", "pt mults", "nodes"].map(String::from);
    let rows = report.configurations.iter().map(|r| {
        let numbers = [u64::from(r.levels), u64::from(r.depth), r.ct_mults, r.pt_mults, r.nodes as u64];
        std::iter::once(r.name.to_owned()).chain(numbers.map(|n| n.to_string())).collect()
    });
    (header.to_vec(), rows.collect())
}

fn nodes(report: &ModelLevels) -> (Vec<String>, Vec<Vec<String>>) {
    let header = ["node", "cost", "depth", "from", "passes"].map(String::from);
    let rows = report.nodes.iter().map(|n| {
        let origins = match &n.origins[..] {
            [] => String::new(),
            [one] => one.clone(),
            [first, .., last] => format!("{first} … {last}"),
        };
        vec![n.text.clone(), n.cost.to_string(), n.depth.to_string(), origins, n.passes.join(", ")]
    });
    (header.to_vec(), rows.collect())
}

fn timings(report: &ModelLevels) -> (Vec<String>, Vec<Vec<String>>) {
    let rows = report.timings.iter().map(|(pass, ms)| vec![pass.to_string(), format!("{ms:.1}")]);
    (vec!["pass".into(), "ms".into()], rows.collect())
}

fn push(text: &mut String, (header, rows): &(Vec<String>, Vec<Vec<String>>), format: Format, title: &str) {
    let mut table = Table::new();
    let preset =
        if format == Format::Markdown { presets::ASCII_MARKDOWN } else { presets::UTF8_FULL_CONDENSED };
    table.load_style(preset);
    table.set_header(header.clone());
    for row in rows {
        table.add_row(row.clone());
    }
    let is_number = |i: usize| rows.iter().all(|r| r[i].parse::<f64>().is_ok());
    for i in (0..header.len()).filter(|&i| !rows.is_empty() && is_number(i)) {
        if let Some(column) = table.column_mut(i) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let gap = if format == Format::Markdown { "\n" } else { "" };
    let heading = match (title, format) {
        ("", _) => String::new(),
        (title, Format::Markdown) => format!("### {title}\n"),
        (title, _) => format!("{title}\n"),
    };
    let _ = writeln!(text, "{heading}{gap}{table}\n");
}
