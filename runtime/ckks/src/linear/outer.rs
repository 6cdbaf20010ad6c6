//! The giant steps, and the other automorphisms of sums that are still to be divided by P.

use fhe_bytecode::Level;

use super::LinearPlan;
use crate::key_switch::{First, Halves, KeySwitch, Switch, decompose, mod_down};
use crate::{CkksError, Context, Galois, GaloisKeys};

/// Rotates the inner sums by their giant steps and adds them up, per output.
pub(super) fn outer_sums(
    context: &Context,
    level: Level,
    plan: &LinearPlan,
    sums: Vec<Halves>,
    keys: &GaloisKeys,
) -> Result<Vec<Halves>, CkksError> {
    let mut outputs: Vec<Option<Halves>> = vec![None; plan.n_outputs];
    for (group, sums) in plan.groups.iter().zip(sums) {
        let rotated = match group.giant.is_zero() {
            true => sums,
            false => moved(context, level, &sums, group.giant.into(), keys)?,
        };
        match &mut outputs[group.output] {
            Some(total) => add_assign(context, total, &rotated),
            empty => *empty = Some(rotated),
        }
    }
    outputs.into_iter().map(|output| output.ok_or(CkksError::Plan("an output has no terms"))).collect()
}

/// An automorphism, not the identity, of a sum over the key basis, times P. Only the second half is divided before its key
/// switch.
pub(super) fn moved(
    context: &Context,
    level: Level,
    sum: &Halves,
    automorphism: Galois,
    keys: &GaloisKeys,
) -> Result<Halves, CkksError> {
    let second = mod_down(context, level, &sum[1]);
    let permute = Some(context.automorphism(automorphism.galois_element(context.ring().n())));
    let key = keys.get(automorphism, level)?;
    let digits = &decompose(context, level, &second);
    let switches = &[Switch { key, permute }];
    let switch = KeySwitch { context, digits, first: First::Sum(&sum[0]), switches };
    Ok(switch.times_p().pop().expect("one key gives one result"))
}

/// a ← a + b.
pub(super) fn add_assign(context: &Context, a: &mut Halves, b: &Halves) {
    a.iter_mut().zip(b).for_each(|(a, b)| context.ring().add_assign(a, b));
}
