//! Baby steps: rotations of one input that share its decomposition.

use crate::ciphertext::Ciphertext;
use crate::key_switch::{First, Halves, KeySwitch, Switch, decompose};
use crate::{CkksError, Context, GaloisKeys, Rotation};
use fhe_ring::{NttForm, Poly};

/// Rotations of one input over the key basis, times P.
pub(super) fn baby_steps(
    context: &Context,
    input: &Ciphertext,
    steps: &[Rotation],
    keys: &GaloisKeys,
) -> Result<Vec<Halves>, CkksError> {
    let level = input.level;
    let moving: Vec<Rotation> = steps.iter().copied().filter(|step| !step.is_zero()).collect();
    let switches = moving
        .iter()
        .map(|&step| {
            let permute = Some(context.automorphism(step.galois_element(context.ring().n())));
            Ok(Switch { key: keys.get(step, level)?, permute })
        })
        .collect::<Result<Vec<_>, CkksError>>()?;
    let moved = if switches.is_empty() {
        Vec::new()
    } else {
        let digits = &decompose(context, level, &input.polys[1]);
        KeySwitch { context, digits, first: First::TimesP(&input.polys[0]), switches: &switches }.times_p()
    };
    let mut moved = moved.into_iter();
    let next = |step: &Rotation| if step.is_zero() { None } else { moved.next() };
    let babies = steps.iter().map(next).collect::<Vec<_>>();
    let unmoved = || [0, 1].map(|half| times_p(context, input, half));
    Ok(babies.into_iter().map(|baby| baby.unwrap_or_else(unmoved)).collect())
}

/// Half `k` of a ciphertext times P, over the key basis: zero modulo the special primes.
fn times_p(context: &Context, input: &Ciphertext, k: usize) -> Poly<NttForm> {
    let basis = context.key_basis(input.level);
    let mut out = context.ring().unset(basis);
    context.ring().for_each_tower(&mut out, |tower, i, out| {
        if i < basis.n_q() {
            out.copy_from_slice(input.polys[k].tower(i));
            tower.kernels.mul_scalar_assign(out, context.p(basis.q.nth(i)));
        } else {
            out.fill(0);
        }
    });
    out
}
