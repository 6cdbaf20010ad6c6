//! Diagonals of operations made of taps.
//!
//! A diagonal is a list of the pieces that [`super::walk`] finds.

use super::pairing::Placement;
use super::walk::{Found, for_each_piece};
use super::{LinearError, ResolvedOp};
use crate::layout::Layout;
use crate::rotation::Rotation;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// The slots of a diagonal that hold one weight (one per member).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mask {
    slot: u32,
    last_row: u16,
    last_column: u16,
    last_member: u16,
    imaginary: bool,
}

/// One weight over a mask.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub(super) mask: Mask,
    /// Position in the values of the first member concerned.
    weight: u32,
}

/// Where a diagonal starts and ends among the pieces.
pub(super) struct SparseDiagonal {
    pub(super) sum: u32,
    pub(super) input: u32,
    pub(super) rotation: Rotation,
    pub(super) pieces: std::ops::Range<u32>,
}

/// The pieces of one term, grouped by diagonal.
#[derive(Clone, Debug)]
pub(super) struct SparseTerm {
    pieces: Vec<Piece>,
    values: Vec<f64>,
    /// For each weight the first one with the same values in every member; empty if no diagonal asks for it.
    classes: Vec<u32>,
    member_step: usize,
    steps: Steps,
}

/// Distances between neighbours in the output layout.
#[derive(Clone, Copy, Debug)]
struct Steps {
    y: usize,
    x: usize,
    member: usize,
}

impl SparseTerm {
    /// Finds the pieces of an operation between two layouts and groups them by diagonal.
    pub(super) fn build(
        op: ResolvedOp,
        input: &Layout,
        output: &Layout,
        placement: Placement,
    ) -> Result<(Self, Vec<SparseDiagonal>), LinearError> {
        let mut finder = Finder { found: Vec::new(), keys: HashMap::default(), order: Vec::new() };
        let (len, member_step) = (op.values.len(), op.values.member_step());
        let is_used = |weight: usize| op.values.data[weight] != 0.0;
        for_each_piece(op.geometry(), (input, output), placement, is_used, |found| finder.add(found))?;
        if u32::try_from(finder.found.len()).is_err() {
            return Err(LinearError::TooManyPieces);
        }
        let (pieces, diagonals) = finder.grouped();
        let masked = diagonals.iter().any(|diagonal| diagonal.pieces.len() == 1);
        let term = Self {
            pieces,
            classes: if masked { classes(&op.values.data, len, op.values.members) } else { Vec::new() },
            values: op.values.data,
            member_step,
            steps: Steps { y: output.y_step(), x: output.x_step(), member: output.member_step() },
        };
        Ok((term, diagonals))
    }

    /// Adds the real or imaginary pieces to `out` (one period), moved right by `shift`.
    pub(super) fn write(&self, pieces: std::ops::Range<u32>, imaginary: bool, shift: usize, out: &mut [f64]) {
        self.add(pieces, imaginary, shift, out, |weight| weight);
    }

    /// The same with a function of the weights.
    pub(super) fn add(
        &self,
        pieces: std::ops::Range<u32>,
        imaginary: bool,
        shift: usize,
        out: &mut [f64],
        f: impl Fn(f64) -> f64,
    ) {
        let wrap = out.len() - 1;
        let pieces = &self.pieces[pieces.start as usize..pieces.end as usize];
        for piece in pieces.iter().filter(|piece| piece.mask.imaginary == imaginary) {
            let mut weight = piece.weight as usize;
            let mut slot = piece.mask.slot as usize + shift;
            for _ in 0..=piece.mask.last_member {
                let value = f(self.values[weight]);
                let mut row = slot;
                for _ in 0..=piece.mask.last_row {
                    let first = row & wrap;
                    let last = first + usize::from(piece.mask.last_column) * self.steps.x;
                    match out.get_mut(first..=last) {
                        Some(columns) if self.steps.x == 1 => columns.iter_mut().for_each(|x| *x += value),
                        Some(columns) => columns.iter_mut().step_by(self.steps.x).for_each(|x| *x += value),
                        None => {
                            let columns = (first..=last).step_by(self.steps.x);
                            columns.for_each(|column| out[column & wrap] += value);
                        }
                    }
                    row += self.steps.y;
                }
                slot += self.steps.member;
                weight += self.member_step;
            }
        }
    }

    /// Sum of the squares of the slots of these pieces, over one period.
    pub(super) fn energy(&self, pieces: std::ops::Range<u32>) -> f64 {
        let energy = |piece: &Piece| {
            let area = (f64::from(piece.mask.last_row) + 1.0) * (f64::from(piece.mask.last_column) + 1.0);
            let members = 0..=usize::from(piece.mask.last_member);
            area * members
                .map(|m| self.values[piece.weight as usize + m * self.member_step].powi(2))
                .sum::<f64>()
        };
        self.pieces[pieces.start as usize..pieces.end as usize].iter().map(energy).sum()
    }

    /// The mask and weight class of a diagonal that is one weight over one mask.
    pub(super) fn single(&self, pieces: std::ops::Range<u32>) -> Option<(Mask, u32)> {
        match &self.pieces[pieces.start as usize..pieces.end as usize] {
            [piece] => Some((piece.mask, self.classes[piece.weight as usize])),
            _ => None,
        }
    }
}

/// For every weight (of every member) the first weight of that member with the same values from it on.
fn classes(values: &[f64], len: usize, members: usize) -> Vec<u32> {
    // Rows are told apart member by member: the class so far and the next value give the class from there.
    let mut row_class = vec![0u32; len];
    for member in 0..members {
        let mut first: HashMap<(u32, u64), u32, BuildHasherDefault<MulHasher>> = HashMap::default();
        for (weight, class) in row_class.iter_mut().enumerate() {
            let value = values[member * len + weight].to_bits();
            *class = *first.entry((*class, value)).or_insert(weight as u32);
        }
    }
    (0..members).flat_map(|m| row_class.iter().map(move |class| (m * len) as u32 + class)).collect()
}

type Key = (u32, u32, Rotation);

/// Collects pieces and numbers the diagonals in order of appearance.
struct Finder {
    found: Vec<(u32, Piece)>,
    keys: HashMap<Key, u32, BuildHasherDefault<MulHasher>>,
    order: Vec<Key>,
}

impl Finder {
    fn add(&mut self, Found { spot, in_ct, run: [rows, columns], members, weight }: Found) {
        let key = (spot.sum as u32, in_ct as u32, spot.rotation);
        let diagonal = *self.keys.entry(key).or_insert_with(|| {
            self.order.push(key);
            self.order.len() as u32 - 1
        });
        // Layouts have at most 2^16 rows, columns and members, so the last of them has 16 bits.
        let mask = Mask {
            slot: spot.slot as u32,
            last_row: (rows - 1) as u16,
            last_column: (columns - 1) as u16,
            last_member: (members - 1) as u16,
            imaginary: spot.imaginary,
        };
        self.found.push((diagonal, Piece { mask, weight: weight as u32 }));
    }

    /// Counting sort of the pieces by diagonal, diagonals sorted by key.
    fn grouped(self) -> (Vec<Piece>, Vec<SparseDiagonal>) {
        let mut sorted: Vec<u32> = (0..self.order.len() as u32).collect();
        sorted.sort_unstable_by_key(|&d| self.order[d as usize]);
        let mut counts = vec![0u32; self.order.len()];
        self.found.iter().for_each(|(d, _)| counts[*d as usize] += 1);
        let mut next = vec![0u32; self.order.len()];
        let mut diagonals = Vec::with_capacity(sorted.len());
        let mut start = 0;
        for &d in &sorted {
            let (sum, input, rotation) = self.order[d as usize];
            let end = start + counts[d as usize];
            next[d as usize] = start;
            diagonals.push(SparseDiagonal { sum, input, rotation, pieces: start..end });
            start = end;
        }
        let Some(&(_, filler)) = self.found.first() else { return (Vec::new(), diagonals) };
        let mut pieces = vec![filler; self.found.len()];
        for (d, piece) in self.found {
            pieces[next[d as usize] as usize] = piece;
            next[d as usize] += 1;
        }
        (pieces, diagonals)
    }
}

/// A multiplicative hasher for small integer keys; the keys come from our own arithmetic.
#[derive(Default)]
struct MulHasher(u64);

impl Hasher for MulHasher {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 29)
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&b| self.write_u64(u64::from(b)));
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }

    fn write_i32(&mut self, value: i32) {
        self.write_u64(u64::from(value as u32));
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0.rotate_left(5) ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}
