//! From the circuit to a program: the layout, the smallest ring that has a schedule, and plans that fit the memory.

use std::sync::Arc;

use fhe_bytecode::params::security_cap;
use fhe_bytecode::{Layout, Packing};
use rayon::prelude::*;

use super::facts::PlanFacts;
use super::given::ParamsChoice;
use super::key_budget;
use super::key_switching::{self, Prices, Request, ScheduleError, Searched};
use super::like;
use super::menu::{Kinds, Menus};
use crate::cluster::{Clustering, distinct_plaintexts};
use crate::emit::{self, Labels};
use crate::layout::{self, Placed, PlacedTerm};
use crate::lower::{Circuit, ValueId};
use crate::measure::Stats;
use crate::pipeline::{BuildError, BuildOptions, Built, LayoutChoice};
use crate::schedule::{PlannedParts, Problem, Schedule, Scheduled};
use crate::timed::Timed;

/// How much more time a more precise schedule may take than the cheapest.
const PRECISION_PREMIUM: f64 = 1.15;
/// Times that a search is repeated because plans turn out noisier than those it was made with.
const MOST_REPEATS: usize = 2;
/// Channels of the widest value up to which `auto` tries one ciphertext per channel.
const AUTO_HW_CHANNELS: usize = 32;

/// What does not depend on the layout.
#[derive(Clone, Copy)]
pub(crate) struct Front<'a> {
    pub(crate) timed: &'a Timed,
    pub(crate) stats: &'a Stats,
    pub(crate) options: &'a BuildOptions,
    /// What clustering did to the circuit, and the circuit without it.
    pub(crate) clustering: Option<(&'a Clustering, &'a Arc<Circuit>)>,
}

impl Front<'_> {
    /// Builds with the layout that the options ask for.
    pub(crate) fn build_any(self, labels: Labels) -> Result<Built, BuildError> {
        match self.options.layout {
            LayoutChoice::Hw => self.build(Packing::Hw, labels),
            LayoutChoice::Packed => self.build(Packing::Packed, labels),
            LayoutChoice::Auto => {
                // One ciphertext per channel only pays where channels are few.
                let n_channels = self.timed.circuit().values.iter().map(|v| v.shape.c).max().unwrap_or(0);
                let (packed, hw) = if n_channels > AUTO_HW_CHANNELS {
                    match self.build(Packing::Packed, labels.clone()) {
                        Ok(packed) => return Ok(packed),
                        packed => (packed, self.build(Packing::Hw, labels)),
                    }
                } else {
                    rayon::join(
                        || self.build(Packing::Packed, labels.clone()),
                        || self.build(Packing::Hw, labels.clone()),
                    )
                };
                match (packed, hw) {
                    (Ok(a), Ok(b)) => Ok(if b.seconds() < a.seconds() { b } else { a }),
                    (Ok(a), Err(_)) => Ok(a),
                    (Err(_), Ok(b)) => Ok(b),
                    (Err(a), Err(b)) => Err(a.smaller(b)),
                }
            }
        }
    }

    /// The cheapest program, by how many inputs of a batch share a ciphertext at most: fewer leave slots free, so that lower
    /// levels may have smaller rings.
    fn build(self, packing: Packing, labels: Labels) -> Result<Built, BuildError> {
        let key_byte = self.options.costs.key_byte_s;
        let price = |built: &Built| built.seconds() + key_byte * built.program.key_bytes() as f64;
        let mut found = self.build_shared(packing, self.options.shared, labels.clone());
        let is_like = matches!(self.options.params, ParamsChoice::Like(_));
        let mut most = if is_like { 0 } else { self.options.shared / 2 };
        while most > 0 {
            let shared = |built: &Built| built.scheduled.placed.most_members();
            // With as many as nothing has anyway it would be the same program.
            if found.as_ref().map_or(true, |built| shared(built) > most) {
                let other = self.build_shared(packing, most, labels.clone());
                found = match (found, other) {
                    (Ok(a), Ok(b)) => Ok(if price(&b) < price(&a) { b } else { a }),
                    (Ok(a), Err(_)) => Ok(a),
                    (Err(_), Ok(b)) => Ok(b),
                    (Err(a), Err(b)) => Err(a.smaller(b)),
                };
            }
            most /= 2;
        }
        found
    }

    /// A program where at most so many inputs of a batch share a ciphertext.
    fn build_shared(self, packing: Packing, most: usize, mut labels: Labels) -> Result<Built, BuildError> {
        let Self { stats, options, .. } = self;
        let Found { placed, plans } = self.smallest_ring(packing, most)?;
        labels.origin.packing = match packing {
            Packing::Hw => "hw".to_owned(),
            Packing::Packed => "packed".to_owned(),
        };
        let placed = Arc::new(placed);
        let mut refused: Option<BuildError> = None;
        for (schedule, parts) in plans {
            let scheduled = Scheduled::new(Arc::clone(&placed), Arc::new(schedule), &stats.extent, parts);
            scheduled.judge()?;
            let program = emit::emit(&scheduled, &options.costs, labels.clone())?;
            match key_budget::check(&program, options.memory) {
                Ok(()) => {
                    let clustering = self.counted(packing, program.params().slots() as u32)?;
                    let stats = stats.clone();
                    return Ok(Built { scheduled, stats, program, clustering });
                }
                Err(error) => {
                    refused = Some(match refused {
                        None => error,
                        Some(other) => other.smaller(error),
                    });
                }
            }
        }
        Err(refused.expect("there is at least one way to plan a circuit"))
    }

    /// What clustering did, with the plaintexts that there would have been.
    fn counted(self, packing: Packing, slots: u32) -> Result<Option<Clustering>, BuildError> {
        let Some((clustering, original)) = self.clustering else { return Ok(None) };
        let layouts = layout::assign(original, packing, slots)?;
        let unclustered = self.placed(&self.timed.with_constants(Arc::clone(original)), layouts, 1)?;
        Ok(Some(clustering.clone().replacing(distinct_plaintexts(&unclustered))))
    }

    fn placed(self, timed: &Timed, layouts: Vec<Layout>, batch: usize) -> Result<Placed, BuildError> {
        let acting =
            |value: ValueId, term: &PlacedTerm| self.stats.least_weights(value, term.source, term.in_place());
        Ok(Placed::of_batch(timed, layouts, batch, &acting)?)
    }

    /// Layouts and schedule at the smallest ring degree that has one.
    fn smallest_ring(self, packing: Packing, most: usize) -> Result<Found, BuildError> {
        let (positions, options) = (self.timed.positions(), self.options);
        let fixed = options.params.fixed_log_n(positions.n_levels())?;
        let range = fixed.map_or(options.log_n.clone(), |log_n| log_n..=log_n);
        let mut last: Option<BuildError> = None;
        for log_n in range.clone() {
            // A rescale takes at least the smallest prime: no layout is needed to see that a chain is too long.
            let least = f64::from(positions.n_rescales()) * f64::from(log_n + 4);
            let too_long = security_cap(log_n).is_some_and(|cap| least > f64::from(cap)) && !options.insecure;
            if too_long && log_n < *range.end() {
                continue;
            }
            match self.at_ring(packing, most, log_n) {
                Ok(found) => return Ok(found),
                Err(error @ (BuildError::Layout(_) | BuildError::Schedule(_))) => last = Some(error),
                Err(error) => return Err(error),
            }
        }
        Err(last.unwrap_or(BuildError::Empty { depth: positions.depth(), sublevels: positions.sublevels() }))
    }

    /// The most precise schedule that costs little more than the cheapest one, among whole bits of precision from the
    /// wanted one down to the least.
    fn most_precise(self, problem: Problem<'_>, prices: Prices<'_>) -> Result<Schedule, ScheduleError> {
        let (least, wanted) = (*self.options.precision.start(), *self.options.precision.end());
        let lower = |precision: &f64| (*precision > least).then(|| (precision - 1.0).max(least));
        let precisions: Vec<f64> = std::iter::successors(Some(wanted), lower).collect();
        let schedule = |&precision: &f64| {
            let BuildOptions { headroom, towers, segmentation, insecure, .. } = *self.options;
            let request = Request { precision, headroom, towers, segmentation, insecure };
            key_switching::schedule(problem, request, prices)
        };
        let mut found: Vec<Searched> = Vec::new();
        let tried: Vec<Result<Searched, ScheduleError>> = precisions.par_iter().map(schedule).collect();
        for (precision, tried) in precisions.into_iter().zip(tried) {
            match tried {
                Ok(searched) => found.push(searched),
                Err(ScheduleError::DoesNotFit { .. }) if precision > least || !found.is_empty() => {}
                Err(error) => return Err(error),
            }
        }
        let cheapest = found.iter().map(|s| s.schedule.seconds).fold(f64::INFINITY, f64::min);
        let affordable = |s: &Searched| s.schedule.seconds <= cheapest * PRECISION_PREMIUM;
        let found = found.into_iter().find(affordable).expect("the cheapest one is affordable");
        found.rebalanced(&problem, prices)
    }

    /// The layouts and the schedule at a ring degree, with plans that keep what the schedule says. Schedules are searched with
    /// plans for middling parameters; where those of the parameters found are noisier, the search is repeated with noise
    /// that covers both, and at last with noise that covers every plan.
    fn at_ring(self, packing: Packing, most: usize, log_n: u32) -> Result<Found, BuildError> {
        let Self { timed, stats, options, .. } = self;
        let layouts = match options.batch {
            1 => layout::assign(timed.circuit(), packing, 1 << (log_n - 1))?,
            _ => layout::assign_batch(timed.circuit(), packing, 1 << (log_n - 1), most as u32)?,
        };
        let placed = self.placed(timed, layouts, options.batch)?;
        placed.judge()?;
        let mut plan_facts = PlanFacts::new(&placed);
        let kinds = Kinds::new(&placed);
        let mut facts = plan_facts.middling(&kinds, log_n, &options.costs)?;
        let menus = Menus::new(&placed, &kinds);
        let prices = Prices { costs: &options.costs, menus: &menus };
        for repeat in 0.. {
            let n_encryptions = options.n_encryptions;
            let of_facts = Problem { placed: &placed, facts: &facts, stats, log_n, n_encryptions };
            let schedule = self.searched(of_facts, prices)?;
            let plans = key_budget::plans(&of_facts, &schedule, prices, options.memory);
            let of_plans: Vec<_> = plans.iter().map(|parts| plan_facts.planned(parts)).collect();
            let rejudged = |facts: &Vec<_>| Problem { facts, ..of_facts }.rejudged(&schedule, &options.costs);
            let judged: Vec<Schedule> = of_plans.iter().map(rejudged).collect();
            let is_free = options.params == ParamsChoice::Search;
            let is_kept = judged.iter().all(|schedule| of_facts.is_kept(schedule));
            if is_kept || !is_free || repeat == MOST_REPEATS {
                return Ok(Found { plans: judged.into_iter().zip(plans).collect(), placed });
            }
            for other in &of_plans {
                facts = facts.into_iter().zip(other).map(|(facts, other)| facts.covering(other)).collect();
            }
            if repeat + 1 == MOST_REPEATS {
                let maps = placed.maps().map(|(_, map)| map);
                facts = facts.into_iter().zip(maps).map(|(f, map)| f.under_any_plan(map)).collect();
            }
        }
        unreachable!("repeats end")
    }

    fn searched(self, problem: Problem<'_>, prices: Prices<'_>) -> Result<Schedule, BuildError> {
        let options = self.options;
        Ok(match (&options.params, options.params.given(&problem, options.insecure)?) {
            (ParamsChoice::Like(like), _) => like::schedule(problem, like, &options.costs)?,
            (_, Some((spec, sizes))) => key_switching::schedule_with(problem, spec, &sizes, &options.costs)?,
            (_, None) => self.most_precise(problem, prices)?,
        })
    }
}

/// A circuit in slots with its schedule, for every way to plan its maps.
struct Found {
    placed: Placed,
    plans: Vec<(Schedule, PlannedParts)>,
}
