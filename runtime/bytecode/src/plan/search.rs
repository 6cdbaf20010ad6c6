//! Choosing the splits: many candidate rules, priced by a cost model.
//!
//! A rule cuts a rotation into three digits at two moduli, low = centered r mod m₁, middle = centered
//! (r - low) mod m₂, high = the rest, and gives each digit to the baby or to the giant step. Moduli are small
//! multiples of powers of two, which covers the strides of every layout: columns, rows, blocks, and parts
//! of an axis. One modulus alone is the classical rule.

use super::{Plan, Split, StepCosts, distinct_rotations};
use crate::linear::Diagonals;
use crate::rotation::Rotation;
use std::collections::BTreeSet;

/// Largest multiple of a power of two that serves as a modulus.
const MAX_MULTIPLE: i64 = 15;

/// The cheapest plan for a map among the candidate rules. Rotations in `known` have their key already.
pub fn plan(diagonals: &Diagonals, costs: &StepCosts, known: &BTreeSet<Rotation>) -> Plan {
    let rotations = distinct_rotations(diagonals);
    let amounts: Vec<i64> = rotations.iter().map(|r| r.amount()).collect();
    let mut pricer = Pricer::new(diagonals, costs, known);
    let mut best = (f64::INFINITY, Rule::TRIVIAL);
    for rule in candidates(&amounts) {
        let price = pricer.price(rule, &amounts, best.0);
        if price < best.0 {
            best = (price, rule);
        }
    }
    let split = |r: &Rotation| {
        let baby = Rotation::new(best.1.baby(r.amount()), diagonals.input_period());
        Split { rotation: *r, baby }
    };
    Plan { splits: rotations.iter().map(split).collect() }
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
        let middle = centered(rotation - low, self.middle);
        let digits = [low, middle, rotation - low - middle];
        digits.iter().zip(self.baby).filter(|(_, baby)| *baby).map(|(digit, _)| digit).sum()
    }
}

fn centered(value: i64, modulus: i64) -> i64 {
    let residue = value.rem_euclid(modulus);
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

/// Prices rules without allocating: a step counts when its stamp is not yet that of the current rule.
struct Pricer<'a> {
    costs: &'a StepCosts,
    known: &'a BTreeSet<Rotation>,
    inputs: f64,
    sums: f64,
    input_period: usize,
    period: usize,
    stamps: [Vec<u32>; 2],
    keys: Vec<u32>,
    round: u32,
}

impl<'a> Pricer<'a> {
    fn new(diagonals: &Diagonals, costs: &'a StepCosts, known: &'a BTreeSet<Rotation>) -> Self {
        let (input_period, period) = (diagonals.input_period(), diagonals.period());
        Self {
            costs,
            known,
            inputs: diagonals.n_inputs() as f64,
            sums: diagonals.n_sums() as f64,
            input_period,
            period,
            stamps: [vec![0; input_period], vec![0; period]],
            keys: vec![0; diagonals.slots()],
            round: 0,
        }
    }

    /// Cost of the steps of a rule, or infinity once it exceeds `limit`.
    fn price(&mut self, rule: Rule, amounts: &[i64], limit: f64) -> f64 {
        self.round += 1;
        let mut total = 0.0;
        let mut hoisted = false;
        for &rotation in amounts {
            let baby = rule.baby(rotation);
            let steps = [(0, baby, self.input_period), (1, rotation - baby, self.period)];
            for (kind, amount, period) in steps {
                let step = Rotation::new(amount, period);
                let stamp = &mut self.stamps[kind][step.left(period)];
                if step.is_zero() || std::mem::replace(stamp, self.round) == self.round {
                    continue;
                }
                total += if kind == 0 {
                    let hoist = if std::mem::replace(&mut hoisted, true) { 0.0 } else { self.costs.hoist };
                    self.inputs * (self.costs.baby + hoist)
                } else {
                    self.sums * self.costs.giant
                };
                let slots = self.keys.len();
                let new_key = std::mem::replace(&mut self.keys[step.left(slots)], self.round) != self.round;
                if new_key && !self.known.contains(&step) {
                    total += self.costs.key;
                }
            }
            if total >= limit {
                return f64::INFINITY;
            }
        }
        total
    }
}
