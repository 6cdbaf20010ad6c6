//! What it takes to find the diagonals of a map, computed before anything is done.
//!
//! A step is a few nanoseconds, and a few bytes while a map is checked.

use super::walk::matches;
use super::{Geometry, LinearError, Operand, member_pairs, valid_range};
use crate::constants::Constants;
use crate::layout::Layout;

/// Steps per channel of a layout: where it begins is written down.
const CHANNEL_STEPS: u64 = 16;
/// Steps per coordinate whose slot is written down.
const COORDINATE_STEPS: u64 = 8;

/// Steps of finding the diagonals of Σ op(input) into `output`, not less than it takes.
///
/// # Errors
/// When an operation does not fit its weights or layouts.
pub(crate) fn steps_of(
    terms: &[Operand<'_>],
    output: &Layout,
    constants: &Constants,
) -> Result<u64, LinearError> {
    terms.iter().try_fold(0u64, |sum, term| Ok(sum.saturating_add(term_steps(term, output, constants)?)))
}

fn term_steps(term: &Operand<'_>, output: &Layout, constants: &Constants) -> Result<u64, LinearError> {
    let (input, to) = (term.input, output.shape());
    let op = Geometry::new(term.op, input.shape(), to, constants)?;
    let n_pairs = member_pairs(input, output, op.weight_members())?.len() as u64;
    let members = input.members().max(output.members()) as u64;
    let weights = product(&[op.n_weights() as u64, op.weight_members() as u64]);
    let ends = [input, output].map(|layout| u64::from(layout.shape().channels));
    let fixed = [weights, product(&[CHANNEL_STEPS, ends[0]]), product(&[CHANNEL_STEPS, ends[1]]), n_pairs];
    let (height, width) = (u64::from(to.height), u64::from(to.width));
    let own = if op.is_dense() {
        let [rows, columns] = [output, input].map(|layout| layout.shape().len() as u64);
        let listed = |layout: &Layout| {
            product(&[COORDINATE_STEPS, layout.members() as u64, layout.shape().len() as u64])
        };
        // What slots hold is written into tables of a period, once the map is built.
        let table = |layout: &Layout| product(&[layout.n_cts() as u64, layout.period() as u64]);
        vec![
            listed(input).saturating_add(listed(output)),
            table(input).saturating_add(table(output)),
            product(&[input.n_cts() as u64, output.n_cts() as u64]),
            product(&[members, rows, columns]),
        ]
    } else {
        let [rows, columns] = matches(&op, input, output);
        let pieces = [if rows { 1 } else { height }, if columns { 1 } else { width }];
        // Looking for free rows walks through the output rows of every offset that lead outside; most do at one of the ends.
        let outside = |offset: i64| {
            let inside = valid_range(to.height as usize, input.shape().height as usize, op.stride[0], offset);
            height - (inside.len() as u64).min(height)
        };
        let free_rows = match rows && input.channels_per_ct() == 1 {
            true => {
                let rows = op.offsets(0).map(outside).iter().sum::<u64>().min(height);
                product(&[op.n_offsets(), rows, width, input.members() as u64])
            }
            false => 0,
        };
        vec![product(&[op.n_taps(), n_pairs, pieces[0], pieces[1]]), free_rows, input.period() as u64]
    };
    Ok(fixed.into_iter().chain(own).fold(0, u64::saturating_add))
}

fn product(factors: &[u64]) -> u64 {
    factors.iter().fold(1, |product, &factor| product.saturating_mul(factor))
}
