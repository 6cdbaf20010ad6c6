//! Choosing the splits: many candidate rules, priced by a cost model.
//!
//! A rule cuts a rotation into three digits at two moduli, low = centered r mod m₁, middle = centered
//! (r - low) mod m₂, high = the rest, and gives each digit to the baby or to the giant step. Moduli are small
//! multiples of powers of two, which covers the strides of every layout: columns, rows, blocks, and parts
//! of an axis. One modulus alone is the classical rule.

use super::gait::{self, Gait};
use super::{Plan, Split, StepCosts, distinct_rotations};
use crate::linear::Diagonals;
use crate::rotation::Rotation;
use std::collections::{BTreeMap, BTreeSet};

/// Largest multiple of a power of two that serves as a modulus.
const MAX_MULTIPLE: i64 = 15;
/// Giant steps of one sum that are tried as a chain; more of them never make a cheap plan.
const MOST_CHAINED: usize = 256;

/// The cheapest plan for a map among the candidate rules. Rotations in `known` have their key already. A map whose
/// plaintexts are shared gets no giant steps, because each would need plaintexts of its own.
pub fn plan(diagonals: &Diagonals, costs: &StepCosts, known: &BTreeSet<Rotation>) -> Plan {
    if diagonals.is_shared() {
        return Plan::trivial(diagonals);
    }
    let rotations = distinct_rotations(diagonals);
    let amounts: Vec<i64> = rotations.iter().map(|r| r.amount()).collect();
    let mut pricer = Pricer::new(diagonals);
    let mut best = (f64::INFINITY, Rule::TRIVIAL, Gait::Direct);
    for (rule, gait) in ways(&amounts) {
        let price = pricer.price(rule, gait, costs, known, best.0);
        if price < best.0 {
            best = (price, rule, gait);
        }
    }
    let (_, rule, gait) = best;
    rule.plan(gait, diagonals, &rotations)
}

/// Every plan for a map among the candidate rules, with its steps and keys. They are counted once, whatever keys there are.
pub struct Ways<'a> {
    diagonals: &'a Diagonals,
    rotations: Vec<Rotation>,
    all: Vec<Way>,
}

struct Way {
    rule: Rule,
    gait: Gait,
    /// Decompositions, baby steps and giant steps.
    steps: [f64; 3],
    /// The rotations of its steps.
    keys: Vec<Rotation>,
}

impl<'a> Ways<'a> {
    /// The ways to evaluate a map. There is one where plaintexts are shared.
    pub fn new(diagonals: &'a Diagonals) -> Self {
        let rotations = distinct_rotations(diagonals);
        let amounts: Vec<i64> = rotations.iter().map(|r| r.amount()).collect();
        let mut counter = Pricer::new(diagonals);
        let mut all = Vec::new();
        if !diagonals.is_shared() {
            all.extend(ways(&amounts).filter_map(|(rule, gait)| counter.way(rule, gait)));
        }
        Self { diagonals, rotations, all }
    }

    /// The plans that some costs make the cheapest: no other has at most as many steps of every kind and keys besides those that
    /// are known.
    pub fn menu(&self, known: &BTreeSet<Rotation>) -> Vec<Plan> {
        if self.diagonals.is_shared() {
            return vec![Plan::trivial(self.diagonals)];
        }
        let slots = self.diagonals.slots();
        let mut is_known = vec![false; slots];
        known.iter().for_each(|rotation| is_known[rotation.left(slots)] = true);
        let mut best: Vec<([f64; 4], &Way)> = Vec::new();
        for way in &self.all {
            let n_new = way.keys.iter().filter(|key| !is_known[key.left(slots)]).count();
            let [hoists, babies, giants] = way.steps;
            let own = [hoists, babies, giants, n_new as f64];
            let covers = |a: &[f64; 4], b: &[f64; 4]| a.iter().zip(b).all(|(a, b)| a <= b);
            if !best.iter().any(|(other, _)| covers(other, &own)) {
                best.retain(|(other, _)| !covers(&own, other));
                best.push((own, way));
            }
        }
        best.into_iter().map(|(_, way)| way.rule.plan(way.gait, self.diagonals, &self.rotations)).collect()
    }
}

/// All rules, and with each all ways to take its giant steps.
fn ways(amounts: &[i64]) -> impl Iterator<Item = (Rule, Gait)> {
    candidates(amounts).into_iter().flat_map(|rule| Gait::ALL.map(|gait| (rule, gait)))
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
    fn plan(&self, gait: Gait, diagonals: &Diagonals, rotations: &[Rotation]) -> Plan {
        let split = |r: &Rotation| {
            let baby = Rotation::new(self.baby(r.amount()), diagonals.input_period());
            Split { rotation: *r, baby }
        };
        Plan { splits: rotations.iter().map(split).collect(), gait }
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

/// Prices rules: a step counts when its stamp is not yet that of the current class, a key when its stamp is not yet that of the
/// current rule.
struct Pricer {
    inputs: Vec<Class>,
    sums: Vec<Class>,
    babies: Stamps,
    giants: Stamps,
    keys: Stamps,
}

/// Steps of a rule, and whether they need a key that no step before them does.
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

    /// Cost of the steps of a rule, or infinity if it does not take its giant steps so or once it exceeds `limit`.
    fn price(
        &mut self,
        rule: Rule,
        gait: Gait,
        costs: &StepCosts,
        known: &BTreeSet<Rotation>,
        limit: f64,
    ) -> f64 {
        let key = |new: Option<Rotation>| match new {
            Some(step) if !known.contains(&step) => costs.key,
            _ => 0.0,
        };
        let mut total = 0.0;
        let is_whole = self.walk(rule, gait, |found| {
            total += match found {
                Found::Hoist(count) => count * costs.hoist,
                Found::Baby(count, new) => count * costs.baby + key(new),
                Found::Giant(count, new) => count * costs.giant + key(new),
            };
            total < limit
        });
        if is_whole { total } else { f64::INFINITY }
    }

    /// The steps and keys of a rule, if it takes its giant steps so.
    fn way(&mut self, rule: Rule, gait: Gait) -> Option<Way> {
        let (mut steps, mut keys) = ([0.0; 3], Vec::new());
        let is_whole = self.walk(rule, gait, |found| {
            let (kind, count, new) = match found {
                Found::Hoist(count) => (0, count, None),
                Found::Baby(count, new) => (1, count, new),
                Found::Giant(count, new) => (2, count, new),
            };
            steps[kind] += count;
            keys.extend(new);
            true
        });
        is_whole.then_some(Way { rule, gait, steps, keys })
    }

    /// Calls `found` for the steps of a rule while it wants more; says whether it did to the end.
    fn walk(&mut self, rule: Rule, gait: Gait, mut found: impl FnMut(Found) -> bool) -> bool {
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
        let mut chained = Vec::new();
        for class in sums {
            giants.forget();
            let first = chained.len();
            for &rotation in &class.amounts {
                let step = Rotation::new(rotation - rule.baby(rotation), giants.period());
                if !step.is_zero() && giants.mark(step) {
                    let mut new = || keys.mark(step).then_some(step);
                    match gait {
                        Gait::Direct if !found(Found::Giant(class.count, new())) => return false,
                        Gait::Direct => {}
                        Gait::Inward | Gait::Down => chained.push(step),
                    }
                }
            }
            let n_steps = chained.len() - first;
            if gait != Gait::Direct && !found(Found::Giant(class.count * n_steps as f64, None)) {
                return false;
            }
        }
        gait == Gait::Direct || self.hops(gait, rule, chained, found)
    }

    /// Calls `found` for the keys of chained giant steps; says whether it wanted all of them, and no sum is rotated more often
    /// than it has giant steps.
    fn hops(
        &mut self,
        gait: Gait,
        rule: Rule,
        mut giants: Vec<Rotation>,
        mut found: impl FnMut(Found) -> bool,
    ) -> bool {
        if giants.len() > MOST_CHAINED * self.sums.len() {
            return false;
        }
        giants.sort_unstable();
        giants.dedup();
        let period = self.giants.period();
        let hops = gait.hops(&giants, period);
        let passes_by = self.sums.iter().any(|class| {
            let giant = |&rotation: &i64| Rotation::new(rotation - rule.baby(rotation), period);
            let mut own: Vec<Rotation> =
                class.amounts.iter().map(giant).filter(|giant| !giant.is_zero()).collect();
            own.sort_unstable();
            own.dedup();
            own.len() < giants.len() && gait::n_hops(&hops, own.iter().copied()) > own.len()
        });
        !passes_by
            && hops.iter().all(|hop| {
                let new = self.keys.mark(hop.by).then_some(hop.by);
                found(Found::Giant(0.0, new))
            })
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
