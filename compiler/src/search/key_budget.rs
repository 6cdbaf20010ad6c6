//! Plans within a memory budget.
//!
//! With more rotation keys the steps of a map can be chosen more freely, but keys take memory, and plaintexts that find no
//! room are encoded again for every input. So when not everything fits, the plans are searched under rising prices of a
//! key, and the set that is predicted to be fastest within the budget comes first.

use std::collections::{BTreeMap, BTreeSet};

use fhe_bytecode::{CheckedProgram, CostModel, Level, Memory, Op, Plan, Rotation, plan};

use crate::pipeline::BuildError;
use crate::layout::Placed;
use crate::predict::{PlaintextUse, working_bytes};
use super::Schedule;
use crate::timed::Positions;

/// Factors on the price of a key.
const PRICES: [f64; 6] = [1.0, 4.0, 16.0, 64.0, 256.0, 1024.0];

/// Plans for every linear map, in the order of [`Placed::maps`]: the most promising set first.
pub(super) fn plans(
    placed: &Placed,
    positions: &Positions,
    schedule: &Schedule,
    costs: &CostModel,
    budget: u64,
) -> Vec<Vec<Plan>> {
    let at_price = |price: f64| PlanSet::new(placed, positions, schedule, costs, price);
    let mut sets = vec![at_price(PRICES[0])];
    if !sets[0].fits_with_plaintexts(budget) {
        sets.extend(PRICES[1..].iter().map(|&price| at_price(price)));
        sets.sort_by(|a, b| a.rank(budget).total_cmp(&b.rank(budget)));
        sets.dedup_by(|a, b| a.plans == b.plans);
    }
    sets.into_iter().map(|set| set.plans).collect()
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

/// Plans for every map at one price of a key, and what they take.
struct PlanSet {
    plans: Vec<Plan>,
    key_bytes: u64,
    working_bytes: u64,
    plaintext_bytes: u64,
    seconds: f64,
    encode_seconds: f64,
}

impl PlanSet {
    fn new(
        placed: &Placed,
        positions: &Positions,
        schedule: &Schedule,
        costs: &CostModel,
        price: f64,
    ) -> Self {
        let params = &schedule.params;
        let mut set = Self {
            plans: Vec::new(),
            key_bytes: 0,
            working_bytes: 0,
            plaintext_bytes: 0,
            seconds: 0.0,
            encode_seconds: 0.0,
        };
        let mut known: BTreeSet<Rotation> = BTreeSet::new();
        let mut levels: BTreeMap<Rotation, Level> = BTreeMap::new();
        for (id, map) in placed.maps() {
            let level = schedule.chain.level(positions.working_rung(positions.of(id)));
            let mut step = costs.at(params, level);
            step.key *= price;
            let plan = plan::plan(&map.diagonals, &step, &known);
            for rotation in plan.rotations(&map.diagonals) {
                let highest = levels.entry(rotation).or_insert(level);
                *highest = level.max(*highest);
                known.insert(rotation);
            }
            if let Ok(expanded) = plan.expand(&map.diagonals) {
                let plaintexts = PlaintextUse::new(&map.diagonals, &expanded, params, level);
                set.working_bytes = set.working_bytes.max(working_bytes(params, &expanded, level));
                set.plaintext_bytes += plaintexts.bytes;
                set.seconds += step.linear(&expanded.counts());
                set.encode_seconds += step.encode(plaintexts.count, plaintexts.period);
            }
            set.plans.push(plan);
        }
        set.key_bytes = levels.values().map(|level| params.key_bytes(*level)).sum();
        set
    }

    fn fits_with_plaintexts(&self, budget: u64) -> bool {
        self.spare(budget).is_some_and(|spare| spare >= self.plaintext_bytes)
    }

    /// Bytes left for plaintexts; nothing if keys and sums do not fit.
    fn spare(&self, budget: u64) -> Option<u64> {
        Memory { keys: self.key_bytes, working: self.working_bytes }.spare(budget)
    }

    /// Seconds of a later evaluation; sets that do not fit come after all others, the smallest first.
    fn rank(&self, budget: u64) -> f64 {
        match self.spare(budget) {
            Some(spare) => {
                let kept = (spare as f64 / self.plaintext_bytes.max(1) as f64).min(1.0);
                self.seconds + (1.0 - kept) * self.encode_seconds
            }
            None => 1e9 + (self.key_bytes + self.working_bytes) as f64,
        }
    }
}
