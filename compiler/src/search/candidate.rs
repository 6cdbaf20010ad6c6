//! Ways of key switching: number and size of special primes and towers per digit, with scales to match.
//!
//! Rotations act on squared values, at the square of the activation scale, so a digit may be larger than the special
//! modulus. A candidate is judged by its predicted error; scales grow a little where that makes it feasible.

use fhe_bytecode::params::{ParamsError, ntt_primes_below, security_cap};
use fhe_bytecode::{Params, ParamsSpec};

use super::balance::MAX_LOCAL_BITS;
use super::key_switching::ScheduleError;
use super::raise::raised;
use crate::schedule::Problem;
use crate::schedule::noise::{Anchor, Contribution};
use crate::schedule::{Chain, Sizes};

/// Largest special prime: transforms are fastest up to this size.
const SPECIAL_BITS: u32 = 50;
/// How far all scales may grow to make room for cheaper key switching, in bits.
const MAX_GROWTH: f64 = 3.0;
/// Step of that growth.
const GROWTH_STEP: f64 = 0.25;

/// Times that scales are raised where noise arises.
const MAX_RAISES: usize = 24;
/// Bits of headroom beyond those asked for that are tried, if they are free.
const SPARE_BITS: [f64; 9] = [12.0, 10.0, 8.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0];

/// What came of one way of key switching.
pub(super) enum Outcome {
    /// It keeps the precision.
    Found(Box<Candidate>),
    /// It needs a modulus of this many bits.
    TooLarge(f64),
    /// It is too noisy whatever the scales.
    TooNoisy,
}

/// Parameters and scales with what they do to the result.
pub(super) struct Candidate {
    pub(super) params: Params,
    pub(super) chain: Chain,
    /// What the chain was made from.
    pub(super) sizes: Sizes,
    pub(super) contributions: Vec<Contribution>,
    pub(super) variance: f64,
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
    /// Parameters and scales with their predicted error.
    pub(super) fn judged(&self, params: Params, chain: Chain, sizes: Sizes) -> Candidate {
        let contributions = self.contributions(&params, &chain.levels(), &self.stats.mean);
        let variance = contributions.iter().map(|c| c.variance(&chain)).sum();
        Candidate { params, chain, sizes, contributions, variance }
    }

    /// Tries one way of key switching, growing the scales until the error is small enough.
    pub(super) fn candidate(
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
            let found = self.judged(params, chain, sizes.clone());
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

    /// Tries one way of key switching, raising scales where the noise arises: for circuits whose noise is in places that
    /// the closed form says nothing about.
    pub(super) fn raised_candidate(
        &self,
        base: &Sizes,
        target: f64,
        digit_size: usize,
        n_special: usize,
        cap: Option<u32>,
    ) -> Result<Outcome, ScheduleError> {
        let mut sizes = base.clone();
        for _ in 0..MAX_RAISES {
            let Some((params, chain)) = self.with_special(&sizes, digit_size, n_special, cap)? else {
                return Ok(Outcome::TooLarge(self.least_bits(&sizes)?));
            };
            let found = self.judged(params, chain, sizes);
            if found.is_good(target) {
                return Ok(Outcome::Found(Box::new(found)));
            }
            sizes = raised(self.positions(), &found, target);
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
            let found = self.judged(params, chain, wider);
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
        let chain = Chain::search(self.positions(), sizes, self.log_n)?;
        let towers = chain.towers();
        if digit_size > towers.len() {
            return Ok(None);
        }
        let log2_q = log2(&towers);
        let room = cap.map_or(f64::INFINITY, |cap| f64::from(cap) - log2_q) / n_special as f64;
        let bits = room.min(f64::from(SPECIAL_BITS)).floor();
        if bits < f64::from(self.log_n) + 6.0 {
            return Ok(None);
        }
        let Ok(special_primes) = ntt_primes_below(bits as u32, self.log_n, n_special, &towers) else {
            return Ok(None);
        };
        let spec = ParamsSpec {
            log_n: self.log_n,
            towers,
            special_primes,
            digit_size,
            pool: None,
            insecure: cap.is_none(),
            toy: security_cap(self.log_n).is_none(),
        };
        match Params::new(spec) {
            Ok(params) => Ok(Some((params, chain))),
            Err(ParamsError::Insecure { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The candidate with bits that are free below the security bound spent on headroom: as many as cost no tower, no slower
    /// prime and no precision.
    pub(super) fn with_spare_bits(&self, found: Candidate, target: f64) -> Candidate {
        let widened = |extra: &f64| {
            let sizes = Sizes { headroom: found.sizes.headroom + extra, ..found.sizes.clone() };
            let chain = Chain::search(self.positions(), &sizes, self.log_n).ok()?;
            let towers = chain.towers();
            let is_slow = |primes: &[u64]| primes.iter().any(|&q| q >> SPECIAL_BITS != 0);
            let before = found.params.towers();
            if towers.len() != before.len() || (is_slow(&towers) && !is_slow(before)) {
                return None;
            }
            let params = Params::new(ParamsSpec { towers, ..found.params.spec().clone() }).ok()?;
            let wider = self.judged(params, chain, sizes);
            wider.is_good(target).then_some(wider)
        };
        SPARE_BITS.iter().find_map(widened).unwrap_or(found)
    }

    /// The modulus these sizes need with the smallest special modulus there is.
    fn least_bits(&self, sizes: &Sizes) -> Result<f64, ScheduleError> {
        let chain = Chain::search(self.positions(), sizes, self.log_n)?;
        Ok(log2(&chain.towers()) + f64::from(self.log_n) + 6.0)
    }
}

fn log2(primes: &[u64]) -> f64 {
    primes.iter().map(|&q| (q as f64).log2()).sum()
}

/// All scales larger by some bits.
fn grown(base: &Sizes, bits: f64) -> Sizes {
    let more = |v: &Vec<f64>| v.iter().map(|b| b + bits).collect();
    Sizes {
        input: base.input + bits,
        activations: more(&base.activations),
        weights: more(&base.weights),
        ..base.clone()
    }
}
