//! Routes of arrows between placed boxes, as SVG paths.

use std::collections::BTreeMap;

use super::columns::{BOX, Column, Columns, MARGIN};
use super::drawing::Drawing;
use super::lanes::{Lanes, Via};

/// Radius of a corner.
const CORNER: f64 = 8.0;
/// From one arrow that changes columns to the next.
const STEP: f64 = 7.0;
/// Height in which an arrow changes lanes.
const BEND: f64 = 20.0;

/// The path of every arrow.
pub(super) fn routes(drawing: &Drawing, lanes: &Lanes, columns: &Columns) -> Vec<String> {
    // Arrows that leave a column run beside each other, those of one source together.
    let mut tracks: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    let mut used = vec![0_usize; columns.columns.len()];
    drawing
        .edges
        .iter()
        .zip(&lanes.via)
        .map(|(&(from, to), &via)| {
            let (a, b) = (columns.column[from], columns.column[to]);
            let (start, end) = (below(columns.at[from]), above(columns.at[to]));
            if a == b {
                return inside(&columns.columns[a], start, end, via);
            }
            let track = *tracks.entry((from, a)).or_insert_with(|| {
                used[a] += 1;
                used[a] - 1
            });
            across(columns, (a, b), start, end, via, track.min(4))
        })
        .collect()
}

fn below((x, y): (f64, f64)) -> (f64, f64) {
    (x, y + BOX.1 / 2.0)
}

/// Where arrows arrive at a box.
pub(super) fn above((x, y): (f64, f64)) -> (f64, f64) {
    (x, y - BOX.1 / 2.0)
}

/// Down one column, in a lane where boxes are passed.
fn inside(column: &Column, start: (f64, f64), end: (f64, f64), via: Via) -> String {
    let mut path = format!("M{:.1} {:.1}", start.0, start.1);
    if via != Via::Direct {
        let x = column.lane(via);
        bend(&mut path, start, (x, start.1 + BEND));
        path.push_str(&format!("V{:.1}", end.1 - BEND));
        bend(&mut path, (x, end.1 - BEND), end);
    } else {
        bend(&mut path, start, end);
    }
    path
}

/// Out at the bottom of one column, up between the columns, and in at the top of another.
fn across(
    columns: &Columns,
    (a, b): (usize, usize),
    start: (f64, f64),
    end: (f64, f64),
    via: Via,
    track: usize,
) -> String {
    let offset = STEP * track as f64;
    let bottom = columns.columns[a].bottom() + 14.0 + offset;
    let top = MARGIN - 14.0 - offset;
    let gutter = columns.columns[a].right + 12.0 + offset;
    let (leave, enter) = match via {
        Via::Direct => (start.0, end.0),
        via => (columns.columns[a].lane(via), columns.columns[b].lane(via)),
    };
    let mut path = format!("M{:.1} {:.1}", start.0, start.1);
    let mut from = start;
    if via != Via::Direct {
        from = (leave, start.1 + BEND);
        bend(&mut path, start, from);
    }
    // The last bend only changes lanes if the first box of the column is passed.
    let direct = (end.1 - BEND) < top + 2.0 * CORNER;
    let enter = if direct { end.0 } else { enter };
    corners(&mut path, &[(leave, bottom), (gutter, bottom), (gutter, top), (enter, top)], from);
    if direct {
        path.push_str(&format!("V{:.1}", end.1));
    } else {
        path.push_str(&format!("V{:.1}", end.1 - BEND));
        bend(&mut path, (enter, end.1 - BEND), end);
    }
    path
}

/// A straight line where lanes agree, otherwise a curve that leaves and arrives upright.
fn bend(path: &mut String, from: (f64, f64), to: (f64, f64)) {
    if (from.0 - to.0).abs() < 0.05 {
        path.push_str(&format!("V{:.1}", to.1));
        return;
    }
    let middle = (from.1 + to.1) / 2.0;
    path.push_str(&format!("C{:.1} {middle:.1} {:.1} {middle:.1} {:.1} {:.1}", from.0, to.0, to.0, to.1));
}

/// Straight lines with round corners at all points; the line goes on downwards from the last.
fn corners(path: &mut String, points: &[(f64, f64)], from: (f64, f64)) {
    let mut previous = from;
    for (index, &(x, y)) in points.iter().enumerate() {
        let next = points.get(index + 1).copied().unwrap_or((x, y + 4.0 * CORNER));
        let toward = |(px, py): (f64, f64)| {
            let (dx, dy) = (px - x, py - y);
            let length = dx.hypot(dy).max(f64::MIN_POSITIVE);
            let reach = CORNER.min(length / 2.0);
            (x + dx / length * reach, y + dy / length * reach)
        };
        let (before, after) = (toward(previous), toward(next));
        path.push_str(&format!(
            "L{:.1} {:.1}Q{x:.1} {y:.1} {:.1} {:.1}",
            before.0, before.1, after.0, after.1
        ));
        previous = (x, y);
    }
}

#[cfg(test)]
mod tests {
    use super::super::lanes::tests::drawing;
    use super::*;

    #[test]
    fn every_arrow_ends_at_its_box() {
        let mut edges: Vec<(usize, usize)> = (0..40).map(|i| (i, i + 1)).collect();
        edges.extend([(2, 9), (3, 38)]);
        let drawing = drawing(41, &edges);
        let lanes = Lanes::new(&drawing);
        let columns = Columns::new(&drawing, &lanes);
        for (path, &(_, to)) in routes(&drawing, &lanes, &columns).iter().zip(&edges) {
            let y = format!("{:.1}", above(columns.at[to]).1);
            assert!(path.ends_with(&y), "{path} does not end at {y}");
        }
    }
}
