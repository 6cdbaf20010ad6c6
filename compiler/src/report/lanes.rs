//! Ranks and lanes of a drawing: the layers of a layered layout, and which column of a layer a box or a long arrow takes.
//!
//! Networks are long chains with a few branches and skips. The longest chain runs straight down the middle; further
//! boxes take lanes to its right, arrows that pass boxes take narrow lanes to its left, short ones inside.

use super::drawing::Drawing;

/// Where things are before they have coordinates.
#[derive(Clone, Debug)]
pub(super) struct Lanes {
    /// Longest path from a source, per node.
    pub(super) rank: Vec<usize>,
    /// Lane of a node: 0 in the middle, 1, 2, … to the right.
    pub(super) lane: Vec<usize>,
    /// What every arrow passes on its way.
    pub(super) via: Vec<Via>,
    pub(super) n_ranks: usize,
}

/// What lies between the ends of an arrow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Via {
    /// Nothing: the ends are neighbors.
    Direct,
    /// A narrow lane, counted from the middle to the left.
    Left(usize),
    /// The lane of boxes to the right, which the arrow's end is in.
    Right(usize),
}

impl Lanes {
    pub(super) fn new(drawing: &Drawing) -> Self {
        let n = drawing.nodes.len();
        let (mut into, mut out) = (vec![Vec::new(); n], vec![Vec::new(); n]);
        for &(from, to) in &drawing.edges {
            into[to].push(from);
            out[from].push(to);
        }
        let mut rank = vec![0; n];
        for node in 0..n {
            rank[node] = into[node].iter().map(|&from: &usize| rank[from] + 1).max().unwrap_or(0);
        }
        let n_ranks = rank.iter().map(|r| r + 1).max().unwrap_or(0);
        let lane = node_lanes(&rank, &into, &out);
        let via = arrow_lanes(drawing, &rank, &lane);
        Self { rank, lane, via, n_ranks }
    }
}

/// The longest chain in lane 0; every other chain in the first lane that is free for its ranks.
fn node_lanes(rank: &[usize], into: &[Vec<usize>], out: &[Vec<usize>]) -> Vec<usize> {
    const NONE: usize = usize::MAX;
    let mut lane = vec![NONE; rank.len()];
    let last = (0..rank.len()).max_by_key(|&node| (rank[node], node));
    let mut next = last;
    while let Some(node) = next {
        lane[node] = 0;
        next = into[node].iter().copied().find(|&from| rank[from] + 1 == rank[node]);
    }
    let mut taken: Vec<Vec<(usize, usize)>> = Vec::new();
    for first in 0..rank.len() {
        if lane[first] != NONE {
            continue;
        }
        let mut chain = vec![first];
        while let Some(&node) =
            out[chain[chain.len() - 1]].iter().find(|&&to| lane[to] == NONE && !chain.contains(&to))
        {
            chain.push(node);
        }
        let end = chain[chain.len() - 1];
        // The arrows at both ends of a chain stay in its lane.
        let from = into[first].iter().map(|&f| rank[f] + 1).min().unwrap_or(rank[first]);
        let to = out[end].iter().map(|&t| rank[t] - 1).max().unwrap_or(rank[end]);
        let index = reserve(&mut taken, (from, to));
        chain.iter().for_each(|&node| lane[node] = index + 1);
    }
    lane
}

fn arrow_lanes(drawing: &Drawing, rank: &[usize], lane: &[usize]) -> Vec<Via> {
    let mut via = vec![Via::Direct; drawing.edges.len()];
    // Arrows of one source run together: by source, the arrows and the last rank they pass.
    let mut bundles: Vec<(usize, usize, Vec<usize>)> = Vec::new();
    for (index, &(from, to)) in drawing.edges.iter().enumerate() {
        if rank[to] == rank[from] + 1 {
            continue;
        }
        let right = lane[from].max(lane[to]);
        if right > 0 && (lane[from] == 0 || lane[to] == 0 || lane[from] == lane[to]) {
            via[index] = Via::Right(right);
            continue;
        }
        match bundles.iter_mut().find(|(source, ..)| *source == from) {
            Some((_, last, arrows)) => {
                *last = (*last).max(rank[to] - 1);
                arrows.push(index);
            }
            None => bundles.push((from, rank[to] - 1, vec![index])),
        }
    }
    bundles.sort_by_key(|(from, last, _)| (last - rank[*from], rank[*from]));
    let mut taken = Vec::new();
    for (from, last, arrows) in bundles {
        let index = reserve(&mut taken, (rank[from] + 1, last));
        arrows.into_iter().for_each(|arrow| via[arrow] = Via::Left(index));
    }
    via
}

/// The first lane without anything in a range of ranks, which is taken by it.
fn reserve(taken: &mut Vec<Vec<(usize, usize)>>, (first, last): (usize, usize)) -> usize {
    let free = |lane: &Vec<(usize, usize)>| lane.iter().all(|&(a, b)| b < first || last < a);
    let index = taken.iter().position(free).unwrap_or_else(|| {
        taken.push(Vec::new());
        taken.len() - 1
    });
    taken[index].push((first, last));
    index
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::drawing::{DrawnNode, Family};
    use super::super::html::Tip;
    use super::*;

    pub(in super::super) fn drawing(n: usize, edges: &[(usize, usize)]) -> Drawing {
        let node = |i: usize| DrawnNode {
            label: i.to_string(),
            detail: String::new(),
            mark: String::new(),
            family: Family::Linear,
            changed: false,
            tip: Tip::new("node"),
        };
        Drawing { nodes: (0..n).map(node).collect(), edges: edges.to_vec() }
    }

    #[test]
    fn a_chain_is_straight() {
        let lanes = Lanes::new(&drawing(4, &[(0, 1), (1, 2), (2, 3)]));
        assert_eq!((lanes.lane, lanes.n_ranks), (vec![0; 4], 4));
        assert!(lanes.via.iter().all(|v| *v == Via::Direct));
    }

    #[test]
    fn a_skip_takes_a_narrow_lane_and_a_branch_a_wide_one() {
        // 0 → 1 → 2 → 4 with a skip 0 → 4 and a branch 0 → 3 → 4.
        let lanes = Lanes::new(&drawing(5, &[(0, 1), (1, 2), (0, 3), (2, 4), (3, 4), (0, 4)]));
        assert_eq!(lanes.lane, [0, 0, 0, 1, 0]);
        assert_eq!(lanes.via[4], Via::Right(1));
        assert_eq!(lanes.via[5], Via::Left(0));
    }

    #[test]
    fn nested_skips_do_not_share_a_lane_but_consecutive_ones_do() {
        let chain: Vec<(usize, usize)> = (0..8).map(|i| (i, i + 1)).collect();
        let lanes = Lanes::new(&drawing(9, &[&chain[..], &[(0, 6), (1, 3), (4, 6)]].concat()));
        assert_eq!(lanes.via[8..], [Via::Left(1), Via::Left(0), Via::Left(0)]);
    }
}
