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
    Ways::new(diagonals).cheapest(costs, known)
}

/// Every plan for a map among the candidate rules, with its steps and keys. They are counted once, whatever keys there are and
/// whatever they cost.
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
        let mut all = Vec::new();
        if !diagonals.is_shared() {
            let amounts: Vec<i64> = rotations.iter().map(|r| r.amount()).collect();
            let mut counter = Counter::new(diagonals, &rotations);
            candidates(&amounts).into_iter().for_each(|rule| counter.count(rule, &mut all));
        }
        Self { diagonals, rotations, all }
    }

    /// The plan that is cheapest where the rotations in `known` have their key already.
    pub fn cheapest(&self, costs: &StepCosts, known: &BTreeSet<Rotation>) -> Plan {
        let is_known = self.known(known);
        let mut best: (f64, Option<&Way>) = (f64::INFINITY, None);
        for way in &self.all {
            let [hoists, babies, giants] = way.steps;
            let price = hoists * costs.hoist + babies * costs.baby + giants * costs.giant;
            // What is dearer without its keys needs no count of them.
            if price < best.0 {
                let price = price + costs.key * self.n_new(way, &is_known) as f64;
                if price < best.0 {
                    best = (price, Some(way));
                }
            }
        }
        best.1.map_or_else(|| Plan::trivial(self.diagonals), |way| self.plan(way))
    }

    /// The plans that some costs make the cheapest: no other has at most as many steps of every kind and keys besides those that
    /// are known.
    pub fn menu(&self, known: &BTreeSet<Rotation>) -> Vec<Plan> {
        if self.all.is_empty() {
            return vec![Plan::trivial(self.diagonals)];
        }
        let is_known = self.known(known);
        let mut best: Vec<([f64; 4], &Way)> = Vec::new();
        for way in &self.all {
            let [hoists, babies, giants] = way.steps;
            let own = [hoists, babies, giants, self.n_new(way, &is_known) as f64];
            let covers = |a: &[f64; 4], b: &[f64; 4]| a.iter().zip(b).all(|(a, b)| a <= b);
            if !best.iter().any(|(other, _)| covers(other, &own)) {
                best.retain(|(other, _)| !covers(&own, other));
                best.push((own, way));
            }
        }
        best.into_iter().map(|(_, way)| self.plan(way)).collect()
    }

    fn plan(&self, way: &Way) -> Plan {
        way.rule.plan(way.gait, self.diagonals, &self.rotations)
    }

    /// By slots whether a rotation is known.
    fn known(&self, known: &BTreeSet<Rotation>) -> Vec<bool> {
        let slots = self.diagonals.slots();
        let mut is_known = vec![false; slots];
        known.iter().for_each(|rotation| is_known[rotation.left(slots)] = true);
        is_known
    }

    fn n_new(&self, way: &Way, is_known: &[bool]) -> usize {
        // A power of two.
        let last = is_known.len() - 1;
        way.keys.iter().filter(|key| !is_known[key.amount() as usize & last]).count()
    }
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
    /// By their place among the distinct ones.
    rotations: Vec<u32>,
}

/// Groups what is rotated by the rotations it takes part in: a shortcut that joins a convolution has only one.
fn classes(pairs: impl Iterator<Item = (u32, u32)>) -> Vec<Class> {
    let mut pairs: Vec<(u32, u32)> = pairs.collect();
    pairs.sort_unstable();
    pairs.dedup();
    let mut counts: BTreeMap<Vec<u32>, usize> = BTreeMap::new();
    for one in pairs.chunk_by(|a, b| a.0 == b.0) {
        *counts.entry(one.iter().map(|pair| pair.1).collect()).or_default() += 1;
    }
    counts.into_iter().map(|(rotations, count)| Class { count: count as f64, rotations }).collect()
}

/// Counts the steps of rules: a step counts when its stamp is not yet that of the current class, a key when its stamp is not yet
/// that of the current way.
struct Counter {
    amounts: Vec<i64>,
    inputs: Vec<Class>,
    sums: Vec<Class>,
    babies: Stamps,
    giants: Stamps,
    keys: Stamps,
    /// Giant steps of all rules so far, one for every rotation.
    known: BTreeSet<Vec<Rotation>>,
}

impl Counter {
    fn new(diagonals: &Diagonals, rotations: &[Rotation]) -> Self {
        let place = |r: Rotation| rotations.binary_search(&r).expect("a rotation of the map") as u32;
        let places: Vec<(u32, u32, u32)> =
            diagonals.list().iter().map(|d| (d.input, d.sum, place(d.rotation))).collect();
        Self {
            amounts: rotations.iter().map(|r| r.amount()).collect(),
            inputs: classes(places.iter().map(|&(input, _, place)| (input, place))),
            sums: classes(places.iter().map(|&(_, sum, place)| (sum, place))),
            babies: Stamps::new(diagonals.input_period()),
            giants: Stamps::new(diagonals.period()),
            keys: Stamps::new(diagonals.slots()),
            known: BTreeSet::new(),
        }
    }

    /// Adds the ways of a rule, unless another one splits all rotations alike.
    fn count(&mut self, rule: Rule, all: &mut Vec<Way>) {
        let (input_period, period) = (self.babies.period(), self.giants.period());
        let babies: Vec<i64> = self.amounts.iter().map(|&amount| rule.baby(amount)).collect();
        let giant = |(amount, baby): (&i64, &i64)| Rotation::new(amount - baby, period);
        // Inputs do not have longer periods than diagonals, so that giant steps tell the baby steps as well.
        let giants: Vec<Rotation> = self.amounts.iter().zip(&babies).map(giant).collect();
        if self.known.contains(&giants) {
            return;
        }
        let babies: Vec<Rotation> = babies.iter().map(|&baby| Rotation::new(baby, input_period)).collect();
        let (steps, own) = self.baby_steps(&babies);
        let mut chained = None;
        for gait in Gait::ALL {
            let way = match gait {
                Gait::Direct => Some(self.direct(&giants, own.clone())),
                Gait::Inward | Gait::Down => {
                    let steps = chained.get_or_insert_with(|| self.chained(&giants));
                    steps.as_ref().and_then(|chained| self.hops(gait, chained, own.clone()))
                }
            };
            let way = way.map(|(giants, keys)| Way { rule, gait, steps: [steps[0], steps[1], giants], keys });
            all.extend(way);
        }
        self.known.insert(giants);
    }

    /// Decompositions and baby steps, and the keys of these.
    fn baby_steps(&mut self, steps: &[Rotation]) -> ([f64; 2], Vec<Rotation>) {
        let Self { inputs, babies, keys, .. } = self;
        let ([mut hoists, mut total], mut own) = ([0.0; 2], Vec::new());
        keys.forget();
        for class in inputs {
            babies.forget();
            let mut n = 0;
            for step in class.rotations.iter().map(|&place| steps[place as usize]) {
                if !step.is_zero() && babies.mark(step) {
                    n += 1;
                    if keys.mark(step) {
                        own.push(step);
                    }
                }
            }
            hoists += if n > 0 { class.count } else { 0.0 };
            total += class.count * f64::from(n);
        }
        ([hoists, total], own)
    }

    /// Giant steps that are taken at once, and the keys with theirs.
    fn direct(&mut self, steps: &[Rotation], mut own: Vec<Rotation>) -> (f64, Vec<Rotation>) {
        let Self { sums, giants, keys, .. } = self;
        keys.renew(&own);
        let mut total = 0.0;
        for class in sums {
            giants.forget();
            let mut n = 0;
            for step in class.rotations.iter().map(|&place| steps[place as usize]) {
                if !step.is_zero() && giants.mark(step) {
                    n += 1;
                    if keys.mark(step) {
                        own.push(step);
                    }
                }
            }
            total += class.count * f64::from(n);
        }
        (total, own)
    }

    /// Giant steps that are taken from one to the next, if they are not too many.
    fn chained(&mut self, steps: &[Rotation]) -> Option<Chained> {
        let Self { sums, giants, .. } = self;
        let mut chained = Chained { total: 0.0, of_sums: Vec::with_capacity(sums.len()), all: Vec::new() };
        let mut n_steps = 0;
        for class in sums {
            giants.forget();
            let own = class.rotations.iter().map(|&place| steps[place as usize]);
            let mut own: Vec<Rotation> = own.filter(|step| !step.is_zero() && giants.mark(*step)).collect();
            own.sort_unstable();
            n_steps += own.len();
            chained.total += class.count * own.len() as f64;
            chained.all.extend(&own);
            chained.of_sums.push(own);
        }
        chained.all.sort_unstable();
        chained.all.dedup();
        (n_steps <= MOST_CHAINED * self.sums.len()).then_some(chained)
    }

    /// Giant steps and the keys of all steps, if no sum is rotated more often than it has giant steps.
    fn hops(
        &mut self,
        gait: Gait,
        chained: &Chained,
        mut own: Vec<Rotation>,
    ) -> Option<(f64, Vec<Rotation>)> {
        let hops = gait.hops(&chained.all, self.giants.period());
        let passes_by = |giants: &Vec<Rotation>| {
            giants.len() < chained.all.len() && gait::n_hops(&hops, giants.iter().copied()) > giants.len()
        };
        if chained.of_sums.iter().any(passes_by) {
            return None;
        }
        self.keys.renew(&own);
        own.extend(hops.iter().map(|hop| hop.by).filter(|&by| self.keys.mark(by)));
        Some((chained.total, own))
    }
}

/// The giant steps of a rule.
struct Chained {
    /// Of all sums together.
    total: f64,
    /// Those of every class of sums.
    of_sums: Vec<Vec<Rotation>>,
    /// Those of any.
    all: Vec<Rotation>,
}

/// A set of rotations that is emptied in one step.
struct Stamps {
    of_slot: Vec<u32>,
    now: u32,
}

impl Stamps {
    /// Of rotations among so many slots, a power of two.
    fn new(period: usize) -> Self {
        Self { of_slot: vec![0; period], now: 1 }
    }

    fn period(&self) -> usize {
        self.of_slot.len()
    }

    /// Adds a rotation; says whether it is new.
    fn mark(&mut self, step: Rotation) -> bool {
        let slot = step.amount() as usize & (self.of_slot.len() - 1);
        std::mem::replace(&mut self.of_slot[slot], self.now) != self.now
    }

    fn forget(&mut self) {
        self.now += 1;
    }

    /// Has these rotations and no others.
    fn renew(&mut self, steps: &[Rotation]) {
        self.forget();
        steps.iter().for_each(|step| {
            self.mark(*step);
        });
    }
}
