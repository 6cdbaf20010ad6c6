//! The page: one HTML file with everything in it.

use std::fmt::Write as _;

use fhe_bytecode::CheckedProgram;

use super::drawing::Family;
use super::html::escape;
use super::layers::layers;
use super::profile::Measured;
use super::stages::Stages;
use super::{chart, figures, graph_svg, program_drawing, tables};
use crate::compile::SelfCheck;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
/// Nothing is loaded, and no script runs but the one that is written with this mark.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'nonce-report'";

/// What a report is about.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    /// The program.
    pub program: &'a CheckedProgram,
    /// The passes that led to it, where they ran just now.
    pub stages: Option<&'a Stages>,
    /// Bits between the largest result and the deviation of its error, where results were seen.
    pub precision_bits: Option<f64>,
    /// What an evaluation took.
    pub measured: Option<&'a Measured>,
    /// The program on the inputs it was calibrated on, where it was built just now.
    pub check: Option<&'a SelfCheck>,
    /// How the page was made: names and values, in the words of whoever made it.
    pub provenance: &'a [(&'static str, String)],
}

impl Page<'_> {
    /// The page as HTML.
    #[must_use]
    pub fn html(&self) -> String {
        let origin = &self.program.spec().origin;
        let title = escape(if origin.model.is_empty() { "program" } else { &origin.model });
        let mut out = format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <title>{title} · fhec report</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
             <header><p class=\"kicker\">fhec report</p><h1>{title}</h1>\n<p class=\"lead\">{}</p></header>\n<main>\n",
            escape(&self.lead()),
        );
        out.push_str(&figures::html(self));
        if !self.provenance.is_empty() {
            out.push_str("<details class=\"provenance\"><summary>How this page was made</summary>\n");
            out.push_str(&tables::names_and_values(self.provenance.iter().cloned()));
            out.push_str("</details>\n");
        }
        let layers = layers(self.program);
        if let Some(stages) = self.stages {
            section(
                &mut out,
                "levels",
                "Levels",
                "What the passes save: levels by configuration. Fewer levels are smaller keys and less time.",
            );
            out.push_str(&tables::levels(stages));
            out.push_str("<details><summary>What every pass did and counted</summary>\n");
            out.push_str(&tables::passes(&stages.stages));
            out.push_str("</details>\n</section>\n");
        }
        self.graphs(&mut out, &layers);
        section(
            &mut out,
            "layers",
            "Layer by layer",
            "One column for each layer of the program, in the order of evaluation. Point at a column for its figures.",
        );
        let _ = writeln!(
            out,
            "<div class=\"scroll charts\">{}</div>",
            chart::svg(self.program, &layers, self.measured)
        );
        out.push_str("<details><summary>All figures as a table</summary>\n");
        out.push_str(&tables::layers(&layers, self.measured));
        out.push_str("</details>\n</section>\n");
        section(&mut out, "parameters", "Parameters", "");
        out.push_str(&tables::parameters(self.program));
        out.push_str("</section>\n</main>\n");
        let _ = write!(
            out,
            "<footer>Made by {}. Predictions come from a cost model; figures called measured come from a profile of \
             <code>fhe-run bench</code> or <code>fhe-run eval</code>.</footer>\n\
             <div id=\"tip\" role=\"status\" hidden></div>\n<script nonce=\"report\">\n{SCRIPT}</script>\n</body>\n</html>\n",
            escape(if origin.producer.is_empty() { "fhec" } else { &origin.producer }),
        );
        out
    }

    fn lead(&self) -> String {
        let spec = self.program.spec();
        format!(
            "{} → {}, {} layers, {} instructions",
            self.program.input_layout().shape(),
            self.program.output_layout().shape(),
            spec.layers.len(),
            spec.instructions.len()
        )
    }

    /// One drawing per stage behind tabs; the last is the program.
    fn graphs(&self, out: &mut String, layers: &[super::Layer]) {
        section(
            out,
            "graphs",
            "Graph",
            "Read down the columns. Drag to move, Ctrl and wheel or the buttons to zoom, point at a box for shape, level and scale. \
             Boxes with a heavy outline were made or changed by the pass.",
        );
        let mut drawings: Vec<(&str, &str, String)> = Vec::new();
        for stage in self.stages.iter().flat_map(|s| &s.stages) {
            drawings.push((
                &stage.name,
                &stage.summary,
                graph_svg::svg(&stage.drawing, &format!("graph, {}", stage.name)),
            ));
        }
        let program = program_drawing::draw(layers, self.measured);
        drawings.push((
            "program",
            "the scheduled layers, with level, sublevel and scale",
            graph_svg::svg(&program, "program"),
        ));
        let last = drawings.len() - 1;
        out.push_str("<div class=\"tabs\" role=\"tablist\" aria-label=\"Stage\">\n");
        for (i, (name, ..)) in drawings.iter().enumerate() {
            let (selected, index) = if i == last { ("true", "0") } else { ("false", "-1") };
            let _ = writeln!(
                out,
                "<button role=\"tab\" id=\"tab-{i}\" aria-controls=\"stage-{i}\" aria-selected=\"{selected}\" tabindex=\"{index}\">{}</button>",
                escape(name)
            );
        }
        out.push_str(
            "</div>\n<div class=\"viewer\">\n<div class=\"tools\" role=\"group\" aria-label=\"Zoom\">\
             <button data-zoom=\"out\" aria-label=\"Zoom out\">−</button><button data-zoom=\"fit\">fit</button>\
             <button data-zoom=\"in\" aria-label=\"Zoom in\">+</button></div>\n",
        );
        for (i, (name, summary, svg)) in drawings.iter().enumerate() {
            // The model and the program are what a printed page shows.
            let printed = if i == 0 || i == last { " printed" } else { "" };
            let hidden = if i == last { "" } else { " hidden" };
            let _ = write!(
                out,
                "<figure class=\"stage{printed}\" role=\"tabpanel\" id=\"stage-{i}\" aria-labelledby=\"tab-{i}\"{hidden}>\n{svg}\
                 <figcaption><b>{}</b> {}</figcaption></figure>\n",
                escape(name),
                escape(summary)
            );
        }
        out.push_str("</div>\n<ul class=\"key\">");
        for (family, name) in Family::ALL {
            let _ = write!(out, "<li><span class=\"swatch {}\"></span>{name}</li>", family.class());
        }
        out.push_str("<li class=\"note\">number in a corner: multiplications it costs, or its level</li></ul>\n</section>\n");
    }
}

/// Opens a section.
fn section(out: &mut String, id: &str, title: &str, about: &str) {
    let _ = write!(out, "<section id=\"{id}\" aria-labelledby=\"h-{id}\">\n<h2 id=\"h-{id}\">{title}</h2>\n");
    if !about.is_empty() {
        let _ = writeln!(out, "<p class=\"about\">{}</p>", escape(about));
    }
}
