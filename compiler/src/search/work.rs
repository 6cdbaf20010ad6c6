//! What levels have to do, and what it costs in the ring and with the keys of a segment.
//!
//! Segments share no keys, so each is priced by itself: its levels from the highest down, every map with the plan of its menu
//! that is cheapest in view of the keys that those before it have. A key serves many maps and the first one does not know
//! them, so a few prices of a key are tried, and that which makes time and keys together cheapest stays. Where segments are
//! known, all maps of a kind change their plan together as long as that makes something cheaper.

use std::collections::BTreeMap;

use fhe_bytecode::{CostModel, KeyPlace, Level, Params, StepCosts};

use super::menu::{Choice, Menus};
use crate::lower::CircuitOp;
use crate::schedule::{Chain, Problem};

/// Shares of the price of a key that the map pays which needs it first.
const SHARES: [f64; 4] = [0.08, 0.2, 0.5, 1.2];
/// Times that all kinds of maps may change their plans.
const MOST_SWEEPS: usize = 4;

/// What every level has to do, whatever its ring and keys.
pub(super) struct Work<'a> {
    costs: &'a CostModel,
    menus: &'a Menus,
    levels: Vec<LevelWork>,
    /// Ciphertexts that come to a level from a higher one, by rescale or drop.
    moves: Vec<(Level, Level, f64)>,
}

#[derive(Clone, Default)]
struct LevelWork {
    /// Maps, by their place among all.
    maps: Vec<usize>,
    /// Ciphertexts that are multiplied with each other.
    n_products: f64,
    /// Ciphertexts that are rescaled.
    n_rescales: f64,
    /// Towers that a rescale divides by.
    n_divided: usize,
}

/// Seconds of some levels, and what their keys take.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Bill {
    pub(super) seconds: f64,
    pub(super) key_bytes: f64,
}

impl Bill {
    /// Seconds, a byte of keys counted as so many.
    pub(super) fn price(self, key_byte: f64) -> f64 {
        self.seconds + key_byte * self.key_bytes
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self { seconds: self.seconds + other.seconds, key_bytes: self.key_bytes + other.key_bytes }
    }
}

impl<'a> Work<'a> {
    pub(super) fn new(problem: &Problem<'_>, chain: &Chain, costs: &'a CostModel, menus: &'a Menus) -> Self {
        let placed = problem.placed;
        let mut levels = vec![LevelWork::default(); chain.moduli().n_rungs()];
        let mut moves = Vec::new();
        for (index, menu) in menus.maps.iter().enumerate() {
            levels[usize::from(menu.level.0)].maps.push(index);
        }
        for id in placed.circuit().ids() {
            let (time, n_cts) = (placed.timed.time(id), placed.value(id).n_cts() as f64);
            let working = chain.level(time.working);
            let level = &mut levels[usize::from(working.0)];
            if matches!(placed.circuit().value(id).op, CircuitOp::Product(_)) {
                level.n_products += n_cts;
            }
            if placed.is_rescaled(id) {
                level.n_rescales += n_cts;
                level.n_divided = chain.moduli().rescale(time.working).divided.len();
                moves.push((working, chain.level(time.rung), n_cts));
            }
            // What is ready early is dropped for every reader.
            for source in placed.circuit().value(id).op.sources() {
                let from = chain.level(placed.timed.time(source).rung);
                if from > working {
                    moves.push((from, working, placed.value(source).n_cts() as f64));
                }
            }
        }
        Self { costs, menus, levels, moves }
    }

    /// What the way into a segment costs whose highest level this is, from a ring where its key has these parameters.
    pub(super) fn entry(&self, entry: &Params, top: Level) -> Bill {
        let crossing = self.moves.iter().filter(|(from, to, _)| *from > top && *to <= top);
        let seconds = crossing.map(|(_, to, n_cts)| n_cts * self.costs.at(entry, *to).rotation).sum();
        Bill { seconds, key_bytes: entry.key_bytes(top) as f64 }
    }

    /// What the levels from `top` down to each lower one cost in these parameters: the first entry is of `top` alone.
    pub(super) fn runs(&self, own: &Params, top: Level, key_byte: f64) -> Vec<Bill> {
        let mut best: Vec<Bill> = Vec::new();
        let priced = self.priced(own, Level(0), top);
        for share in SHARES {
            let mut walk = Walk::new(self, key_byte * share);
            let bills: Vec<Bill> = priced.iter().map(|level| walk.level(level, |_, _| ())).collect();
            if best.is_empty() {
                best = bills;
            } else {
                for (best, bill) in best.iter_mut().zip(bills) {
                    if bill.price(key_byte) < best.price(key_byte) {
                        *best = bill;
                    }
                }
            }
        }
        best
    }

    /// The bill of all levels in all segments, and of every map the plan that it is evaluated with.
    pub(super) fn planned(&self, params: &Params, key_byte: f64) -> (Bill, Vec<usize>) {
        let mut choices = vec![0; self.menus.maps.len()];
        let mut total = Bill::default();
        let tops: Vec<Level> = params.segments().map(Params::max_level).collect();
        for (segment, &top) in tops.iter().enumerate() {
            let own = params.at(top);
            let bottom = tops.get(segment + 1).map_or(0, |next| next.0 + 1);
            let mut best: Option<(Bill, Vec<(usize, usize)>)> = None;
            let priced = self.priced(own, Level(bottom), top);
            for share in SHARES {
                let mut walk = Walk::new(self, key_byte * share);
                let (mut chosen, mut bill) = (Vec::new(), Bill::default());
                for level in &priced {
                    bill = walk.level(level, |map, choice| chosen.push((map, choice)));
                }
                if best.as_ref().is_none_or(|(least, _)| bill.price(key_byte) < least.price(key_byte)) {
                    best = Some((bill, chosen));
                }
            }
            let (bill, mut chosen) = best.expect("there are shares");
            total = total.plus(bill).plus(self.refined(own, &mut chosen, key_byte));
            chosen.into_iter().for_each(|(map, choice)| choices[map] = choice);
            let entry = segment.checked_sub(1).and_then(|lower| params.lower()[lower].entry());
            total = entry.map_or(total, |entry| total.plus(self.entry(entry, top)));
        }
        (total, choices)
    }
}

impl Work<'_> {
    /// What the levels from `top` down to the lowest cost in a ring, whatever a key is worth.
    fn priced(&self, own: &Params, lowest: Level, top: Level) -> Vec<PricedLevel<'_>> {
        let of_level = |level: u16| {
            let (level, work) = (Level(level), &self.levels[usize::from(level)]);
            let step = self.costs.at(own, level);
            let of_map = |&map: &usize| {
                let menu = &self.menus.maps[map];
                menu.choices.iter().map(|choice| step.linear_of_lanes(&choice.counts, menu.lanes)).collect()
            };
            PricedLevel {
                work,
                key_bytes: own.key_bytes(KeyPlace::from(level)) as f64,
                choices: work.maps.iter().map(of_map).collect(),
                others: work.n_products * step.product + work.n_rescales * step.rescale(work.n_divided),
            }
        };
        (lowest.0..=top.0).rev().map(of_level).collect()
    }

    /// Changes the plans of a segment, those of a kind together, as long as that makes it cheaper; how the bill changes.
    fn refined(&self, own: &Params, chosen: &mut [(usize, usize)], key_byte: f64) -> Bill {
        let menus = &self.menus.maps;
        let steps: BTreeMap<Level, (StepCosts, f64)> = chosen
            .iter()
            .map(|&(map, _)| menus[map].level)
            .map(|level| (level, (self.costs.at(own, level), own.key_bytes(level) as f64)))
            .collect();
        let seconds: BTreeMap<usize, Vec<f64>> = chosen
            .iter()
            .map(|&(map, _)| {
                let (step, _) = &steps[&menus[map].level];
                let seconds = |choice: &Choice| step.linear_of_lanes(&choice.counts, menus[map].lanes);
                (map, menus[map].choices.iter().map(seconds).collect())
            })
            .collect();
        let mut has_key = vec![false; self.menus.n_rotations];
        let mut bill = |chosen: &[(usize, usize)]| {
            has_key.fill(false);
            let mut sum = Bill::default();
            for &(map, choice) in chosen {
                let menu = &menus[map];
                let (_, key_bytes) = steps[&menu.level];
                sum.seconds += seconds[&map][choice];
                for &key in &menu.choices[choice].keys {
                    if !std::mem::replace(&mut has_key[key], true) {
                        sum.key_bytes += key_bytes;
                    }
                }
            }
            sum
        };
        let first = bill(chosen);
        let mut best = first;
        let mut kinds: Vec<usize> = chosen.iter().map(|&(map, _)| menus[map].kind).collect();
        kinds.sort_unstable();
        kinds.dedup();
        for _ in 0..MOST_SWEEPS {
            let before = best;
            for &kind in &kinds {
                let n_choices = chosen.iter().find(|&&(map, _)| menus[map].kind == kind);
                let n_choices = n_choices.map_or(0, |&(map, _)| menus[map].choices.len());
                for choice in 0..n_choices {
                    let mut changed = chosen.to_vec();
                    changed
                        .iter_mut()
                        .filter(|(map, _)| menus[*map].kind == kind)
                        .for_each(|own| own.1 = choice);
                    let other = bill(&changed);
                    if other.price(key_byte) < best.price(key_byte) {
                        best = other;
                        chosen.copy_from_slice(&changed);
                    }
                }
            }
            if best == before {
                break;
            }
        }
        Bill { seconds: best.seconds - first.seconds, key_bytes: best.key_bytes - first.key_bytes }
    }
}

/// What a level costs in a ring.
struct PricedLevel<'a> {
    work: &'a LevelWork,
    /// Of one key.
    key_bytes: f64,
    /// Seconds of every plan of its maps.
    choices: Vec<Vec<f64>>,
    /// Seconds of products and rescales.
    others: f64,
}

/// A way down the levels of a segment.
struct Walk<'a> {
    work: &'a Work<'a>,
    /// What a byte of a new key is worth to the map that needs it first.
    key_byte: f64,
    has_key: Vec<bool>,
    has_relin: bool,
    has_conjugation: bool,
    bill: Bill,
}

impl<'a> Walk<'a> {
    fn new(work: &'a Work<'a>, key_byte: f64) -> Self {
        let has_key = vec![false; work.menus.n_rotations];
        let (has_relin, has_conjugation) = (false, false);
        Self { work, key_byte, has_key, has_relin, has_conjugation, bill: Bill::default() }
    }

    /// Goes down to a level; the bill of all levels so far.
    fn level(&mut self, level: &PricedLevel<'_>, mut chosen: impl FnMut(usize, usize)) -> Bill {
        let PricedLevel { work: own, key_bytes, choices, others } = level;
        for (&map, choices) in own.maps.iter().zip(choices) {
            let menu = &self.work.menus.maps[map];
            let mut best = (f64::INFINITY, 0, 0.0, 0);
            for (index, (choice, &seconds)) in menu.choices.iter().zip(choices).enumerate() {
                // What is dearer without its keys needs no count of them.
                if seconds >= best.0 {
                    continue;
                }
                // Nor one that needs more keys than it could pay for.
                let most = ((best.0 - seconds) / (self.key_byte * key_bytes)) as usize;
                let mut n_new = 0;
                for &key in choice.keys.iter() {
                    n_new += usize::from(!self.has_key[key]);
                    if n_new > most.saturating_add(1) {
                        break;
                    }
                }
                let price = seconds + self.key_byte * key_bytes * n_new as f64;
                if price < best.0 {
                    best = (price, index, seconds, n_new);
                }
            }
            let (_, index, seconds, n_new) = best;
            menu.choices[index].keys.iter().for_each(|&key| self.has_key[key] = true);
            self.bill.seconds += seconds;
            self.bill.key_bytes += n_new as f64 * key_bytes;
            if menu.is_paired && !std::mem::replace(&mut self.has_conjugation, true) {
                self.bill.key_bytes += key_bytes;
            }
            chosen(map, index);
        }
        if own.n_products > 0.0 && !std::mem::replace(&mut self.has_relin, true) {
            self.bill.key_bytes += key_bytes;
        }
        self.bill.seconds += others;
        self.bill
    }
}
