//! Coordinates: the ranks of a drawing, folded into columns that are read like those of a newspaper.
//!
//! A network of a hundred ranks is a thread when drawn straight. Columns break where few arrows cross.

use super::drawing::Drawing;
use super::lanes::{Lanes, Via};

/// Size of a box.
pub(super) const BOX: (f64, f64) = (156.0, 34.0);
/// From one rank to the next.
pub(super) const RANK: f64 = 52.0;
/// From one lane of boxes to the next.
const WIDE: f64 = BOX.0 + 26.0;
/// From one lane of arrows to the next.
const NARROW: f64 = 14.0;
/// Room between columns, without the lanes of arrows.
const GUTTER: f64 = 44.0;
/// Room above and below the columns, where arrows change columns.
pub(super) const MARGIN: f64 = 44.0;
/// Width over height that the columns should give.
const ASPECT: f64 = 1.6;
/// Columns that are tried.
const MAX_COLUMNS: usize = 24;

/// A layout: places of boxes, and of the columns they stand in.
#[derive(Clone, Debug)]
pub(super) struct Columns {
    /// Center of every box.
    pub(super) at: Vec<(f64, f64)>,
    /// Column of every box.
    pub(super) column: Vec<usize>,
    /// The columns from left to right.
    pub(super) columns: Vec<Column>,
    pub(super) width: f64,
    pub(super) height: f64,
}

/// One column.
#[derive(Clone, Copy, Debug)]
pub(super) struct Column {
    /// Center of lane 0.
    pub(super) x: f64,
    /// Right end of its boxes.
    pub(super) right: f64,
    /// First rank, and one past the last.
    pub(super) ranks: (usize, usize),
}

impl Column {
    /// Lower end of its last box.
    pub(super) fn bottom(&self) -> f64 {
        MARGIN + BOX.1 + RANK * (self.ranks.1 - self.ranks.0).saturating_sub(1) as f64
    }

    /// Where a lane runs.
    pub(super) fn lane(&self, via: Via) -> f64 {
        match via {
            Via::Direct => self.x,
            Via::Left(lane) => self.x - BOX.0 / 2.0 - 14.0 - NARROW * lane as f64,
            Via::Right(lane) => self.x + WIDE * lane as f64,
        }
    }
}

impl Columns {
    pub(super) fn new(drawing: &Drawing, lanes: &Lanes) -> Self {
        let most = MAX_COLUMNS.min(lanes.n_ranks.max(1));
        let candidates = (1..=most).map(|n_columns| Self::folded(drawing, lanes, n_columns));
        let distance = |c: &Self| (c.width / c.height.max(1.0) / ASPECT).ln().abs();
        candidates.min_by(|a, b| distance(a).total_cmp(&distance(b))).expect("one column is always possible")
    }

    fn folded(drawing: &Drawing, lanes: &Lanes, n_columns: usize) -> Self {
        let breaks = breaks(drawing, lanes, n_columns);
        let mut columns: Vec<Column> = Vec::new();
        let mut x = 0.0;
        for ranks in breaks.windows(2).map(|pair| (pair[0], pair[1])) {
            let (left, right) = extent(drawing, lanes, ranks);
            let center = x + GUTTER / 2.0 + left + BOX.0 / 2.0;
            let end = center + right + BOX.0 / 2.0;
            columns.push(Column { x: center, right: end, ranks });
            x = end + GUTTER / 2.0;
        }
        let column_of = |rank: usize| columns.iter().position(|c| rank < c.ranks.1).unwrap_or(0);
        let column: Vec<usize> = lanes.rank.iter().map(|&r| column_of(r)).collect();
        let place = |node: usize| {
            let c = &columns[column[node]];
            let row = (lanes.rank[node] - c.ranks.0) as f64;
            (c.lane(Via::Right(lanes.lane[node])), MARGIN + BOX.1 / 2.0 + RANK * row)
        };
        let at: Vec<(f64, f64)> = (0..drawing.nodes.len()).map(place).collect();
        let height = at.iter().map(|p| p.1).fold(0.0, f64::max) + BOX.1 / 2.0 + MARGIN;
        Self { at, column, columns, width: x, height }
    }
}

/// Room that lanes need to the left of the boxes of lane 0, and to their right.
fn extent(drawing: &Drawing, lanes: &Lanes, (first, end): (usize, usize)) -> (f64, f64) {
    let (mut left, mut right) = (0.0_f64, 0.0_f64);
    let inside = (0..drawing.nodes.len()).filter(|&n| (first..end).contains(&lanes.rank[n]));
    inside.for_each(|n| right = right.max(WIDE * lanes.lane[n] as f64));
    for (&(from, to), via) in drawing.edges.iter().zip(&lanes.via) {
        let passes = lanes.rank[from] + 1 < end && lanes.rank[to] > first;
        match via {
            Via::Left(lane) if passes => left = left.max(14.0 + NARROW * *lane as f64),
            Via::Right(lane) if passes => right = right.max(WIDE * *lane as f64),
            _ => {}
        }
    }
    (left, right)
}

/// First ranks of the columns, and the number of ranks: near an even split, where few sources are still needed.
fn breaks(drawing: &Drawing, lanes: &Lanes, n_columns: usize) -> Vec<usize> {
    // How many values are read at or after a rank that were made before it.
    let mut last_use = vec![0; drawing.nodes.len()];
    drawing.edges.iter().for_each(|&(from, to)| last_use[from] = last_use[from].max(lanes.rank[to]));
    let mut alive = vec![0_usize; lanes.n_ranks + 1];
    for (node, &last) in last_use.iter().enumerate() {
        (lanes.rank[node] + 1..=last).for_each(|rank| alive[rank] += 1);
    }
    // Several arrows of one value cross a break at the same cost, but not as neatly as one.
    let mut arrows = vec![0_usize; lanes.n_ranks + 1];
    for &(from, to) in &drawing.edges {
        (lanes.rank[from] + 1..=lanes.rank[to]).for_each(|rank| arrows[rank] += 1);
    }
    let size = lanes.n_ranks as f64 / n_columns as f64;
    let mut found = vec![0];
    for index in 1..n_columns {
        let ideal = size * index as f64;
        let (reach, nearest) = (size / 3.0, ideal.round() as usize);
        let first = ((ideal - reach).ceil() as usize).min(nearest).max(found[index - 1] + 1);
        let candidates = first..=((ideal + reach) as usize).max(nearest);
        let cost =
            |rank: &usize| (alive[*rank], arrows[*rank], ((*rank as f64 - ideal).abs() * 16.0) as usize);
        match candidates.filter(|&rank| rank < lanes.n_ranks).min_by_key(cost) {
            Some(rank) => found.push(rank),
            None => break,
        }
    }
    found.push(lanes.n_ranks);
    found
}

#[cfg(test)]
mod tests {
    use super::super::lanes::tests::drawing;
    use super::*;

    #[test]
    fn boxes_never_overlap() {
        let mut edges: Vec<(usize, usize)> = (0..60).map(|i| (i, i + 1)).collect();
        edges.extend((0..60).step_by(5).map(|i| (i, i + 4)));
        edges.extend([(3, 61), (61, 6)]);
        edges.sort_by_key(|e| e.0.max(e.1));
        // Node 61 breaks the topological order of ids, so it is left out of the chain here.
        edges.retain(|&(a, b)| a < b);
        let drawing = drawing(62, &edges);
        let columns = Columns::new(&drawing, &Lanes::new(&drawing));
        assert!(columns.columns.len() > 2);
        for (i, a) in columns.at.iter().enumerate() {
            for b in &columns.at[..i] {
                assert!((a.0 - b.0).abs() >= BOX.0 || (a.1 - b.1).abs() >= BOX.1);
            }
        }
        assert!(columns.width / columns.height < 4.0);
    }

    #[test]
    fn columns_of_a_chain_are_about_as_long_as_each_other() {
        for n in 1..=40 {
            let chain: Vec<(usize, usize)> = (1..n).map(|i| (i - 1, i)).collect();
            let drawing = drawing(n, &chain);
            let columns = Columns::new(&drawing, &Lanes::new(&drawing)).columns;
            let lengths: Vec<usize> = columns.iter().map(|c| c.ranks.1 - c.ranks.0).collect();
            let (least, most) = (lengths.iter().min().unwrap(), lengths.iter().max().unwrap());
            assert!(most - least <= 1, "{n} boxes in columns of {lengths:?}");
        }
    }

    #[test]
    fn columns_break_where_one_arrow_crosses() {
        let chain: Vec<(usize, usize)> = (0..47).map(|i| (i, i + 1)).collect();
        let skips: Vec<(usize, usize)> = (1..45).step_by(4).map(|i| (i, i + 3)).collect();
        let drawing = drawing(48, &[chain, skips].concat());
        let lanes = Lanes::new(&drawing);
        let columns = Columns::new(&drawing, &lanes);
        for column in &columns.columns[1..] {
            let rank = column.ranks.0;
            let crossing =
                drawing.edges.iter().filter(|e| lanes.rank[e.0] < rank && rank <= lanes.rank[e.1]).count();
            assert_eq!(crossing, 1, "at rank {rank}");
        }
    }
}
