//! Search for the smallest modulus that keeps the wanted precision, and for the cheapest key switching inside the
//! security bound.
//!
//! Scales come in closed form (`balance`); every way of key switching is tried with them and judged (`candidate`). The ring
//! is the smallest one for which there is a candidate at all; who calls decides that.

use fhe_bytecode::params::{ParamsError, security_cap};
use fhe_bytecode::{CostModel, Level, Params, ParamsSpec};
use rayon::prelude::*;

use super::balance::MAX_LOCAL_BITS;
use super::candidate::{Candidate, Digits, Outcome, Way};
use super::menu::Menus;
use super::segments::Segmentation;
use super::towers::{Chains, TowerChoice, Towers};
use super::work::Work;
use crate::schedule::Problem;
use crate::schedule::noise::{Contribution, Copies};
use crate::schedule::{Chain, ChainError, Schedule, Sizes};
use crate::schedule::{LEAST_HEADROOM, WANTED_HEADROOM};

/// How much more time the room that is wanted may take than less of it.
const SCARCITY_PREMIUM: f64 = 1.02;

/// Bits by which the plans of a program may make it less precise than those that its schedule was searched with.
const SLACK_BITS: f64 = 0.2;
/// Most special primes.
pub(super) const MAX_SPECIAL: usize = 8;
/// Bits by which digits may be larger than the special modulus: what they add hides in the scale of squares.
pub(super) const BEYOND: [f64; 6] = [-8.0, 0.0, 8.0, 14.0, 19.0, 24.0];

/// The sizes of digits that are tried.
fn digits(towers: Towers) -> Vec<Digits> {
    match towers {
        Towers::PerLevel => (1..=8).map(Digits::Towers).collect(),
        Towers::Pool { .. } => BEYOND.map(Digits::Beyond).to_vec(),
    }
}

/// What evaluations and keys cost.
#[derive(Clone, Copy)]
pub(super) struct Prices<'a> {
    pub(super) costs: &'a CostModel,
    pub(super) menus: &'a Menus,
}

impl Prices<'_> {
    /// Seconds of an evaluation with the plans that are best for it, and what its keys are worth.
    fn of(self, problem: &Problem<'_>, params: &Params, chain: &Chain) -> f64 {
        self.of_work(&Work::new(problem, chain, self.costs, self.menus), params)
    }

    pub(super) fn of_work(self, work: &Work<'_>, params: &Params) -> f64 {
        let key_byte = self.costs.key_byte_s;
        work.planned(params, key_byte).0.price(key_byte)
    }
}

/// Ways that lower segments are looked for: the cheapest without them.
const SEGMENTED_WAYS: usize = 4;

/// What is asked of a schedule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Request {
    /// Standard deviation of the error of a result, as a fraction of the largest result: 2^-precision.
    pub precision: f64,
    /// Bits free between every value and half its modulus; without a wish, as many as cost nothing.
    pub headroom: Option<f64>,
    /// How towers make up the moduli of the levels.
    pub towers: TowerChoice,
    /// What lower levels may have of their own.
    pub segmentation: Segmentation,
    /// Accept a modulus beyond the security bound.
    pub insecure: bool,
}

/// Why there is no schedule.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ScheduleError {
    /// The chain itself does not exist.
    #[error(transparent)]
    Chain(#[from] ChainError),
    /// The parameters are refused.
    #[error(transparent)]
    Params(#[from] ParamsError),
    /// The paper's table has no such row.
    #[error("the paper has no parameters for {levels} levels, only for 16, 18, 20 and 32")]
    NotInPaper {
        /// Levels of the circuit.
        levels: u32,
    },
    /// Given segments have a ring that is too small for the values there.
    #[error("values at {level} repeat every {period} slots, and the ring that is given there has {slots}")]
    RingTooSmall {
        /// The level.
        level: Level,
        /// Slots after which the values repeat.
        period: usize,
        /// Slots of the ring.
        slots: usize,
    },
    /// No key switching fits next to the chain.
    #[error(
        "{levels} levels at {precision:.1} bits of precision need log2(PQ) of at least {needed:.0}, the 128-bit bound at N = 2^{log_n} is {cap}"
    )]
    DoesNotFit {
        /// Ring degree tried.
        log_n: u32,
        /// Levels of the circuit.
        levels: u32,
        /// Precision asked for.
        precision: f64,
        /// Smallest modulus found.
        needed: f64,
        /// The bound.
        cap: u32,
    },
}

/// The cheapest schedule, and what came near it.
pub(super) struct Searched {
    pub(super) schedule: Schedule,
    request: Request,
    /// The cheapest first.
    choices: Vec<Choice>,
}

/// A candidate with its segments, and the way that it is.
struct Choice {
    found: Candidate,
    towers: Towers,
    digits: Digits,
    n_special: usize,
    /// With what lack of headroom costs.
    price: f64,
    premium: f64,
}

/// Candidates whose scales are balanced again for the rings of their segments.
const REBALANCED: usize = 2;

impl Searched {
    /// The cheapest schedule, where scales may be balanced again for the noise of smaller rings.
    ///
    /// # Errors
    /// When a chain cannot be made.
    pub(super) fn rebalanced(
        self,
        problem: &Problem<'_>,
        prices: Prices<'_>,
    ) -> Result<Schedule, ScheduleError> {
        let Self { schedule, request, choices } = self;
        let (target, cap) = (request.target(problem), request.cap(problem));
        let chains = &Chains::new(problem.positions(), problem.log_n);
        let of_choice = |choice: &Choice| {
            let &Choice { ref found, towers, digits, n_special, premium, .. } = choice;
            let way = Way { chains, towers, digits, n_special, cap };
            let smaller = problem.rebalanced(found, target, way, request.segmentation, prices)?;
            Ok(smaller.map(|(found, price)| (found, price * premium)))
        };
        let all: Result<Vec<_>, ScheduleError> =
            choices[..choices.len().min(REBALANCED)].par_iter().map(of_choice).collect();
        let cheapest = all?.into_iter().flatten().reduce(|a, b| if b.1 < a.1 { b } else { a });
        let is_cheaper = |(_, price): &(Candidate, f64)| choices.first().is_none_or(|own| *price < own.price);
        Ok(match cheapest.filter(is_cheaper) {
            Some((found, _)) => problem.priced_schedule(found, request.precision, prices),
            None => schedule,
        })
    }
}

impl Request {
    /// Variance of the error of a result.
    fn target(&self, problem: &Problem<'_>) -> f64 {
        (problem.output_peak() * (-self.precision).exp2()).powi(2)
    }

    /// Largest modulus of the keys.
    fn cap(&self, problem: &Problem<'_>) -> Option<u32> {
        security_cap(problem.log_n).filter(|_| !self.insecure)
    }
}

/// The cheapest schedule at one ring degree.
///
/// # Errors
/// When nothing fits; says by how much.
pub(super) fn schedule(
    problem: Problem<'_>,
    request: Request,
    prices: Prices<'_>,
) -> Result<Searched, ScheduleError> {
    let (target, cap) = (request.target(&problem), request.cap(&problem));
    let headrooms = match request.headroom {
        Some(bits) => vec![bits.max(LEAST_HEADROOM)],
        None => vec![WANTED_HEADROOM, LEAST_HEADROOM],
    };
    let base = problem.balanced_sizes(target, headrooms[0])?;
    let chains = &Chains::new(problem.positions(), problem.log_n);
    let ways: Vec<Way<'_>> = request
        .towers
        .all()
        .iter()
        .flat_map(|&towers| {
            let way = move |(digits, n_special)| Way { chains, towers, digits, n_special, cap };
            digits(towers).into_iter().flat_map(|size| (1..=MAX_SPECIAL).map(move |n| (size, n))).map(way)
        })
        .collect();
    // What a way comes to, with its price, and the bits that it needs where these are too many.
    let tried = |way: Way<'_>, is_raised: bool| {
        let mut needed = f64::INFINITY;
        for (i, &headroom) in headrooms.iter().enumerate() {
            let base = Sizes { headroom, ..base.clone() };
            let outcome = match is_raised {
                false => problem.candidate(&base, target, way)?,
                true => problem.raised_candidate(&base, target, way)?,
            };
            match outcome {
                Outcome::Found(found) => {
                    // Less room than wanted must be worth it.
                    let premium = if i == 0 { 1.0 } else { SCARCITY_PREMIUM };
                    let price = prices.of(&problem, &found.params, &found.chain) * premium;
                    return Ok((Some((*found, price)), needed));
                }
                Outcome::TooLarge(bits) => needed = needed.min(bits),
                // Room is not what it lacks.
                Outcome::TooNoisy => break,
            }
        }
        Ok((None, needed))
    };
    let mut best: Vec<(Candidate, Way<'_>, f64)> = Vec::new();
    let mut needed = f64::INFINITY;
    // All scales a little larger where that is enough; else only those that need it.
    for is_raised in [false, true] {
        let all: Result<Vec<_>, ScheduleError> = ways.par_iter().map(|&way| tried(way, is_raised)).collect();
        for (&way, (found, bits)) in ways.iter().zip(all?) {
            needed = needed.min(bits);
            if let Some((found, price)) = found {
                let rank = best.partition_point(|(_, _, other)| *other <= price);
                best.insert(rank, (found, way, price));
                best.truncate(SEGMENTED_WAYS);
            }
        }
        if !best.is_empty() {
            break;
        }
    }
    let choices = best.into_par_iter().flat_map_iter(|(found, way, _)| {
        let mut choices = Vec::new();
        if request.headroom.is_none() {
            choices.push((problem.with_spare_bits(found.clone(), target, way), 1.0));
        }
        // Room that is free at the top may cost a smaller ring below.
        if choices.iter().all(|(wider, _)| wider.params != found.params) {
            choices.push((found, SCARCITY_PREMIUM));
        }
        choices.into_iter().map(move |(found, premium)| (found, way, premium))
    });
    let choices: Vec<_> = choices.collect();
    let all: Vec<Option<Choice>> = choices
        .into_par_iter()
        .map(|(found, way, premium)| {
            let (found, price) = problem.segmented(found, target, request.segmentation, prices)?;
            let Way { towers, digits, n_special, .. } = way;
            Some(Choice { found, towers, digits, n_special, price: price * premium, premium })
        })
        .collect();
    let mut choices: Vec<Choice> = all.into_iter().flatten().collect();
    choices.sort_by(|a, b| a.price.total_cmp(&b.price));
    let best = choices.first().map(|choice| choice.found.clone());
    let best = best.ok_or(ScheduleError::DoesNotFit {
        log_n: problem.log_n,
        levels: problem.positions().n_levels(),
        precision: request.precision,
        needed,
        cap: cap.unwrap_or(0),
    })?;
    let schedule = problem.priced_schedule(best, request.precision, prices);
    Ok(Searched { schedule, request, choices })
}

/// The schedule for given parameters and scales.
///
/// # Errors
/// When the towers do not fit the circuit.
pub fn schedule_with(
    problem: Problem<'_>,
    spec: ParamsSpec,
    sizes: &Sizes,
    costs: &CostModel,
) -> Result<Schedule, ScheduleError> {
    let chain = Chain::with_towers(problem.positions(), sizes, spec.towers.clone())?;
    problem.with_chain(Params::new(spec)?, chain, sizes.clone(), costs)
}

impl Problem<'_> {
    /// The schedule of parameters and scales that fit each other.
    ///
    /// # Errors
    /// When the values do not fit the rings of lower levels.
    pub(super) fn with_chain(
        &self,
        params: Params,
        chain: Chain,
        sizes: Sizes,
        costs: &CostModel,
    ) -> Result<Schedule, ScheduleError> {
        for (level, period) in (0..).map(Level).zip(self.periods(&chain)) {
            let slots = params.at(level).slots();
            if period > slots {
                return Err(ScheduleError::RingTooSmall { level, period, slots });
            }
        }
        let found = self.judged(params, chain, sizes);
        let precision = (self.output_peak() / found.variance.sqrt()).log2();
        let seconds = self.seconds(&found.params, &found.chain, costs);
        Ok(self.scheduled(found, precision, seconds))
    }

    /// What a schedule is expected to do with the maps of this problem, which may be planned otherwise than those it was
    /// found for.
    pub(super) fn rejudged(&self, schedule: &Schedule, costs: &CostModel) -> Schedule {
        let Schedule { params, chain, precision, headroom, .. } = schedule;
        let contributions = self.contributions(params, &chain.levels(), &self.stats.mean, Copies::Alike);
        Schedule {
            precision: *precision,
            params: params.clone(),
            chain: chain.clone(),
            error: contributions.iter().map(|c| c.variance(chain)).sum::<f64>().sqrt(),
            worst_error: self.worst_error(params, chain),
            headroom: *headroom,
            seconds: self.seconds(params, chain, costs),
            contributions,
        }
    }

    /// Whether a schedule is about as precise as was asked for, and noise small enough in every value.
    pub(super) fn is_kept(&self, schedule: &Schedule) -> bool {
        let wanted = self.output_peak() * (SLACK_BITS - schedule.precision).exp2();
        let local = |c: &Contribution| {
            c.local_variance(&schedule.chain).log2() <= MAX_LOCAL_BITS + 2.0 * SLACK_BITS + 0.5
        };
        schedule.error <= wanted && schedule.contributions.iter().all(local)
    }

    /// The schedule of a candidate with the plans that are best for it.
    fn priced_schedule(&self, found: Candidate, precision: f64, prices: Prices<'_>) -> Schedule {
        let work = Work::new(self, &found.chain, prices.costs, prices.menus);
        let (bill, _) = work.planned(&found.params, prices.costs.key_byte_s);
        self.scheduled(found, precision, bill.seconds)
    }

    fn scheduled(&self, found: Candidate, precision: f64, seconds: f64) -> Schedule {
        let Candidate { params, chain, sizes, contributions, variance } = found;
        Schedule {
            precision,
            error: variance.sqrt(),
            worst_error: self.worst_error(&params, &chain),
            headroom: sizes.rooms.iter().map(|room| chain.free_bits(room)).fold(f64::INFINITY, f64::min),
            seconds,
            contributions,
            params,
            chain,
        }
    }
}
