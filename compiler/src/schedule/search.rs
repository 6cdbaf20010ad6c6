//! Search for the smallest modulus that keeps the wanted precision, and for the cheapest key switching inside the
//! security bound.
//!
//! Scales come in closed form (`balance`); every way of key switching is tried with them and judged (`candidate`). The ring
//! is the smallest one for which there is a candidate at all; who calls decides that.

use fhe_bytecode::params::{ParamsError, security_cap};
use fhe_bytecode::{CostModel, Params, ParamsSpec};

use super::candidate::{Candidate, Outcome};
use super::chain::{Chain, ChainError, Sizes};
use super::noise::Contribution;
use super::problem::Problem;

/// What is asked of a schedule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Request {
    /// Standard deviation of the error of a result, as a fraction of the largest result: 2^-precision.
    pub precision: f64,
    /// Accept a modulus beyond the security bound.
    pub insecure: bool,
}

/// A schedule: parameters, scales and what they are expected to do.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// Bits between the largest result and the deviation of its error that were asked for.
    pub precision: f64,
    /// The checked parameters.
    pub params: Params,
    /// Scales of all positions.
    pub chain: Chain,
    /// Predicted standard deviation of the error of a result.
    pub error: f64,
    /// What the error is made of.
    pub contributions: Vec<Contribution>,
    /// Predicted seconds on one core, encodings left out.
    pub seconds: f64,
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
    let base = problem.balanced_sizes(target)?;
    let mut best: Option<Schedule> = None;
    let mut needed = f64::INFINITY;
    for digit_size in 1..=8 {
        for n_special in 1..=8 {
            match problem.candidate(&base, target, digit_size, n_special, cap)? {
                Outcome::Found(found) => {
                    let seconds = problem.seconds(&found.params, costs);
                    if best.as_ref().is_none_or(|b| seconds < b.seconds) {
                        let Candidate { params, chain, contributions, variance } = *found;
                        best = Some(Schedule {
                            precision: request.precision,
                            params,
                            chain,
                            error: variance.sqrt(),
                            contributions,
                            seconds,
                        });
                    }
                }
                Outcome::TooLarge(bits) => needed = needed.min(bits),
                Outcome::TooNoisy => {}
            }
        }
    }
    best.ok_or(ScheduleError::DoesNotFit {
        log_n: problem.log_n,
        levels: problem.positions.n_levels(),
        precision: request.precision,
        needed,
        cap: cap.unwrap_or(0),
    })
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
    let chain = Chain::with_towers(problem.positions, sizes, spec.towers.clone())?;
    let Candidate { params, chain, contributions, variance } = problem.judged(Params::new(spec)?, chain);
    let seconds = problem.seconds(&params, costs);
    let precision = (problem.output_peak() / variance.sqrt()).log2();
    Ok(Schedule { precision, params, chain, error: variance.sqrt(), contributions, seconds })
}
