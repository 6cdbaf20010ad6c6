//! Search for the smallest modulus that keeps the wanted precision, and for the cheapest key switching inside the
//! security bound.
//!
//! 1. Scales: the noise of rescales and of weight encodings is amount/scale² summed over the circuit. For a given sum the
//!    fewest bits are spent when all summands are equal, which gives every scale in closed form.
//! 2. Key switching: number and size of special primes and towers per digit. Rotations act on squared values, at the square
//!    of the activation scale, so a digit may be larger than the special modulus; the candidates are judged by their
//!    predicted error and cost, and scales grow a little where that makes a candidate feasible.
//! 3. The ring: the smallest degree for which there is such a candidate.

use fhe_bytecode::params::{ParamsError, ntt_primes_below, security_cap};
use fhe_bytecode::{CostModel, Params, ParamsSpec};

use super::chain::{Chain, ChainError, Sizes};
use super::noise::{Anchor, Contribution};
use super::positions::Positions;
use super::problem::Problem;

/// Largest special prime: transforms are fastest up to this size.
const SPECIAL_BITS: u32 = 50;
/// Largest noise-to-signal ratio of one contribution in its value, in bits of the variance. Beyond it noise no longer acts
/// linearly, and what a gain says about the result is void.
const MAX_LOCAL_BITS: f64 = -11.0;
/// How far all scales may grow to make room for cheaper key switching, in bits.
const MAX_GROWTH: f64 = 3.0;
/// Step of that growth.
const GROWTH_STEP: f64 = 0.25;

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

enum Outcome {
    Found(Box<Candidate>),
    TooLarge(f64),
    TooNoisy,
}

/// Parameters and scales with what they do to the result.
struct Candidate {
    params: Params,
    chain: Chain,
    contributions: Vec<Contribution>,
    variance: f64,
}

impl Candidate {
    /// Whether the error is beyond what larger scales can mend.
    fn is_hopeless(&self, target: f64) -> bool {
        let elsewhere = self.contributions.iter().filter(|c| c.anchor != Anchor::After(0));
        elsewhere.map(|c| c.variance(&self.chain)).sum::<f64>() > target * (4.0 * MAX_GROWTH).exp2()
    }

    fn is_good(&self, target: f64) -> bool {
        // Closed-form scales meet the bound exactly; a little slack absorbs the rounding to primes.
        let local = |c: &Contribution| c.local_variance(&self.chain).log2() <= MAX_LOCAL_BITS + 0.5;
        self.variance <= target && self.contributions.iter().all(local)
    }
}

impl Problem<'_> {
    fn judged(&self, params: Params, chain: Chain) -> Candidate {
        let contributions = self.contributions(&params);
        let variance = contributions.iter().map(|c| c.variance(&chain)).sum();
        Candidate { params, chain, contributions, variance }
    }

    /// Scales at which every rescale, every layer's weights and the input add the same variance, `target` in all.
    fn balanced_sizes(&self, target: f64) -> Result<Sizes, ScheduleError> {
        let positions = self.positions;
        let depth = positions.depth();
        // Any parameters of this ring degree will do: rescale and encoding noise do not depend on the rest.
        let towers = ntt_primes_below(40, self.log_n, positions.n_levels() as usize + 1, &[])
            .map_err(ChainError::from)?;
        let special_primes = ntt_primes_below(59, self.log_n, 2, &[]).map_err(ChainError::from)?;
        let spec = ParamsSpec {
            log_n: self.log_n,
            towers,
            special_primes,
            digit_size: 1,
            insecure: true,
            toy: true,
        };
        let all = self.contributions(&Params::new(spec)?);
        let mut after = vec![0.0; depth as usize + 1];
        let mut weight = vec![0.0; depth as usize + 1];
        // Bits below which the noise of a value would be too large for the value.
        let mut after_least: Vec<f64> = vec![12.0; depth as usize + 1];
        let mut weight_least: Vec<f64> = vec![6.0; depth as usize + 1];
        for c in &all {
            let least = 0.5 * (c.local.log2() - MAX_LOCAL_BITS);
            match c.anchor {
                Anchor::After(p) if p == 0 || positions.is_boundary(p) => {
                    after[p as usize] += c.amount;
                    after_least[p as usize] = after_least[p as usize].max(least);
                }
                Anchor::Weight { to, .. } => {
                    weight[to as usize] += c.amount;
                    weight_least[to as usize] = weight_least[to as usize].max(least);
                }
                Anchor::After(_) | Anchor::Before(_) => {}
            }
        }
        let n = after.iter().chain(&weight).filter(|a| **a > 0.0).count().max(1) as f64;
        let bits = |amount: f64, least: f64| (0.5 * (amount * n / target).log2()).max(least);
        let boundaries = (1..=depth).filter(|&p| positions.is_boundary(p));
        Ok(Sizes {
            input: bits(after[0], after_least[0]),
            activations: boundaries.map(|p| bits(after[p as usize], after_least[p as usize])).collect(),
            weights: (1..=depth as usize).map(|p| bits(weight[p], weight_least[p])).collect(),
            headroom: self.headroom(),
        })
    }

    /// Tries one way of key switching, growing the scales until the error is small enough.
    fn candidate(
        &self,
        base: &Sizes,
        target: f64,
        digit_size: usize,
        n_special: usize,
        cap: Option<u32>,
    ) -> Result<Outcome, ScheduleError> {
        let mut growth = 0.0;
        while growth <= MAX_GROWTH {
            let sizes = grown(base, growth);
            let first = self.with_special(&sizes, digit_size, n_special, cap)?;
            let Some((params, chain)) = first else {
                return Ok(Outcome::TooLarge(self.least_bits(&sizes)?));
            };
            let found = self.judged(params, chain);
            if found.is_good(target) {
                return Ok(Outcome::Found(Box::new(found)));
            }
            if found.is_hopeless(target) {
                break;
            }
            // A larger input scale alone helps where the first layer's rotations are the problem.
            if let Some(found) = self.with_wider_input(&sizes, target, digit_size, n_special, cap)? {
                return Ok(found);
            }
            growth += GROWTH_STEP;
        }
        Ok(Outcome::TooNoisy)
    }

    fn with_wider_input(
        &self,
        sizes: &Sizes,
        target: f64,
        digit_size: usize,
        n_special: usize,
        cap: Option<u32>,
    ) -> Result<Option<Outcome>, ScheduleError> {
        for extra in [4.0, 8.0, 12.0, 16.0, 20.0, 24.0] {
            let wider = Sizes { input: sizes.input + extra, ..sizes.clone() };
            let Some((params, chain)) = self.with_special(&wider, digit_size, n_special, cap)? else {
                return Ok(None);
            };
            let found = self.judged(params, chain);
            if found.is_good(target) {
                return Ok(Some(Outcome::Found(Box::new(found))));
            }
        }
        Ok(None)
    }

    /// Parameters with the largest special primes that fit; nothing if none do.
    fn with_special(
        &self,
        sizes: &Sizes,
        digit_size: usize,
        n_special: usize,
        cap: Option<u32>,
    ) -> Result<Option<(Params, Chain)>, ScheduleError> {
        let chain = match Chain::search(self.positions, sizes, self.log_n) {
            Err(ChainError::PrimeTooLarge { .. }) if sizes.input > 30.0 => return Ok(None),
            other => other?,
        };
        let log2_q: f64 = chain.towers.iter().map(|&q| (q as f64).log2()).sum();
        if digit_size > chain.towers.len() {
            return Ok(None);
        }
        let room = cap.map_or(f64::INFINITY, |cap| f64::from(cap) - log2_q) / n_special as f64;
        let bits = room.min(f64::from(SPECIAL_BITS)).floor();
        if bits < f64::from(self.log_n) + 6.0 {
            return Ok(None);
        }
        let Ok(special_primes) = ntt_primes_below(bits as u32, self.log_n, n_special, &chain.towers) else {
            return Ok(None);
        };
        let spec = ParamsSpec {
            log_n: self.log_n,
            towers: chain.towers.clone(),
            special_primes,
            digit_size,
            insecure: cap.is_none(),
            toy: security_cap(self.log_n).is_none(),
        };
        match Params::new(spec) {
            Ok(params) => Ok(Some((params, chain))),
            Err(ParamsError::Insecure { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The modulus these sizes need with the smallest special modulus there is.
    fn least_bits(&self, sizes: &Sizes) -> Result<f64, ScheduleError> {
        let chain = Chain::search(self.positions, sizes, self.log_n)?;
        let log2_q: f64 = chain.towers.iter().map(|&q| (q as f64).log2()).sum();
        Ok(log2_q + f64::from(self.log_n) + 6.0)
    }
}

/// All scales larger by some bits.
fn grown(base: &Sizes, bits: f64) -> Sizes {
    let more = |v: &Vec<f64>| v.iter().map(|b| b + bits).collect();
    Sizes {
        input: base.input + bits,
        activations: more(&base.activations),
        weights: more(&base.weights),
        headroom: base.headroom,
    }
}

/// The sizes of uniform scales: one for activations, one for weights.
#[must_use]
pub fn uniform_sizes(
    positions: &Positions,
    input: f64,
    activation: f64,
    weight: f64,
    headroom: f64,
) -> Sizes {
    Sizes {
        input,
        activations: vec![activation; positions.n_levels() as usize],
        weights: vec![weight; positions.depth() as usize],
        headroom,
    }
}
