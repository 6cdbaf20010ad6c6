//! The pieces of an operation made of taps, one after the other.
//!
//! A tap between layouts whose steps match meets one rotation over a whole rectangle of outputs; where the
//! steps differ it falls apart into rows or single slots.

use super::free_rows::FreeRows;
use super::pairing::{Placement, Spot};
use super::{Geometry, LinearError, member_pairs, valid_range};
use crate::layout::Layout;

/// One weight (one per member) over a rectangle of outputs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    /// Where the products are computed.
    pub(super) spot: Spot,
    /// Input ciphertext.
    pub(super) in_ct: usize,
    /// Rows and columns.
    pub(super) run: [usize; 2],
    /// Members that are treated alike.
    pub(super) members: usize,
    /// Position in the values of the first of them.
    pub(super) weight: usize,
}

/// Visits the pieces of an operation between two layouts whose weights are used.
pub(super) fn for_each_piece(
    op: &Geometry,
    (input, output): (&Layout, &Layout),
    placement: Placement,
    is_used: impl Fn(usize) -> bool,
    mut visit: impl FnMut(Found),
) -> Result<(), LinearError> {
    let pairs = member_pairs(input, output, op.weight_members())?;
    let (stride, member_step) = (op.stride, op.member_step());
    let (from, to) = (input.shape(), output.shape());
    let origins = |layout: &Layout| -> Vec<(usize, usize)> {
        (0..layout.shape().channels as usize).map(|channel| layout.channel_origin(channel)).collect()
    };
    let (in_origins, out_origins) = (origins(input), origins(output));
    let [rows_match, columns_match] = matches(op, input, output);
    let mut free_rows = FreeRows::new(input);
    let input_period = input.period() as i64;
    op.for_each_tap(|tap| {
        let mut ys = valid_range(to.height as usize, from.height as usize, stride[0], tap.dy);
        let xs = valid_range(to.width as usize, from.width as usize, stride[1], tap.dx);
        if ys.is_empty() || xs.is_empty() {
            return;
        }
        // A matching step keeps the whole range in one rotation; else every row or column is alone.
        if rows_match && free_rows.read_zeros((tap.dy, tap.dx), stride, to.height as usize, &xs) {
            ys = 0..to.height as usize;
        }
        let run = [if rows_match { ys.len() } else { 1 }, if columns_match { xs.len() } else { 1 }];
        let ((in_ct, in_origin), (out_ct, out_origin)) =
            (in_origins[tap.in_channel], out_origins[tap.out_channel]);
        for pair in &pairs {
            let in_origin = in_origin + pair.input * input.member_step();
            let out_origin = out_origin + pair.output * output.member_step();
            let weight = tap.weight + pair.weight * member_step;
            // Members that share their weights need one look.
            let looks = if member_step == 0 { 1 } else { pair.count };
            if !(0..looks).any(|m| is_used(weight + m * member_step)) {
                continue;
            }
            for y in ys.clone().step_by(run[0]) {
                for x in xs.clone().step_by(run[1]) {
                    let from_y = (y * stride[0]) as i64 + tap.dy;
                    let from_x = (x * stride[1]) as i64 + tap.dx;
                    let offset = from_y * input.y_step() as i64 + from_x * input.x_step() as i64;
                    let in_slot = (in_origin as i64 + offset).rem_euclid(input_period) as usize;
                    let out_slot = out_origin + y * output.y_step() + x * output.x_step();
                    let spot = placement.spot((out_ct, out_slot), in_slot);
                    visit(Found { spot, in_ct, run, members: pair.count, weight });
                }
            }
        }
    });
    Ok(())
}

/// Whether rows and columns keep their distance from input to output.
pub(super) fn matches(op: &Geometry, input: &Layout, output: &Layout) -> [bool; 2] {
    [op.stride[0] * input.y_step() == output.y_step(), op.stride[1] * input.x_step() == output.x_step()]
}
