//! Noise of a linear map as it is evaluated, and what its operands' slots are to a score.
//!
//! The way back through the plan: folds, parts of complex sums, giant steps, products with diagonals, baby steps. At every
//! station the noise that arises there is weighed by what the score gains by the slots that it arises in, so that noise in
//! copies of a number counts as what becomes of it: it adds up, cancels or stays apart as the plan has it.

use std::collections::{BTreeMap, BTreeSet};

use fhe_bytecode::check::Fact;
use fhe_bytecode::noise::NoiseModel;
use fhe_bytecode::{CheckedMap, ExpandedPlan, Pairing, PlaintextKey, PlanGroup, Rotation};

use super::slots::Slots;

/// An operand of a map.
pub(super) struct Operand<'a> {
    pub(super) fact: &'a Fact,
    /// What is in its slots, ciphertext by ciphertext.
    pub(super) numbers: Vec<&'a [f64]>,
}

/// A map at its place in a program.
pub(super) struct Placed<'a> {
    pub(super) map: &'a CheckedMap,
    pub(super) result: &'a Fact,
    pub(super) operands: Vec<Operand<'a>>,
    pub(super) model: &'a NoiseModel,
}

/// An operand's ciphertext, counted through all operands.
#[derive(Clone, Copy)]
struct Input<'a> {
    numbers: &'a [f64],
    /// Scale of the operand.
    scale: f64,
}

/// Roundings that several products share.
type Shared = BTreeMap<(PlaintextKey, Rotation), (f64, Slots)>;

impl Placed<'_> {
    /// Variance of a score from what the map adds, and what the score gains by the slots of the operands, where it gains
    /// this by those of the result.
    pub(super) fn back(&self, mut gains: Vec<Slots>) -> (f64, Vec<Vec<Slots>>) {
        let Self { map, result, model, .. } = self;
        let plan = &map.plan;
        let own = model.at(result.level);
        let unit = result.scale.value().powi(2);
        let key = own.key_switch(result.level) / unit;
        let squares = |gains: &[Slots]| gains.iter().map(Slots::squares).sum::<f64>();
        let mut variance = squares(&gains) * own.mod_down() / unit;
        for fold in plan.folds.iter().rev() {
            variance += squares(&gains) * key;
            for slots in &mut gains {
                let moved = slots.moved(fold.amount());
                slots.add_moved(&moved, 0);
            }
        }
        let n_apart = match plan.pairing {
            Pairing::None => 0.0,
            Pairing::Outputs => 1.0,
            Pairing::Halves => 3.0,
        };
        variance += squares(&gains) * n_apart * key;
        let sums = before_parts(plan, gains);
        for groups in plan.groups.chunk_by(|a, b| a.sum == b.sum) {
            variance += sums[groups[0].sum as usize].squares() * n_hops(plan, groups) * key;
        }
        let (rounding, rotated) = self.products(&sums);
        let inputs = self.inputs();
        let hoisted = own.key_switch_product(result.level);
        let n = sums[0].len();
        let mut of_inputs = vec![Slots::zeros(n); inputs.len()];
        for ((input, baby), slots) in rotated {
            let (input, baby) = (input as usize, plan.babies[baby as usize]);
            if !baby.is_zero() {
                variance += slots.squares() * hoisted / inputs[input].scale.powi(2);
            }
            of_inputs[input].add_moved(&slots, baby.amount());
        }
        let mut of_inputs = of_inputs.into_iter();
        let of_operand = |operand: &Operand<'_>| of_inputs.by_ref().take(operand.numbers.len()).collect();
        (variance + rounding, self.operands.iter().map(of_operand).collect())
    }

    fn inputs(&self) -> Vec<Input<'_>> {
        let mut inputs = Vec::new();
        for operand in &self.operands {
            let scale = operand.fact.scale.value();
            inputs.extend(operand.numbers.iter().map(|numbers| Input { numbers, scale }));
        }
        inputs
    }

    /// Variance from roundings of the weights, and what the score gains by the slots of rotated operands, by input and baby
    /// step.
    fn products(&self, sums: &[Slots]) -> (f64, BTreeMap<(u32, u32), Slots>) {
        let (plan, diagonals) = (&self.map.plan, &self.map.diagonals);
        let (period, n) = (plan.period, sums[0].len());
        let inputs = self.inputs();
        // An executor computes twice the result of complex sums, with half the weights.
        let is_complex = plan.pairing != Pairing::None;
        let half = if is_complex { 0.5 } else { 1.0 };
        let rounding = half * self.model.encode(period);
        let (mut re, mut im) = (vec![0.0; period], vec![0.0; period]);
        let (mut variance, mut shared) = (0.0, Shared::new());
        let mut rotated: BTreeMap<(u32, u32), Slots> = BTreeMap::new();
        for group in &plan.groups {
            let here = sums[group.sum as usize].moved(way(plan, group.giant));
            // A plaintext repeats, and so does its rounding.
            let mut alike = here.folded(period);
            if !is_complex {
                // Real weights round to real ones.
                alike.im.fill(0.0);
            }
            for term in &group.terms {
                let baby = plan.babies[term.baby as usize].left(period);
                let Input { numbers, scale } = inputs[term.input as usize];
                let message = (0..period).map(|slot| numbers[(slot + baby) & (period - 1)]);
                let rounded = alike.times(message);
                let ratio = self.result.scale.value() / scale;
                let rounding = rounding / ratio.powi(2);
                match diagonals.key(term.diagonal) {
                    PlaintextKey::Whole(_) => variance += rounded.squares() * rounding,
                    key @ PlaintextKey::Masked { .. } => {
                        let entry = shared.entry((key, group.giant));
                        let (_, sum) = entry.or_insert_with(|| (rounding, Slots::zeros(period)));
                        sum.add_moved(&rounded, 0);
                    }
                }
                diagonals.write(term.diagonal, group.giant, &mut re, &mut im);
                let to = rotated.entry((term.input, term.baby)).or_insert_with(|| Slots::zeros(n));
                to.add_product(&here, &re, &im, half);
            }
        }
        let of_shared = shared.values().map(|(rounding, slots)| rounding * slots.squares());
        (variance + of_shared.sum::<f64>(), rotated)
    }
}

/// What a score gains by sums before they are taken apart, each twice a part of one: real results are left.
fn before_parts(plan: &ExpandedPlan, gains: Vec<Slots>) -> Vec<Slots> {
    let twice = |part: &[f64]| part.iter().map(|g| 2.0 * g).collect::<Vec<f64>>();
    match plan.pairing {
        Pairing::None => gains,
        Pairing::Outputs => {
            let of_pair = |pair: &[Slots]| Slots {
                re: twice(&pair[0].re),
                im: pair.get(1).map_or_else(|| vec![0.0; pair[0].len()], |other| twice(&other.re)),
            };
            gains.chunks(2).map(of_pair).collect()
        }
        Pairing::Halves => {
            let half = plan.half.unwrap_or(Rotation::ZERO).amount();
            let of_sum = |slots: &Slots| Slots { re: twice(&slots.re), im: twice(&slots.moved(half).re) };
            gains.iter().map(of_sum).collect()
        }
    }
}

/// By how much partial sums at a giant step are rotated until they are at zero: as much, up to whole periods.
fn way(plan: &ExpandedPlan, giant: Rotation) -> i64 {
    let next = |at: &(Rotation, i64)| {
        let hop = plan.hops.iter().find(|hop| hop.from == at.0)?;
        Some((hop.to, at.1 + hop.by.amount()))
    };
    // No hop leaves a giant step twice.
    let stations = std::iter::successors(Some((giant, 0)), next).take(plan.hops.len() + 1);
    stations.last().map_or(0, |(_, by)| by)
}

/// Rotations of the partial sums of one sum.
fn n_hops(plan: &ExpandedPlan, groups: &[PlanGroup]) -> f64 {
    let mut at: BTreeSet<Rotation> = groups.iter().map(|group| group.giant).collect();
    let mut taken = 0.0;
    for hop in &plan.hops {
        if at.remove(&hop.from) {
            at.insert(hop.to);
            taken += 1.0;
        }
    }
    taken
}
