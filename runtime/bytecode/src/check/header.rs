//! The description of input and output.

use super::error::Fault;
use crate::ids::LayoutId;
use crate::layout::Layout;
use crate::program::ProgramSpec;

/// What is wrong with layouts, preprocessing, labels, ranges and peaks.
pub(super) fn header(spec: &ProgramSpec, layouts: &[Layout]) -> Vec<Fault> {
    let mut faults = Vec::new();
    let input = &spec.input;
    for id in [input.layout, spec.output.layout] {
        if id.index() >= layouts.len() {
            faults.push(Fault::Missing { what: format!("layout {id}") });
        }
    }
    let per_channel = |id: LayoutId, field, found: usize| {
        let needed = layouts.get(id.index())?.shape().channels as usize;
        (found != 0 && found != needed).then_some(Fault::PerChannel { field, found, needed })
    };
    let preprocessing = &input.preprocessing;
    faults.extend(per_channel(input.layout, "mean", preprocessing.mean.len()));
    faults.extend(per_channel(input.layout, "std", preprocessing.std.len()));
    faults.extend(per_channel(spec.output.layout, "labels", spec.output.labels.len()));
    if preprocessing.mean.iter().any(|v| !v.is_finite()) {
        faults.push(Fault::NotFinite);
    }
    let bad = preprocessing.std.iter().find(|v| !(v.is_normal() && **v > 0.0));
    faults.extend(bad.map(|&v| Fault::Deviation(v)));
    let ranges = [input.range, spec.output.range].into_iter().flatten();
    faults.extend(ranges.filter(|range| !range.is_ordered()).map(Fault::Interval));
    let peaks = spec.layers.iter().map(|layer| layer.peak);
    faults.extend(peaks.filter(|peak| !(peak.is_finite() && *peak >= 0.0)).map(Fault::Peak));
    faults
}
