//! The distinct rotations of a map, found without listing its diagonals: a program whose plans or keys are wrong is
//! refused before anything grows with its weights.

use super::dense::for_each_rotation;
use super::diagonals::Frame;
use super::pairing::{Pairing, Placement};
use super::walk::for_each_piece;
use super::{Geometry, LinearError, Operand, member_pairs};
use crate::constants::Constants;
use crate::layout::{Layout, MAX_SLOTS};
use crate::rotation::Rotation;

/// The rotations that the diagonals of Σ op(input) into `output` have, sorted.
///
/// # Errors
/// When an operation does not fit its weights or layouts, or there is nothing to pair.
pub(crate) fn distinct_rotations(
    terms: &[Operand<'_>],
    output: &Layout,
    pairing: Pairing,
    constants: &Constants,
) -> Result<Vec<Rotation>, LinearError> {
    let frame = Frame::new(terms, output, pairing)?;
    // Amounts lie within half the slots of the largest ring around zero.
    let middle = MAX_SLOTS as usize;
    let mut seen = vec![false; 2 * middle + 1];
    let mut reached = vec![false; frame.n_sums()];
    for term in terms {
        let op = Geometry::new(term.op, term.input.shape(), output.shape(), constants)?;
        let placement = Placement::new(term.input, output, pairing, frame.half);
        let mut mark = |sum: usize, rotation: Rotation| {
            seen[(middle as i64 + rotation.amount()) as usize] = true;
            reached[sum] = true;
        };
        if op.is_dense() {
            member_pairs(term.input, output, op.weight_members())?;
            for_each_rotation(term.input, output, placement, |o, _, rotation| {
                mark(placement.sum(o).0, rotation);
            });
        } else {
            let used = op.used(constants)?;
            let layouts = (term.input, output);
            for_each_piece(
                &op,
                layouts,
                placement,
                |weight| used[weight],
                |found| {
                    mark(found.spot.sum, found.spot.rotation);
                },
            )?;
        }
    }
    // A sum that nothing reaches has one diagonal of zeros.
    seen[middle] |= reached.contains(&false);
    let amounts = (0..seen.len()).filter(|&at| seen[at]).map(|at| at as i64 - middle as i64);
    Ok(amounts.map(|amount| Rotation::new(amount, 2 * middle)).collect())
}
