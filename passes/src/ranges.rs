//! Records where the numbers of every value lie, per channel (ours).
//!
//! With calibration inputs the clear evaluator measures the ranges. Without, they are estimated: a batch normalization has
//! mean β and deviation γ (the importer notes β ± 4γ on it), and means and variances flow from there through the other
//! operations as if channels were independent and normal; a range is the mean ± 4 deviations.
//!
//! Before: verified tensor graph. After: the same graph, with ranges on its nodes. Later passes carry them along.

mod moments;

use fhec_ir::{Graph, ValueRange, eval};

use crate::pass::{Changed, Pass, PassCx, PassError};

/// The pass.
pub struct RecordRanges;

impl Pass for RecordRanges {
    fn name(&self) -> &'static str {
        "record-ranges"
    }

    fn summary(&self) -> &'static str {
        "record the range of every value, from calibration inputs or batch-norm statistics"
    }

    fn run(&self, graph: &mut Graph, cx: &mut PassCx) -> Result<Changed, PassError> {
        if cx.calibration.is_empty() {
            moments::estimate(graph);
            cx.log("ranges estimated from batch-norm statistics".into());
        } else {
            measure(graph, &cx.calibration)?;
            cx.log(format!("ranges measured on {} inputs", cx.calibration.len()));
        }
        Ok(Changed::Yes)
    }
}

/// Records the range every node takes over the inputs (each a list of numbers per graph input), over all members. Where numbers
/// leave all bounds there is no range.
///
/// # Errors
/// When an input does not fit the graph.
pub fn measure(graph: &mut Graph, inputs: &[Vec<Vec<f64>>]) -> Result<(), PassError> {
    let mut ranges: Vec<Option<ValueRange>> = vec![None; graph.bound()];
    for input in inputs {
        let slices: Vec<&[f64]> = input.iter().map(Vec::as_slice).collect();
        for member in graph.members() {
            eval::evaluate_with(graph, &slices, member, |id, value| {
                let n = value.shape.c;
                let empty = || ValueRange { lo: vec![f64::INFINITY; n], hi: vec![f64::NEG_INFINITY; n] };
                let range = ranges[id.index()].get_or_insert_with(empty);
                for (c, channel) in value.data.chunks(value.shape.area()).enumerate() {
                    range.lo[c] = channel.iter().copied().fold(range.lo[c], f64::min);
                    range.hi[c] = channel.iter().copied().fold(range.hi[c], f64::max);
                }
            })?;
        }
    }
    let ids: Vec<_> = graph.ids().collect();
    for id in ids {
        if let Some(range) = ranges[id.index()].take() {
            let is_finite = range.lo.iter().chain(&range.hi).all(|end| end.is_finite());
            graph.node_mut(id).range = is_finite.then_some(range);
        }
    }
    Ok(())
}
