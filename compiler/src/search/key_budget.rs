//! Plans within a memory budget.
//!
//! With more rotation keys the steps of a map can be chosen more freely, but keys take memory, and plaintexts that find no
//! room are encoded again for every input. So when not everything fits, the plans are searched under rising prices of a
//! key, and the set that is predicted to be fastest within the budget comes first.

use std::sync::Arc;

use fhe_bytecode::{CheckedProgram, Level, Memory, Op, Plan};

use super::key_switching::Prices;
use super::work::{Bill, Work};
use crate::layout::{Part, PlacedMap};
use crate::pipeline::BuildError;
use crate::predict::{PlaintextUse, working_bytes};
use crate::schedule::{PlannedMap, PlannedParts, Problem, Schedule};

/// Factors on the price of a key.
const PRICES: [f64; 6] = [1.0, 4.0, 16.0, 64.0, 256.0, 1024.0];

/// The parts of all values with a plan inside every map: the most promising set first.
pub(super) fn plans(
    problem: &Problem<'_>,
    schedule: &Schedule,
    prices: Prices<'_>,
    budget: u64,
) -> Vec<PlannedParts> {
    let work = Work::new(problem, &schedule.chain, prices.costs, prices.menus);
    let at_price = |price: f64| work.planned(&schedule.params, prices.costs.key_byte_s * price);
    let mut known: Vec<Vec<usize>> = Vec::new();
    let mut sets: Vec<PlanSet<'_>> = Vec::new();
    for price in PRICES {
        let (bill, choices) = at_price(price);
        // Another price may make the same plans best.
        if !known.contains(&choices) {
            sets.push(PlanSet::new(problem, schedule, prices, bill, &choices));
            known.push(choices);
        }
        if sets[0].fits_with_plaintexts(budget) {
            break;
        }
    }
    sets.sort_by(|a, b| a.rank(budget).total_cmp(&b.rank(budget)));
    sets.into_iter().map(|set| set.parts).collect()
}

/// Refuses a program whose keys, ciphertexts and sums do not fit the budget.
pub(super) fn check(program: &CheckedProgram, budget: u64) -> Result<(), BuildError> {
    let memory = Memory::of(program);
    if memory.needed() <= budget {
        return Ok(());
    }
    let Memory { keys, working } = memory;
    let mut most = (0, String::new());
    for step in program.steps() {
        if let Op::Linear { map, .. } = step.op() {
            let diagonals = &program.map(*map).diagonals;
            let n_keys = program.spec().maps[map.index()].plan.rotations(diagonals).len() as u64;
            let own = n_keys * program.params().key_bytes(step.level()) + step.working_bytes;
            if own > most.0 {
                most = (own, program.spec().layers[step.instruction.layer.index()].name.clone());
            }
        }
    }
    let (layer_bytes, layer) = most;
    Err(BuildError::Memory { keys, working, budget, layer, layer_bytes })
}

/// A plan for every map, and what they take.
struct PlanSet<'a> {
    schedule: &'a Schedule,
    prices: Prices<'a>,
    bill: Bill,
    parts: PlannedParts,
    working_bytes: u64,
    plaintext_bytes: u64,
    encode_seconds: f64,
}

impl<'a> PlanSet<'a> {
    fn new(
        problem: &Problem<'_>,
        schedule: &'a Schedule,
        prices: Prices<'a>,
        bill: Bill,
        choices: &[usize],
    ) -> Self {
        let mut set = Self {
            schedule,
            prices,
            bill,
            parts: Vec::new(),
            working_bytes: 0,
            plaintext_bytes: 0,
            encode_seconds: 0.0,
        };
        let placed = problem.placed;
        let menus = prices.menus.maps.iter().zip(choices);
        let mut plans = menus.map(|(menu, &choice)| menu.choices[choice].plan.clone());
        for id in placed.circuit().ids() {
            let level = schedule.chain.level(placed.timed.time(id).working);
            let parts = placed.value(id).parts.iter().map(|part| match part {
                Part::Map(map) => {
                    let plan = plans.next().expect("every map has a menu");
                    Part::Map(set.planned(map, plan, level, placed.value(id).lanes))
                }
                Part::Scalar { source } => Part::Scalar { source: *source },
                Part::Plain { source, factor } => Part::Plain { source: *source, factor: *factor },
            });
            let parts = parts.collect();
            set.parts.push(parts);
        }
        set
    }

    /// Adds what the next map takes under its plan.
    fn planned(&mut self, map: &Arc<PlacedMap>, plan: Plan, level: Level, lanes: usize) -> PlannedMap {
        let params = &self.schedule.params;
        let expanded = plan.expand(&map.diagonals).expect("a plan fits the map it was made for");
        let plaintexts = PlaintextUse::new(&map.diagonals, &expanded, params, level);
        self.working_bytes = self.working_bytes.max(working_bytes(params, &expanded, level) * lanes as u64);
        self.plaintext_bytes += plaintexts.bytes;
        let step = self.prices.costs.at(params, level);
        self.encode_seconds += step.encode(plaintexts.count, plaintexts.period);
        PlannedMap { map: Arc::clone(map), plan }
    }

    fn key_bytes(&self) -> u64 {
        self.bill.key_bytes as u64
    }

    fn fits_with_plaintexts(&self, budget: u64) -> bool {
        self.spare(budget).is_some_and(|spare| spare >= self.plaintext_bytes)
    }

    /// Bytes left for plaintexts; nothing if keys and sums do not fit.
    fn spare(&self, budget: u64) -> Option<u64> {
        Memory { keys: self.key_bytes(), working: self.working_bytes }.spare(budget)
    }

    /// Seconds of a later evaluation; sets that do not fit come after all others, the smallest first.
    fn rank(&self, budget: u64) -> f64 {
        match self.spare(budget) {
            Some(spare) => {
                let kept = (spare as f64 / self.plaintext_bytes.max(1) as f64).min(1.0);
                self.bill.seconds + (1.0 - kept) * self.encode_seconds
            }
            None => 1e9 + (self.key_bytes() + self.working_bytes) as f64,
        }
    }
}
