//! Diagonals of a matrix over a flattened input, looked up slot by slot.

use super::pairing::Placement;
use super::{LinearError, ResolvedOp, member_pairs, source_member};
use crate::layout::Layout;
use crate::rotation::Rotation;
use std::collections::BTreeSet;

/// Which coordinate lives in a slot.
#[derive(Clone, Copy, Debug)]
struct Held {
    member: u32,
    index: u32,
}

/// What the slots of one period of a ciphertext hold.
type Table = Vec<Option<Held>>;

/// The matrix and, per ciphertext, the coordinates held in one period of its slots.
#[derive(Clone, Debug)]
pub(super) struct DenseTerm {
    inputs: Vec<Table>,
    outputs: Vec<Table>,
    members: [usize; 2],
    values: Vec<f64>,
    member_step: usize,
    columns: usize,
    placement: Placement,
}

impl DenseTerm {
    /// Builds the tables and finds the non-empty (output, input, rotation).
    pub(super) fn build(
        op: ResolvedOp,
        input: &Layout,
        output: &Layout,
        placement: Placement,
    ) -> Result<(Self, Vec<(u32, u32, Rotation)>), LinearError> {
        member_pairs(input, output, op.values.members)?;
        let term = Self {
            inputs: tables(input),
            outputs: tables(output),
            members: [input.members(), output.members()],
            member_step: op.values.member_step(),
            values: op.values.data,
            columns: input.shape().len(),
            placement,
        };
        let mut diagonals = BTreeSet::new();
        for_each_rotation(input, output, placement, |o, i, rotation| {
            diagonals.insert((placement.sum(o).0 as u32, i as u32, rotation));
        });
        Ok((term, diagonals.into_iter().collect()))
    }

    /// Adds one part of a diagonal to `out` (one period), moved right by `shift`.
    pub(super) fn write(
        &self,
        (sum, input, rotation): (u32, u32, Rotation),
        imaginary: bool,
        shift: usize,
        out: &mut [f64],
    ) {
        let Some((output, moved)) = self.placement.part(sum as usize, imaginary) else { return };
        let Some(rows) = self.outputs.get(output) else { return };
        let columns = &self.inputs[input as usize];
        let wrap = out.len() - 1;
        let offset = rotation.left(columns.len());
        for slot in 0..rows.len().max(columns.len()) {
            let row = rows[(slot + rows.len() - moved) & (rows.len() - 1)];
            if let Some(value) = self.weight(row, columns[(slot + offset) & (columns.len() - 1)]) {
                out[(slot + shift) & wrap] += value;
            }
        }
    }

    fn weight(&self, row: Option<Held>, column: Option<Held>) -> Option<f64> {
        let (row, column) = (row?, column?);
        if !meet(self.members, row.member, column.member) {
            return None;
        }
        let member = row.member.max(column.member) as usize;
        let position = row.index as usize * self.columns + column.index as usize;
        Some(self.values[member * self.member_step + position])
    }
}

/// Whether a member of the output depends on a member of the input; all do where the output has one only.
fn meet([from, to]: [usize; 2], row: u32, column: u32) -> bool {
    to == 1 || source_member(from, to, row as usize) == column as usize
}

/// Visits the distinct rotations between every output and every input ciphertext: every pair of coordinates of members
/// that meet is looked at once.
pub(super) fn for_each_rotation(
    input: &Layout,
    output: &Layout,
    placement: Placement,
    mut visit: impl FnMut(usize, usize, Rotation),
) {
    let window = placement.window();
    let (members_in, members_out) = (input.members(), output.members());
    let source = |row: &u32| source_member(members_in, members_out, *row as usize);
    let (columns, rows) = (slots_in_use(input), slots_in_use(output));
    let (mut seen, mut found) = (vec![false; window], Vec::new());
    for (o, rows) in rows.iter().enumerate() {
        for (i, columns) in columns.iter().enumerate() {
            for (member, from) in columns {
                // Members of the output that meet this one are neighbours; a single one meets all.
                let rows = match members_out {
                    1 => &rows[..],
                    _ => {
                        let start = rows.partition_point(|(row, _)| source(row) < *member as usize);
                        let end = rows.partition_point(|(row, _)| source(row) <= *member as usize);
                        &rows[start..end]
                    }
                };
                for (_, to) in rows {
                    let rotation = from.wrapping_sub(*to) as usize & (window - 1);
                    if !std::mem::replace(&mut seen[rotation], true) {
                        found.push(rotation);
                    }
                }
            }
            for rotation in found.drain(..) {
                seen[rotation] = false;
                visit(o, i, Rotation::new(rotation as i64, window));
            }
        }
    }
}

/// Member and slot of every coordinate, for each ciphertext, members in order.
fn slots_in_use(layout: &Layout) -> Vec<Vec<(u32, u32)>> {
    let mut slots = vec![Vec::new(); layout.n_cts()];
    let shape = layout.shape();
    for member in 0..layout.members() {
        for channel in 0..shape.channels as usize {
            for y in 0..shape.height as usize {
                for x in 0..shape.width as usize {
                    let (ct, slot) = layout.slot(member, channel, y, x);
                    slots[ct].push((member as u32, slot as u32));
                }
            }
        }
    }
    slots
}

/// The tables of a layout, one per ciphertext.
fn tables(layout: &Layout) -> Vec<Table> {
    let mut tables = vec![vec![None; layout.period()]; layout.n_cts()];
    let shape = layout.shape();
    for member in 0..layout.members() {
        let mut index = 0;
        for channel in 0..shape.channels as usize {
            for y in 0..shape.height as usize {
                for x in 0..shape.width as usize {
                    let (ct, slot) = layout.slot(member, channel, y, x);
                    tables[ct][slot] = Some(Held { member: member as u32, index });
                    index += 1;
                }
            }
        }
    }
    tables
}
