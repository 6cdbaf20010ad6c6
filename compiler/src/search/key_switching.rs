//! Search for the smallest modulus that keeps the wanted precision, and for the cheapest key switching inside the
//! security bound.
//!
//! Scales come in closed form (`balance`); every way of key switching is tried with them and judged (`candidate`). The ring
//! is the smallest one for which there is a candidate at all; who calls decides that.

use fhe_bytecode::params::{ParamsError, security_cap};
use fhe_bytecode::{CostModel, Params, ParamsSpec};

use super::candidate::{Candidate, Digits, Outcome, Way};
use super::segments::Segmentation;
use super::towers::{Chains, TowerChoice, Towers};
use crate::schedule::Problem;
use crate::schedule::{Chain, ChainError, Schedule, Sizes};
use crate::schedule::{LEAST_HEADROOM, WANTED_HEADROOM};

/// How much more time the room that is wanted may take than less of it.
const SCARCITY_PREMIUM: f64 = 1.02;

/// Seconds of evaluation that a byte of evaluation keys is worth: about what it takes to send and load it once.
const KEY_BYTE_SECONDS: f64 = 1e-9;
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
pub(super) struct Prices<'a>(pub(super) &'a CostModel);

impl Prices<'_> {
    /// Seconds of an evaluation, and what the keys are worth.
    pub(super) fn of(self, problem: &Problem<'_>, params: &Params, chain: &Chain) -> f64 {
        problem.seconds(params, chain, self.0) + KEY_BYTE_SECONDS * problem.key_bytes(params, chain)
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

/// The cheapest schedule at one ring degree.
///
/// # Errors
/// When nothing fits; says by how much.
pub fn schedule(
    problem: Problem<'_>,
    request: Request,
    costs: &CostModel,
) -> Result<Schedule, ScheduleError> {
    let target = (problem.output_peak() * (-request.precision).exp2()).powi(2);
    let cap = security_cap(problem.log_n).filter(|_| !request.insecure);
    let headrooms = match request.headroom {
        Some(bits) => vec![bits.max(LEAST_HEADROOM)],
        None => vec![WANTED_HEADROOM, LEAST_HEADROOM],
    };
    let base = problem.balanced_sizes(target, headrooms[0])?;
    let chains = &Chains::new(problem.positions(), problem.log_n);
    let prices = Prices(costs);
    let mut best: Vec<(Candidate, Way<'_>, f64)> = Vec::new();
    let mut needed = f64::INFINITY;
    let ways = request.towers.all().iter().flat_map(move |&towers| {
        let way = move |(digits, n_special)| Way { chains, towers, digits, n_special, cap };
        digits(towers).into_iter().flat_map(|size| (1..=MAX_SPECIAL).map(move |n| (size, n))).map(way)
    });
    // All scales a little larger where that is enough; else only those that need it.
    for is_raised in [false, true] {
        for way in ways.clone() {
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
                        let rank = best.partition_point(|(_, _, other)| *other <= price);
                        best.insert(rank, (*found, way, price));
                        best.truncate(SEGMENTED_WAYS);
                        break;
                    }
                    Outcome::TooLarge(bits) => needed = needed.min(bits),
                    // Room is not what it lacks.
                    Outcome::TooNoisy => break,
                }
            }
        }
        if !best.is_empty() {
            break;
        }
    }
    let mut cheapest: Option<(Candidate, f64)> = None;
    for (found, way, _) in best {
        let segmented = |found| problem.segmented(found, target, request.segmentation, prices);
        let mut choices = Vec::new();
        if request.headroom.is_none() {
            choices.push((problem.with_spare_bits(found.clone(), target, way), 1.0));
        }
        // Room that is free at the top may cost a smaller ring below.
        choices.push((found, SCARCITY_PREMIUM));
        for (found, premium) in choices {
            let (found, price) = segmented(found);
            if cheapest.as_ref().is_none_or(|(_, least)| price * premium < *least) {
                cheapest = Some((found, price * premium));
            }
        }
    }
    let (best, _) = cheapest.ok_or(ScheduleError::DoesNotFit {
        log_n: problem.log_n,
        levels: problem.positions().n_levels(),
        precision: request.precision,
        needed,
        cap: cap.unwrap_or(0),
    })?;
    Ok(problem.scheduled(best, request.precision, costs))
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
    Ok(problem.with_chain(Params::new(spec)?, chain, sizes.clone(), costs))
}

impl Problem<'_> {
    /// The schedule of parameters and scales that fit each other.
    pub(super) fn with_chain(
        &self,
        params: Params,
        chain: Chain,
        sizes: Sizes,
        costs: &CostModel,
    ) -> Schedule {
        let found = self.judged(params, chain, sizes);
        let precision = (self.output_peak() / found.variance.sqrt()).log2();
        self.scheduled(found, precision, costs)
    }

    fn scheduled(&self, found: Candidate, precision: f64, costs: &CostModel) -> Schedule {
        let Candidate { params, chain, sizes, contributions, variance } = found;
        Schedule {
            precision,
            error: variance.sqrt(),
            worst_error: self.worst_error(&params, &chain),
            headroom: sizes.rooms.iter().map(|room| chain.free_bits(room)).fold(f64::INFINITY, f64::min),
            seconds: self.seconds(&params, &chain, costs),
            contributions,
            params,
            chain,
        }
    }
}
