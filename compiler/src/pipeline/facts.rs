//! What the search for parameters must know of the linear maps before there are any.

use std::collections::BTreeSet;

use fhe_bytecode::{CostModel, Params, ParamsSpec, Plan, plan};

use crate::layout::Placed;
use crate::schedule::noise::MapFacts;
use crate::schedule::{self, Positions, ScheduleError};

/// Facts of every linear map, with plans for middling parameters.
pub(super) fn map_facts(
    placed: &Placed,
    positions: &Positions,
    log_n: u32,
    costs: &CostModel,
) -> Result<Vec<MapFacts>, ScheduleError> {
    let params = middling_params(positions, log_n)?;
    let mut known = BTreeSet::new();
    let facts = placed.maps().map(|(id, map)| {
        let level = positions.working_level(positions.of(id));
        let plan: Plan = plan::plan(&map.diagonals, &costs.at(&params, level), &known);
        known.extend(plan.rotations(&map.diagonals));
        let counts = plan.expand(&map.diagonals).map(|p| p.counts()).unwrap_or_default();
        let n_numbers = placed.circuit.value(id).shape.len() * placed.layouts[id.index()].members();
        MapFacts::new(id, map, n_numbers, counts)
    });
    Ok(facts.collect())
}

fn middling_params(positions: &Positions, log_n: u32) -> Result<Params, ScheduleError> {
    let n_towers = positions.n_levels() as usize + 1;
    let search = |bits, count| {
        fhe_bytecode::params::ntt_primes_below(bits, log_n, count, &[]).map_err(schedule::ChainError::from)
    };
    let spec = ParamsSpec {
        log_n,
        towers: search(42, n_towers)?,
        special_primes: search(50, 3)?,
        digit_size: 3.min(n_towers),
        insecure: true,
        toy: true,
    };
    Ok(Params::new(spec)?)
}
