//! Choosing the splits: many candidate rules, priced by a cost model.
//!
//! A rule cuts a rotation into three digits at two moduli, low = centered r mod m₁, middle = centered
//! (r - low) mod m₂, high = the rest, and gives each digit to the baby or to the giant step. Moduli are small
//! multiples of powers of two, which covers the strides of every layout: columns, rows, blocks, and parts
//! of an axis. One modulus alone is the classical rule.

use super::{Plan, Split, StepCosts, distinct_rotations};
use crate::linear::Diagonals;
use crate::rotation::Rotation;
use std::collections::{BTreeMap, BTreeSet};

/// Largest multiple of a power of two that serves as a modulus.
const MAX_MULTIPLE: i64 = 15;

/// The cheapest plan for a map among the candidate rules. Rotations in `known` have their key already. A map whose
/// plaintexts are shared gets no giant steps, because each would need plaintexts of its own.
pub fn plan(diagonals: &Diagonals, costs: &StepCosts, known: &BTreeSet<Rotation>) -> Plan {
    if diagonals.is_shared() {
        return Plan::trivial(diagonals);
    }
    let rotations = distinct_rotations(diagonals);
    let amounts: Vec<i64> = rotations.iter().map(|r| r.amount()).collect();
    let mut pricer = Pricer::new(diagonals);
    let mut best = (f64::INFINITY, Rule::TRIVIAL);
    for rule in candidates(&amounts) {
        let price = pricer.price(rule, costs, known, best.0);
        if price < best.0 {
            best = (price, rule);
        }
    }
    best.1.plan(diagonals, &rotations)
}

/// The plans for a map that some costs make the cheapest: no other has at most as many steps of every kind and keys besides those
/// that are known.
pub fn menu(diagonals: &Diagonals, known: &BTreeSet<Rotation>) -> Vec<Plan> {
    if diagonals.is_shared() {
        return vec![Plan::trivial(diagonals)];
    }
    let rotations = distinct_rotations(diagonals);
    let amounts: Vec<i64> = rotations.iter().map(|r| r.amount()).collect();
    let mut counter = Pricer::new(diagonals);
    let mut best: Vec<([f64; 4], Rule)> = Vec::new();
    for rule in candidates(&amounts) {
        let own = counter.steps(rule, known);
        let covers = |a: &[f64; 4], b: &[f64; 4]| a.iter().zip(b).all(|(a, b)| a <= b);
        if !best.iter().any(|(other, _)| covers(other, &own)) {
            best.retain(|(other, _)| !covers(&own, other));
            best.push((own, rule));
        }
    }
    best.into_iter().map(|(_, rule)| rule.plan(diagonals, &rotations)).collect()
}

/// Cuts a rotation into low, middle and high digits and says which go to the baby step.
#[derive(Clone, Copy, Debug)]
struct Rule {
    low: i64,
    middle: i64,
    baby: [bool; 3],
}

impl Rule {
    /// Everything is a baby step.
    const TRIVIAL: Rule = Rule { low: 1, middle: 1, baby: [true; 3] };

    fn baby(&self, rotation: i64) -> i64 {
        let low = centered(rotation, self.low);
        // What is left of a low digit is a multiple of its modulus.
        let middle = if self.middle == self.low { 0 } else { centered(rotation - low, self.middle) };
        let digits = [low, middle, rotation - low - middle];
        digits.iter().zip(self.baby).filter(|(_, baby)| *baby).map(|(digit, _)| digit).sum()
    }

    /// The plan that it makes for a map with these distinct rotations.
    fn plan(&self, diagonals: &Diagonals, rotations: &[Rotation]) -> Plan {
        let split = |r: &Rotation| {
            let baby = Rotation::new(self.baby(r.amount()), diagonals.input_period());
            Split { rotation: *r, baby }
        };
        Plan { splits: rotations.iter().map(split).collect() }
    }
}

fn centered(value: i64, modulus: i64) -> i64 {
    // Most moduli are powers of two, and a division takes longer than all the rest.
    let residue = if modulus.count_ones() == 1 { value & (modulus - 1) } else { value.rem_euclid(modulus) };
    if 2 * residue > modulus { residue - modulus } else { residue }
}

fn candidates(amounts: &[i64]) -> Vec<Rule> {
    let reach = amounts.iter().map(|r| r.abs()).max().unwrap_or(0);
    let powers: Vec<i64> =
        std::iter::successors(Some(1i64), |p| Some(2 * p)).take_while(|&p| p <= 2 * reach).collect();
    let mut rules = vec![Rule::TRIVIAL, Rule { baby: [false; 3], ..Rule::TRIVIAL }];
    for &power in &powers {
        for multiple in (1..=MAX_MULTIPLE).filter(|m| m % 2 == 1 || *m == 2) {
            let low = power * multiple;
            rules.push(Rule { low, middle: low, baby: [true, true, false] });
            rules.push(Rule { low, middle: low, baby: [false, false, true] });
        }
    }
    // Both ends of the rotation in the baby step, the middle in the giant step, and the reverse.
    for (at, &low) in powers.iter().enumerate() {
        for &power in &powers[at + 1..] {
            for multiple in [1, 3, 5] {
                let middle = power * multiple;
                rules.push(Rule { low, middle, baby: [true, false, true] });
                rules.push(Rule { low, middle, baby: [false, true, false] });
            }
        }
    }
    rules
}

/// Inputs, or sums, whose diagonals have the same rotations.
struct Class {
    count: f64,
    amounts: Vec<i64>,
}

/// Groups what is rotated by the rotations it takes part in: a shortcut that joins a convolution has only one.
fn classes(pairs: impl Iterator<Item = (u32, Rotation)>) -> Vec<Class> {
    let mut pairs: Vec<(u32, i64)> = pairs.map(|(which, r)| (which, r.amount())).collect();
    pairs.sort_unstable();
    pairs.dedup();
    let mut counts: BTreeMap<Vec<i64>, usize> = BTreeMap::new();
    for one in pairs.chunk_by(|a, b| a.0 == b.0) {
        *counts.entry(one.iter().map(|pair| pair.1).collect()).or_default() += 1;
    }
    counts.into_iter().map(|(amounts, count)| Class { count: count as f64, amounts }).collect()
}

/// Prices rules without allocating: a step counts when its stamp is not yet that of the current class, a key when its
/// stamp is not yet that of the current rule.
struct Pricer {
    inputs: Vec<Class>,
    sums: Vec<Class>,
    babies: Stamps,
    giants: Stamps,
    keys: Stamps,
}

/// A step of a rule: how often it is taken, and whether it needs a key that no step before it does.
enum Found {
    /// Decompositions of inputs.
    Hoist(f64),
    Baby(f64, Option<Rotation>),
    Giant(f64, Option<Rotation>),
}

impl Pricer {
    fn new(diagonals: &Diagonals) -> Self {
        let list = diagonals.list();
        Self {
            inputs: classes(list.iter().map(|d| (d.input, d.rotation))),
            sums: classes(list.iter().map(|d| (d.sum, d.rotation))),
            babies: Stamps::new(diagonals.input_period()),
            giants: Stamps::new(diagonals.period()),
            keys: Stamps::new(diagonals.slots()),
        }
    }

    /// Cost of the steps of a rule, or infinity once it exceeds `limit`.
    fn price(&mut self, rule: Rule, costs: &StepCosts, known: &BTreeSet<Rotation>, limit: f64) -> f64 {
        let key = |new: Option<Rotation>| match new {
            Some(step) if !known.contains(&step) => costs.key,
            _ => 0.0,
        };
        let mut total = 0.0;
        let is_whole = self.walk(rule, |found| {
            total += match found {
                Found::Hoist(count) => count * costs.hoist,
                Found::Baby(count, new) => count * costs.baby + key(new),
                Found::Giant(count, new) => count * costs.giant + key(new),
            };
            total < limit
        });
        if is_whole { total } else { f64::INFINITY }
    }

    /// Decompositions, baby steps, giant steps and further keys of a rule.
    fn steps(&mut self, rule: Rule, known: &BTreeSet<Rotation>) -> [f64; 4] {
        let mut all = [0.0; 4];
        self.walk(rule, |found| {
            let (kind, count, new) = match found {
                Found::Hoist(count) => (0, count, None),
                Found::Baby(count, new) => (1, count, new),
                Found::Giant(count, new) => (2, count, new),
            };
            all[kind] += count;
            all[3] += f64::from(u8::from(new.is_some_and(|step| !known.contains(&step))));
            true
        });
        all
    }

    /// Calls `found` for the steps of a rule while it wants more; says whether it did to the end.
    fn walk(&mut self, rule: Rule, mut found: impl FnMut(Found) -> bool) -> bool {
        let Self { inputs, sums, babies, giants, keys } = self;
        keys.forget();
        for class in inputs {
            babies.forget();
            let mut is_first = true;
            for &rotation in &class.amounts {
                let step = Rotation::new(rule.baby(rotation), babies.period());
                if !step.is_zero() && babies.mark(step) {
                    let hoisted = !std::mem::take(&mut is_first) || found(Found::Hoist(class.count));
                    let new = keys.mark(step).then_some(step);
                    if !hoisted || !found(Found::Baby(class.count, new)) {
                        return false;
                    }
                }
            }
        }
        for class in sums {
            giants.forget();
            for &rotation in &class.amounts {
                let step = Rotation::new(rotation - rule.baby(rotation), giants.period());
                if !step.is_zero() && giants.mark(step) {
                    let new = keys.mark(step).then_some(step);
                    if !found(Found::Giant(class.count, new)) {
                        return false;
                    }
                }
            }
        }
        true
    }
}

/// A set of rotations that is emptied in one step.
struct Stamps {
    of_slot: Vec<u32>,
    now: u32,
}

impl Stamps {
    fn new(period: usize) -> Self {
        Self { of_slot: vec![0; period], now: 1 }
    }

    fn period(&self) -> usize {
        self.of_slot.len()
    }

    /// Adds a rotation; says whether it is new.
    fn mark(&mut self, step: Rotation) -> bool {
        let slot = step.left(self.of_slot.len());
        std::mem::replace(&mut self.of_slot[slot], self.now) != self.now
    }

    fn forget(&mut self) {
        self.now += 1;
    }
}
