//! An interface is well formed: parameters, layouts, ends and keys, as far as they can be judged without instructions.

use super::error::Fault;
use super::header::{bad_prediction, ends, predicted, texts};
use super::{CheckError, CheckErrors, MAX_ERRORS, Place, checked_layouts};
use crate::interface::InterfaceSpec;
use crate::layout::Layout;
use crate::params::{Level, Params};
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
    for (level, scale) in [(spec.input.level, spec.input.scale), (spec.output_level, spec.output_scale)] {
        faults.extend(position(&params, level, scale));
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
    let max = params.max_level();
    let mut last: Option<Rotation> = None;
    for key in &spec.rotation_keys {
        if faults.len() >= MAX_ERRORS {
            return faults;
        }
        let rotation = key.rotation;
        let in_order = last.is_none_or(|last| last < rotation);
        if rotation.is_zero() || !rotation.is_normalized(params.slots()) || !in_order {
            faults.push(Fault::UselessKey(format!("rotation {rotation}")));
        }
        last = Some(rotation);
    }
    let others = [spec.relin_level, spec.conjugation_level].into_iter().flatten();
    let levels = spec.rotation_keys.iter().map(|key| key.level).chain(others);
    faults.extend(
        levels.filter(|&level| level > max).take(MAX_ERRORS).map(|level| Fault::AboveChain { level, max }),
    );
    faults
}
