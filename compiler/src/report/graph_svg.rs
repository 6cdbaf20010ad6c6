//! A drawing as SVG.

use std::fmt::Write as _;

use super::columns::{BOX, Columns};
use super::drawing::{Drawing, DrawnNode};
use super::edges::{above, routes};
use super::html::{escape, shortened, with_powers_drawn};
use super::lanes::Lanes;

/// Pixels for a unit of a drawing of few boxes, at most.
const LARGEST: f64 = 1.3;
/// Characters of a label and its mark that fit a box.
const LABEL: usize = 17;
/// Characters of the line below that fit a box.
const DETAIL: usize = 26;

/// The picture, with a group that a script may move and scale.
pub(super) fn svg(drawing: &Drawing, title: &str) -> String {
    let lanes = Lanes::new(drawing);
    let columns = Columns::new(drawing, &lanes);
    let mut out = format!(
        "<svg class=\"graph\" viewBox=\"0 0 {:.0} {:.0}\" style=\"--full: {:.0}px\" role=\"img\" aria-label=\"{}\" \
         tabindex=\"0\"><g class=\"scene\">\n",
        columns.width,
        columns.height,
        LARGEST * columns.height,
        escape(title),
    );
    for (path, &(_, to)) in routes(drawing, &lanes, &columns).iter().zip(&drawing.edges) {
        let (x, y) = above(columns.at[to]);
        let _ = writeln!(out, "<path class=\"arrow\" d=\"{path}\"/>");
        let _ = writeln!(out, "<path class=\"head\" d=\"M{x:.1} {y:.1}l-3.6 -6.4h7.2Z\"/>");
    }
    for (node, at) in drawing.nodes.iter().zip(&columns.at) {
        push_box(&mut out, node, *at);
    }
    out.push_str("</g></svg>\n");
    out
}

fn push_box(out: &mut String, node: &DrawnNode, (x, y): (f64, f64)) {
    let changed = if node.changed { " changed" } else { "" };
    let _ = write!(
        out,
        "<g class=\"node {}{changed}\" transform=\"translate({:.1} {:.1})\" {}>",
        node.family.class(),
        x - BOX.0 / 2.0,
        y - BOX.1 / 2.0,
        node.tip.attribute(),
    );
    let _ = write!(out, "<rect width=\"{}\" height=\"{}\" rx=\"6\"/>", BOX.0, BOX.1);
    let _ = write!(
        out,
        "<path class=\"stripe\" d=\"M0.5 6a5.5 5.5 0 0 1 5.5 -5.5V{:.1}a5.5 5.5 0 0 1 -5.5 -5.5Z\"/>",
        BOX.1 - 0.5
    );
    let _ = write!(
        out,
        "<text x=\"13\" y=\"14.5\">{}</text>",
        escape(&shortened(&node.label, LABEL - node.mark.chars().count().min(8)))
    );
    let _ = write!(
        out,
        "<text class=\"detail\" x=\"13\" y=\"27\">{}</text>",
        with_powers_drawn(&shortened(&node.detail, DETAIL))
    );
    if !node.mark.is_empty() {
        let _ = write!(
            out,
            "<text class=\"mark\" x=\"{}\" y=\"14.5\">{}</text>",
            BOX.0 - 8.0,
            escape(&node.mark)
        );
    }
    out.push_str("</g>\n");
}
