//! What the search for parameters must know of the linear maps before there are any.

use std::collections::BTreeSet;

use fhe_bytecode::{CostModel, Level, Params, ParamsSpec, Plan};
use rayon::prelude::*;

use super::ScheduleError;
use super::menu::Kinds;
use crate::layout::{Part, Placed, PlacedMap};
use crate::lower::ValueId;
use crate::schedule::noise::MapFacts;
use crate::schedule::{ChainError, PlannedMap, PlannedParts};
use crate::timed::Positions;

/// The facts of the maps of a circuit under plans, each found once.
pub(super) struct PlanFacts<'a> {
    placed: &'a Placed,
    /// Map by map, for the plans that were asked for.
    known: Vec<Known>,
}

/// The plans that a map was seen under.
type Known = Vec<(Plan, MapFacts)>;

impl<'a> PlanFacts<'a> {
    pub(super) fn new(placed: &'a Placed) -> Self {
        Self { placed, known: vec![Vec::new(); placed.maps().count()] }
    }

    /// Of every map, with plans for middling parameters.
    pub(super) fn middling(
        &mut self,
        kinds: &Kinds<'_>,
        log_n: u32,
        costs: &CostModel,
    ) -> Result<Vec<MapFacts>, ScheduleError> {
        let placed = self.placed;
        let params = middling_params(placed.timed.positions(), log_n)?;
        let mut keys = BTreeSet::new();
        let plans = placed.maps().zip(kinds.ways()).map(|((id, map), ways)| {
            // The chain is not known yet: a tower for every rescale.
            let level = Level(placed.timed.time(id).working.0);
            let plan = ways.cheapest(&costs.at(&params, level), &keys);
            keys.extend(plan.rotations(&map.diagonals));
            plan
        });
        Ok(self.of_all(&plans.collect::<Vec<_>>().iter().collect::<Vec<_>>()))
    }

    /// Of every map, with the plans that it is evaluated with.
    pub(super) fn planned(&mut self, parts: &PlannedParts) -> Vec<MapFacts> {
        let plans = parts.iter().flatten().filter_map(|part| match part {
            Part::Map(PlannedMap { plan, .. }) => Some(plan),
            Part::Scalar { .. } | Part::Plain { .. } => None,
        });
        self.of_all(&plans.collect::<Vec<_>>())
    }

    /// Of every map under a plan. Maps do not depend on each other.
    fn of_all(&mut self, plans: &[&Plan]) -> Vec<MapFacts> {
        let placed = self.placed;
        let maps: Vec<(ValueId, &PlacedMap)> = placed.maps().collect();
        let of_map = |(((id, map), plan), known): (((ValueId, &PlacedMap), &&Plan), &mut Known)| {
            if let Some((_, facts)) = known.iter().find(|(known, _)| known == *plan) {
                return facts.clone();
            }
            let expanded = plan.expand(&map.diagonals).expect("a plan fits the map it was made for");
            let facts = MapFacts::new(id, map, placed.layout(id), &expanded);
            known.push(((*plan).clone(), facts.clone()));
            facts
        };
        maps.into_par_iter().zip(plans).zip(&mut self.known).map(of_map).collect()
    }
}

fn middling_params(positions: &Positions, log_n: u32) -> Result<Params, ScheduleError> {
    let n_towers = positions.n_rescales() as usize + 1;
    let search = |bits, count| {
        fhe_bytecode::params::ntt_primes_below(bits, log_n, count, &[]).map_err(ChainError::from)
    };
    let spec = ParamsSpec {
        digit_size: 3.min(n_towers),
        ..ParamsSpec::toy(log_n, search(42, n_towers)?, search(50, 3)?)
    };
    Ok(Params::new(spec)?)
}

#[cfg(test)]
mod tests {
    use fhe_bytecode::Memory;
    use fhec_ir::spec::GraphSpec;

    use super::*;
    use crate::pipeline::Built;
    use crate::schedule::Problem;
    use crate::{CompileError, Model, Request, compile};

    const LOG_N: u32 = 11;

    /// Keys that cost next to nothing, so that plans have as many as the memory allows.
    fn costs() -> CostModel {
        CostModel { key_byte_s: 1e-11, ..CostModel::default() }
    }

    /// Two convolutions with a square between, within a memory.
    fn built(memory: u64) -> Result<Built, CompileError> {
        let nodes = r#"(nodes: [
            (name: "x", op: Input(8, 8, 8)),
            (name: "c", of: ["x"], op: Conv2d(weight: Between([8, 8, 3, 3], 1, -0.4, 0.4), pads: (top: 1, left: 1, bottom: 1, right: 1))),
            (name: "q", of: ["c"], op: Poly(Values([3, 1], [0.1, 0.2, 1.0]))),
            (name: "d", of: ["q"], op: Conv2d(weight: Between([8, 8, 3, 3], 3, -0.4, 0.4), stride: (2, 2), pads: (top: 1, left: 1, bottom: 1, right: 1))),
            (name: "o", of: ["d"], op: Output),
        ])"#;
        let spec: GraphSpec = ron::from_str(nodes).unwrap();
        let model = Model::graph("network", spec.build().unwrap());
        let log_n = Some(LOG_N..=LOG_N);
        let request = Request { toy: true, log_n, memory, costs: costs(), ..Request::new(model) };
        Ok(compile(&request, &mut ())?.built)
    }

    /// The deviation that a program states, what its own plans give, and what the plans of middling parameters give.
    fn errors(built: &Built) -> [f64; 3] {
        let (placed, schedule) = (&built.scheduled.placed, &built.scheduled.schedule);
        let parts = placed.circuit().ids().map(|id| built.scheduled.value(id).parts.clone()).collect();
        let mut facts = PlanFacts::new(placed);
        let middling = facts.middling(&Kinds::new(placed), LOG_N, &costs()).unwrap();
        let [own, middling] = [facts.planned(&parts), middling].map(|facts| {
            let problem =
                Problem { placed, facts: &facts, stats: &built.stats, log_n: LOG_N, n_encryptions: 1 };
            assert!(problem.is_kept(schedule), "{} bits asked for", schedule.precision);
            problem.worst_error(&schedule.params, &schedule.chain)
        });
        [schedule.worst_error, own, middling]
    }

    /// Little memory means few keys and other plans. The bound was that of the plans for middling parameters.
    #[test]
    fn programs_state_the_error_of_their_own_plans() {
        let needed = Memory::of(&built(u64::MAX).unwrap().program).needed();
        let within = |tenths: u64| built(needed * tenths / 10).ok();
        let built: Vec<Built> = (4..=11).filter_map(within).collect();
        let errors: Vec<[f64; 3]> = built.iter().map(errors).collect();
        assert!(errors.iter().all(|[stated, own, _]| stated == own), "{errors:?}");
        assert!(
            errors.iter().any(|[_, own, middling]| own != middling),
            "no plan is another one: {errors:?}"
        );
    }
}
