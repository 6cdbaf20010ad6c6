//! What the search for parameters must know of the linear maps before there are any.

use std::collections::BTreeSet;

use fhe_bytecode::{CostModel, Level, Params, ParamsSpec, Plan, plan};

use super::ScheduleError;
use crate::layout::Placed;
use crate::schedule::ChainError;
use crate::schedule::noise::MapFacts;
use crate::timed::Positions;

/// Facts of every linear map, with plans for middling parameters.
pub(super) fn map_facts(
    placed: &Placed,
    log_n: u32,
    costs: &CostModel,
) -> Result<Vec<MapFacts>, ScheduleError> {
    let params = middling_params(placed.timed.positions(), log_n)?;
    let mut known = BTreeSet::new();
    let facts = placed.maps().map(|(id, map)| {
        // The chain is not known yet: a tower for every rescale.
        let level = Level(placed.timed.time(id).working.0);
        let plan: Plan = plan::plan(&map.diagonals, &costs.at(&params, level), &known);
        known.extend(plan.rotations(&map.diagonals));
        let expanded = plan.expand(&map.diagonals).expect("a plan fits the map it was made for");
        let n_numbers = placed.circuit().value(id).shape.len() * placed.layout(id).members();
        MapFacts::new(id, map, n_numbers, &expanded)
    });
    Ok(facts.collect())
}

fn middling_params(positions: &Positions, log_n: u32) -> Result<Params, ScheduleError> {
    let n_towers = positions.n_rescales() as usize + 1;
    let search = |bits, count| {
        fhe_bytecode::params::ntt_primes_below(bits, log_n, count, &[]).map_err(ChainError::from)
    };
    let spec = ParamsSpec {
        log_n,
        towers: search(42, n_towers)?,
        special_primes: search(50, 3)?,
        digit_size: 3.min(n_towers),
        pool: None,
        lower: Vec::new(),
        insecure: true,
        toy: true,
    };
    Ok(Params::new(spec)?)
}
