//! An interface is well formed: parameters, layouts, ends and keys, as far as they can be judged without instructions.

use super::error::Fault;
use super::header::{bad_prediction, ends, predicted, texts};
use super::{CheckError, CheckErrors, MAX_ERRORS, Place, checked_layouts};
use crate::interface::InterfaceSpec;
use crate::layout::Layout;
use crate::params::{Level, Params};
use crate::program::RotationKey;
use crate::rotation::Rotation;
use crate::scale::Scale;

/// The checked parameters and layouts of an interface.
pub(crate) fn check_interface(spec: &InterfaceSpec) -> Result<(Params, Vec<Layout>), CheckErrors> {
    let params = Params::new(spec.params.clone())
        .map_err(|error| CheckErrors::new(vec![CheckError::at(Place::Header, error)]))?;
    let mut errors = Vec::new();
    let layouts = checked_layouts(&spec.layouts, &params, &mut errors);
    if !errors.is_empty() {
        return Err(CheckErrors::new(errors));
    }
    let mut faults = ends(&spec.input, &spec.output, &layouts);
    faults.extend(texts(&spec.origin, &spec.input, &spec.output));
    let ends = [
        (spec.input.level, spec.input.scale, spec.input.layout),
        (spec.output_level, spec.output_scale, spec.output.layout),
    ];
    for (level, scale, layout) in ends {
        faults.extend(position(&params, level, scale));
        let slots = params.at(level).slots();
        let period = layouts.get(layout.index()).map(Layout::period).filter(|&period| period > slots);
        faults.extend(period.map(|period| Fault::Period { period, slots, level }));
    }
    faults.extend(bad_prediction(predicted(&spec.prediction)));
    errors.extend(faults.into_iter().map(|fault| CheckError::at(Place::Header, fault)));
    errors.extend(keys(spec, &params).into_iter().map(|fault| CheckError::at(Place::Keys, fault)));
    if errors.is_empty() { Ok((params, layouts)) } else { Err(CheckErrors::new(errors)) }
}

/// What is wrong with a level of the chain and a scale there.
fn position(params: &Params, level: Level, scale: Scale) -> Option<Fault> {
    let max = params.max_level();
    let log2_q = params.log2_q_at(level);
    if level > max {
        Some(Fault::AboveChain { level, max })
    } else if scale.value() < 1.0 {
        Some(Fault::Underflow(scale))
    } else {
        (scale.log2() >= log2_q).then_some(Fault::Overflow { scale, log2_q, level })
    }
}

fn keys(spec: &InterfaceSpec, params: &Params) -> Vec<Fault> {
    let mut faults = Vec::new();
    let (found, needed) = (spec.lower_keys.len(), params.lower().len());
    if found != needed {
        faults.push(Fault::SegmentKeys { found, needed });
    }
    let others = [spec.relin_level, spec.conjugation_level].into_iter().flatten();
    segment_keys(&spec.rotation_keys, others, params, &mut faults);
    for (keys, lower) in spec.lower_keys.iter().zip(params.lower()) {
        let others = [keys.entry, keys.relin, keys.conjugation].into_iter().flatten();
        segment_keys(&keys.rotations, others, lower.params(), &mut faults);
        if keys.entry.is_some() && lower.entry().is_none() {
            faults.push(Fault::UselessKey("entry".to_owned()));
        }
    }
    // Nor does a key of one segment reach down into the next.
    let lowest = params.lower().iter().map(|lower| Some(lower.params().max_level())).chain([None]);
    let own = std::iter::once((&spec.rotation_keys, [spec.relin_level, spec.conjugation_level, None]));
    let lower =
        spec.lower_keys.iter().map(|keys| (&keys.rotations, [keys.relin, keys.conjugation, keys.entry]));
    for ((rotations, others), below) in own.chain(lower).zip(lowest) {
        let levels = rotations.iter().map(|key| key.level).chain(others.into_iter().flatten());
        let bad = levels.filter(|&level| below.is_some_and(|below| level <= below));
        faults.extend(bad.take(MAX_ERRORS).map(|level| Fault::UselessKey(format!("level {level}"))));
    }
    faults.truncate(MAX_ERRORS);
    faults
}

/// What is wrong with the keys of one segment.
fn segment_keys(
    rotations: &[RotationKey],
    others: impl Iterator<Item = Level>,
    params: &Params,
    faults: &mut Vec<Fault>,
) {
    let max = params.max_level();
    let mut last: Option<Rotation> = None;
    for key in rotations {
        if faults.len() >= MAX_ERRORS {
            return;
        }
        let rotation = key.rotation;
        let in_order = last.is_none_or(|last| last < rotation);
        if rotation.is_zero() || !rotation.is_normalized(params.slots()) || !in_order {
            faults.push(Fault::UselessKey(format!("rotation {rotation}")));
        }
        last = Some(rotation);
    }
    let levels = rotations.iter().map(|key| key.level).chain(others);
    faults.extend(
        levels.filter(|&level| level > max).take(MAX_ERRORS).map(|level| Fault::AboveChain { level, max }),
    );
}
