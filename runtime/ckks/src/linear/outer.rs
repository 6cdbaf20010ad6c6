//! The giant steps, and the other automorphisms of sums that are still to be divided by P.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use fhe_bytecode::Level;

use super::LinearPlan;
use crate::key_switch::{First, Halves, KeySwitch, Switch, decompose, mod_down};
use crate::{CkksError, Context, Galois, GaloisKeys, Rotation};

/// Brings the inner sums to their outputs, giant step by giant step.
pub(super) fn outer_sums(
    context: &Context,
    level: Level,
    plan: &LinearPlan,
    sums: Vec<Halves>,
    keys: &GaloisKeys,
) -> Result<Vec<Halves>, CkksError> {
    // What has come to a giant step of an output.
    let mut at: Vec<HashMap<Rotation, Halves>> = vec![HashMap::new(); plan.n_outputs];
    let add = |at: &mut HashMap<Rotation, Halves>, step, part: Halves| match at.entry(step) {
        Entry::Occupied(mut total) => add_assign(context, total.get_mut(), &part),
        Entry::Vacant(empty) => drop(empty.insert(part)),
    };
    for (group, sums) in plan.groups.iter().zip(sums) {
        add(&mut at[group.output], group.giant, sums);
    }
    for hop in &plan.hops {
        for at in &mut at {
            let Some(part) = at.remove(&hop.from) else { continue };
            match at.get_mut(&hop.to) {
                Some(total) => add_moved(context, level, &part, hop.by.into(), keys, total)?,
                None => {
                    let moved = moved(context, level, &part, hop.by.into(), keys)?;
                    at.insert(hop.to, moved);
                }
            }
        }
    }
    let output = |mut at: HashMap<Rotation, Halves>| match (at.remove(&Rotation::ZERO), at.is_empty()) {
        (Some(output), true) => Ok(output),
        (None, true) => Err(CkksError::Plan("an output has no terms")),
        (_, false) => Err(CkksError::Plan("a group never comes to its output")),
    };
    at.into_iter().map(output).collect()
}

/// An automorphism, not the identity, of a sum over the key basis, times P.
pub(super) fn moved(
    context: &Context,
    level: Level,
    sum: &Halves,
    automorphism: Galois,
    keys: &GaloisKeys,
) -> Result<Halves, CkksError> {
    switched(context, level, sum, automorphism, keys, |switch| {
        switch.times_p().pop().expect("one key gives one result")
    })
}

/// As [`moved`], added to another sum.
fn add_moved(
    context: &Context,
    level: Level,
    sum: &Halves,
    automorphism: Galois,
    keys: &GaloisKeys,
    total: &mut Halves,
) -> Result<(), CkksError> {
    switched(context, level, sum, automorphism, keys, |switch| switch.add_times_p(total))
}

/// Only the second half of the sum is divided by P before its key switch.
fn switched<T>(
    context: &Context,
    level: Level,
    sum: &Halves,
    automorphism: Galois,
    keys: &GaloisKeys,
    result: impl FnOnce(KeySwitch<'_>) -> T,
) -> Result<T, CkksError> {
    let second = mod_down(context, level, &sum[1]);
    let permute = Some(context.automorphism(automorphism.galois_element(context.ring().n())));
    let key = keys.get(automorphism, level)?;
    let digits = &decompose(context, level, &second);
    let switches = &[Switch { key, permute }];
    Ok(result(KeySwitch { context, digits, first: First::Sum(&sum[0]), switches }))
}

/// a ← a + b.
pub(super) fn add_assign(context: &Context, a: &mut Halves, b: &Halves) {
    a.iter_mut().zip(b).for_each(|(a, b)| context.ring().add_assign(a, b));
}
