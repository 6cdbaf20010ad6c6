//! A plan as rows and lists: what is added, and what each sum of rows is multiplied by.

use std::collections::BTreeMap;
use std::ops::Range;

use super::super::{LinearPlan, LinearTerm};
use crate::Rotation;
use fhe_ring::shared::SharedList;

/// All sums of a plan.
pub(super) struct Job {
    /// Distinct rotated inputs, input by input.
    pub(super) rows: Vec<Row>,
    /// Rotations of the rows, zero left out.
    pub(super) steps: Vec<Rotation>,
    /// Distinct diagonals, part by part.
    pub(super) diagonals: Vec<usize>,
    /// What has neither rows nor diagonals in common: the columns of a kernel, since each has its mask and its rotations.
    pub(super) parts: Vec<Part>,
}

/// A rotated input.
pub(super) struct Row {
    pub(super) input: usize,
    /// Position among the steps; none for the input as it is.
    pub(super) step: Option<usize>,
    /// Its place in the order of the parts.
    pub(super) place: usize,
}

/// Rows and diagonals that belong together.
pub(super) struct Part {
    /// Places of its rows.
    pub(super) rows: Range<usize>,
    /// Positions of its diagonals.
    pub(super) diagonals: Range<usize>,
    /// One list per sum; rows and diagonals count from the starts of their ranges.
    pub(super) lists: Vec<SharedList>,
}

impl Job {
    pub(super) fn new(plan: &LinearPlan) -> Self {
        let terms = || plan.groups.iter().flat_map(|group| &group.terms);
        let rows = sorted(terms().map(row_of));
        let diagonals = sorted(terms().map(|term| term.diagonal));
        let steps = sorted(rows.iter().map(|row| row.1).filter(|rotation| !rotation.is_zero()));
        let row = |term: &LinearTerm| rows.binary_search(&row_of(term)).expect("every row is listed");
        let diagonal =
            |term: &LinearTerm| diagonals.binary_search(&term.diagonal).expect("every diagonal is listed");

        let mut sets = Sets::new(rows.len() + diagonals.len());
        terms().for_each(|term| sets.join(row(term), rows.len() + diagonal(term)));
        let (row_places, row_ranges) = places((0..rows.len()).map(|row| sets.find(row)));
        let (diagonal_places, diagonal_ranges) =
            places((0..diagonals.len()).map(|diagonal| sets.find(rows.len() + diagonal)));
        // Every set has rows and diagonals, so both list the same sets.
        let parts =
            row_ranges.into_iter().zip(diagonal_ranges.into_values()).map(|((set, rows), diagonals)| {
                let pair = |term: &LinearTerm| {
                    let own = (diagonal_places[diagonal(term)], row_places[row(term)]);
                    ((own.0 - diagonals.start) as u32, (own.1 - rows.start) as u32)
                };
                let mut of_set = |term: &&LinearTerm| sets.find(row(term)) == set;
                let lists = plan
                    .groups
                    .iter()
                    .map(|group| SharedList::new(group.terms.iter().filter(&mut of_set).map(pair).collect()));
                Part { lists: lists.collect(), rows, diagonals }
            });
        let parts: Vec<Part> = parts.collect();
        let mut in_parts = vec![0; diagonals.len()];
        diagonals.iter().zip(diagonal_places).for_each(|(&diagonal, place)| in_parts[place] = diagonal);
        let step = |rotation| steps.binary_search(&rotation).ok();
        let rows = rows.iter().zip(row_places);
        Self {
            rows: rows
                .map(|(&(input, rotation), place)| Row { input, step: step(rotation), place })
                .collect(),
            diagonals: in_parts,
            parts,
            steps,
        }
    }

    /// Whether any rotation of an input is needed.
    pub(super) fn rotates(&self, input: usize) -> bool {
        self.rows.iter().any(|row| row.input == input && row.step.is_some())
    }
}

fn row_of(term: &LinearTerm) -> (usize, Rotation) {
    (term.input, term.baby)
}

fn sorted<T: Ord>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut items: Vec<T> = items.collect();
    items.sort_unstable();
    items.dedup();
    items
}

/// Places of items in the order of their sets, and the range of every set.
fn places(sets: impl Iterator<Item = usize>) -> (Vec<usize>, BTreeMap<usize, Range<usize>>) {
    let sets: Vec<usize> = sets.collect();
    let mut ranges: BTreeMap<usize, Range<usize>> = BTreeMap::new();
    sets.iter().for_each(|&set| ranges.entry(set).or_default().end += 1);
    let mut end = 0;
    for range in ranges.values_mut() {
        *range = end..end + range.end;
        end = range.end;
    }
    let mut next: BTreeMap<usize, usize> = ranges.iter().map(|(&set, range)| (set, range.start)).collect();
    let mut place = |set| {
        let next = next.get_mut(set).expect("every set has a range");
        *next += 1;
        *next - 1
    };
    (sets.iter().map(&mut place).collect(), ranges)
}

/// Disjoint sets of numbers.
struct Sets(Vec<usize>);

impl Sets {
    fn new(n: usize) -> Self {
        Self((0..n).collect())
    }

    /// The smallest number of a set stands for it.
    fn find(&mut self, mut number: usize) -> usize {
        while self.0[number] != number {
            self.0[number] = self.0[self.0[number]];
            number = self.0[number];
        }
        number
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.find(a), self.find(b));
        self.0[a.max(b)] = a.min(b);
    }
}
