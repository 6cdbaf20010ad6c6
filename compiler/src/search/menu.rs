//! The plans that every map may be evaluated with, whatever the parameters are.
//!
//! Parameters change what steps and keys cost, not which plans there are. So the plans that some costs make best are found
//! once, and every set of parameters is priced by choosing among them. A plan with more steps may be the better one where it
//! gets by with keys that others have, so there are also plans in view of the keys of maps that come often.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fhe_bytecode::plan::Ways;
use fhe_bytecode::{Level, Pairing, Plan, PlanCounts, Rotation};
use rayon::prelude::*;

use crate::layout::{Placed, PlacedMap};

/// Giant steps that are about as dear as baby steps, for a guess before there are parameters.
const GIANT: usize = 3;

/// The plans of all maps, in the order of the circuit.
pub(super) struct Menus {
    pub(super) maps: Vec<Menu>,
    /// Rotations that some plan uses.
    pub(super) n_rotations: usize,
}

/// The plans of one map.
pub(super) struct Menu {
    /// The level that it is evaluated at.
    pub(super) level: Level,
    pub(super) choices: Arc<[Choice]>,
    /// Operands that it is evaluated for, with the same plaintexts.
    pub(super) lanes: usize,
    /// Whether a conjugation takes its sums apart.
    pub(super) is_paired: bool,
    /// Maps with the same number have plans with the same keys.
    pub(super) kind: usize,
}

/// One plan.
pub(super) struct Choice {
    pub(super) plan: Plan,
    pub(super) counts: PlanCounts,
    /// The rotations that need a key, by their place among all.
    pub(super) keys: Vec<usize>,
}

impl Menus {
    pub(super) fn new(placed: &Placed, maps: &Kinds<'_>) -> Self {
        let Kinds { kinds, of_map } = maps;
        let mut plans: Vec<Vec<Plan>> = kinds.iter().map(|kind| kind.ways.menu(&BTreeSet::new())).collect();
        let often = often(kinds, &plans);
        kinds.par_iter().zip(&mut plans).for_each(|(kind, own)| {
            for known in &often {
                sharing(kind, own, known);
            }
        });
        let mut rotations: BTreeMap<Rotation, usize> = BTreeMap::new();
        let mut by_keys: BTreeMap<Vec<Vec<usize>>, usize> = BTreeMap::new();
        let choices = kinds.iter().zip(plans).map(|(kind, plans)| {
            let choices = plans.into_iter().map(|plan| Choice::new(kind.map, plan, &mut rotations));
            let choices: Vec<Choice> = choices.collect();
            let next = by_keys.len();
            let keys = choices.iter().map(|choice| choice.keys.clone()).collect();
            (Arc::from(choices), *by_keys.entry(keys).or_insert(next))
        });
        let choices: Vec<(Arc<[Choice]>, usize)> = choices.collect();
        let menus = placed.maps().zip(of_map).map(|((id, map), of)| {
            let (choices, kind) = &choices[*of];
            // A level is a rung of the chain.
            let level = Level(placed.timed.time(id).working.0);
            let is_paired = map.diagonals.pairing() != Pairing::None;
            let lanes = placed.value(id).lanes;
            Menu { level, choices: Arc::clone(choices), lanes, is_paired, kind: *kind }
        });
        Self { maps: menus.collect(), n_rotations: rotations.len() }
    }
}

/// The maps of a circuit by what their plans may be.
pub(super) struct Kinds<'a> {
    kinds: Vec<Kind<'a>>,
    /// The kind of every map.
    of_map: Vec<usize>,
}

/// Maps whose plans have the same steps.
struct Kind<'a> {
    /// The first of them.
    map: &'a PlacedMap,
    ways: Ways<'a>,
    n_maps: usize,
}

impl<'a> Kinds<'a> {
    pub(super) fn new(placed: &'a Placed) -> Self {
        // The blocks of a network repeat, so that most maps have the diagonals of another one. Where plaintexts are shared, how
        // often one serves depends on weights, so such a map is like no other.
        let mut first: Vec<(&PlacedMap, bool)> = Vec::new();
        let mut of_map = Vec::new();
        for (_, map) in placed.maps() {
            let is_shared = map.diagonals.is_shared();
            let is_like = |(other, other_is_shared): &(&PlacedMap, bool)| {
                !is_shared && !other_is_shared && map.diagonals.is_like(&other.diagonals)
            };
            of_map.push(first.iter().position(is_like).unwrap_or(first.len()));
            if of_map.last() == Some(&first.len()) {
                first.push((map, is_shared));
            }
        }
        // Counting is most of the work, and maps do not depend on each other.
        let kind = |(index, (map, _)): (usize, &(&'a PlacedMap, bool))| {
            let n_maps = of_map.iter().filter(|of| **of == index).count();
            Kind { map, ways: Ways::new(&map.diagonals), n_maps }
        };
        Self { kinds: first.par_iter().enumerate().map(kind).collect(), of_map }
    }

    /// The ways to evaluate every map.
    pub(super) fn ways(&self) -> impl Iterator<Item = &Ways<'a>> {
        self.of_map.iter().map(|&kind| &self.kinds[kind].ways)
    }
}

/// The keys of maps of which there are several: of the plan with the fewest steps, and of that with the fewest keys.
fn often(kinds: &[Kind<'_>], plans: &[Vec<Plan>]) -> Vec<BTreeSet<Rotation>> {
    let keys = |map: &PlacedMap, plan: &Plan| plan.rotations(&map.diagonals);
    let mut sets: BTreeMap<Vec<Rotation>, usize> = BTreeMap::new();
    for (Kind { map, n_maps, .. }, plans) in kinds.iter().zip(plans) {
        let steps = |plan: &&Plan| {
            let counts = plan.expand(&map.diagonals).map(|plan| plan.counts()).unwrap_or_default();
            counts.babies + GIANT * counts.giants
        };
        let fastest = plans.iter().min_by_key(steps).map(|plan| keys(map, plan));
        let fewest = plans.iter().map(|plan| keys(map, plan)).min_by_key(Vec::len);
        let own: BTreeSet<Vec<Rotation>> = fastest.into_iter().chain(fewest).collect();
        own.into_iter().for_each(|keys| *sets.entry(keys).or_default() += n_maps);
    }
    sets.into_iter().filter(|(_, count)| *count > 1).map(|(keys, _)| keys.into_iter().collect()).collect()
}

/// Adds the plans of a map that need fewer keys besides those known than all that it has.
fn sharing(kind: &Kind<'_>, plans: &mut Vec<Plan>, known: &BTreeSet<Rotation>) {
    let n_new = |plan: &Plan| {
        plan.rotations(&kind.map.diagonals).iter().filter(|rotation| !known.contains(rotation)).count()
    };
    let least = plans.iter().map(n_new).min().unwrap_or(0);
    if least > 0 {
        plans.extend(kind.ways.menu(known).into_iter().filter(|plan| n_new(plan) < least));
    }
}

impl Choice {
    fn new(map: &PlacedMap, plan: Plan, known: &mut BTreeMap<Rotation, usize>) -> Self {
        let place = |rotation| {
            let next = known.len();
            *known.entry(rotation).or_insert(next)
        };
        let keys = plan.rotations(&map.diagonals).into_iter().map(place).collect();
        let expanded = plan.expand(&map.diagonals).expect("a plan fits the map it was made for");
        Self { counts: expanded.counts(), keys, plan }
    }
}
