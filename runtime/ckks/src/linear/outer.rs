//! The giant steps.

use fhe_bytecode::Level;

use super::LinearPlan;
use crate::key_switch::{First, Halves, KeySwitch, Switch, decompose, mod_down};
use crate::{CkksError, Context, GaloisKeys};

/// Rotates the inner sums by their giant steps and adds them up, per output.
pub(super) fn outer_sums(
    context: &Context,
    level: Level,
    plan: &LinearPlan,
    sums: Vec<Halves>,
    keys: &GaloisKeys,
) -> Result<Vec<Halves>, CkksError> {
    let ring = context.ring();
    let mut outputs: Vec<Option<Halves>> = vec![None; plan.n_outputs];
    for (group, sums) in plan.groups.iter().zip(sums) {
        let rotated = if group.giant.is_zero() {
            sums
        } else {
            let second = mod_down(context, level, &sums[1]);
            let permute = Some(context.automorphism(group.giant.galois_element(ring.n())));
            let key = keys.get(group.giant, level)?;
            let digits = &decompose(context, level, &second);
            let switches = &[Switch { key, permute }];
            let switch = KeySwitch { context, digits, first: First::Sum(&sums[0]), switches };
            switch.times_p().pop().expect("one key gives one result")
        };
        match &mut outputs[group.output] {
            Some(total) => {
                total.iter_mut().zip(&rotated).for_each(|(total, half)| ring.add_assign(total, half))
            }
            empty => *empty = Some(rotated),
        }
    }
    outputs.into_iter().map(|output| output.ok_or(CkksError::Plan("an output has no terms"))).collect()
}
