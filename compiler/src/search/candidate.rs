//! Ways of making up moduli and of key switching: towers, their digits, number and size of special primes, with scales to match.
//!
//! Rotations act on squared values, at the square of the activation scale, so a digit may be larger than the special
//! modulus. A candidate is judged by its predicted error; scales grow a little where that makes it feasible.

use fhe_bytecode::params::{ParamsError, ntt_primes_below, security_cap};
use fhe_bytecode::{Params, ParamsSpec};

use super::balance::MAX_LOCAL_BITS;
use super::key_switching::ScheduleError;
use super::raise::raised;
use super::towers::{Chains, FAST_BITS, Towers};
use crate::schedule::Problem;
use crate::schedule::noise::{Anchor, Contribution, Copies};
use crate::schedule::{Chain, Sizes};

/// How far all scales may grow to make room for cheaper key switching, in bits.
const MAX_GROWTH: f64 = 3.0;
/// Step of that growth.
const GROWTH_STEP: f64 = 0.25;

/// Bits of the smallest special prime beyond log2 N.
pub(super) const LEAST_SPECIAL_BITS: f64 = 6.0;
/// Times that scales are raised where noise arises.
const MAX_RAISES: usize = 24;
/// Bits of headroom beyond those asked for that are tried, if they are free.
const SPARE_BITS: [f64; 9] = [12.0, 10.0, 8.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0];

/// How large the digits of key switching are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Digits {
    /// So many towers.
    Towers(usize),
    /// So many bits more than the special modulus.
    Beyond(f64),
}

/// One way: what moduli and keys are made of.
#[derive(Clone, Copy)]
pub(super) struct Way<'a> {
    pub(super) chains: &'a Chains<'a>,
    pub(super) towers: Towers,
    pub(super) digits: Digits,
    pub(super) n_special: usize,
    /// Largest modulus of the keys.
    pub(super) cap: Option<u32>,
}

impl Way<'_> {
    /// Parameters with the largest special primes that fit; nothing if none do.
    pub(super) fn with_special(&self, sizes: &Sizes) -> Result<Option<(Params, Chain)>, ScheduleError> {
        let Some(chain) = self.chains.of(self.towers, sizes)? else { return Ok(None) };
        let (towers, log_n) = (chain.moduli().towers(), self.chains.log_n());
        if matches!(self.digits, Digits::Towers(size) if size > towers.len()) {
            return Ok(None);
        }
        let room = self.cap.map_or(f64::INFINITY, |cap| f64::from(cap) - chain.moduli().log2_all())
            / self.n_special as f64;
        let bits = room.min(f64::from(FAST_BITS)).floor();
        if bits < f64::from(log_n) + LEAST_SPECIAL_BITS {
            return Ok(None);
        }
        let Ok(special_primes) = ntt_primes_below(bits as u32, log_n, self.n_special, towers) else {
            return Ok(None);
        };
        let (spec, chain) = self.spec(&chain, special_primes);
        match Params::new(spec) {
            Ok(params) => Ok(Some((params, chain))),
            Err(ParamsError::Insecure { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The parameters of a chain with these special primes, and the chain in the order of its digits.
    fn spec(&self, chain: &Chain, special_primes: Vec<u64>) -> (ParamsSpec, Chain) {
        let (chain, digits) = match self.digits {
            Digits::Towers(size) => {
                let digits = chain.moduli().digits(size);
                (chain.clone(), digits)
            }
            Digits::Beyond(bits) => {
                let (moduli, digits) = chain.moduli().in_digits(log2(&special_primes) + bits);
                (chain.clone().with_order(moduli), digits)
            }
        };
        let moduli = chain.moduli();
        let spec = ParamsSpec {
            log_n: self.chains.log_n(),
            towers: moduli.towers().to_vec(),
            special_primes,
            digit_size: digits.iter().copied().max().map_or(1, usize::from),
            pool: moduli.pool(digits),
            lower: Vec::new(),
            insecure: self.cap.is_none(),
            toy: security_cap(self.chains.log_n()).is_none(),
        };
        (spec, chain)
    }

    /// What these sizes need with the smallest special modulus there is.
    fn too_large(&self, sizes: &Sizes) -> Result<Outcome, ScheduleError> {
        let chain = self.chains.of(self.towers, sizes)?;
        let bits = chain.map_or(f64::INFINITY, |chain| chain.moduli().log2_all());
        Ok(Outcome::TooLarge(bits + f64::from(self.chains.log_n()) + LEAST_SPECIAL_BITS))
    }
}

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
#[derive(Clone)]
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

    pub(super) fn is_good(&self, target: f64) -> bool {
        // Closed-form scales meet the bound exactly; a little slack absorbs the rounding to primes.
        let local = |c: &Contribution| c.local_variance(&self.chain).log2() <= MAX_LOCAL_BITS + 0.5;
        self.variance <= target && self.contributions.iter().all(local)
    }
}

impl Problem<'_> {
    /// Parameters and scales with their predicted error.
    pub(super) fn judged(&self, params: Params, chain: Chain, sizes: Sizes) -> Candidate {
        let contributions = self.contributions(&params, &chain.levels(), &self.stats.mean, Copies::Alike);
        let variance = contributions.iter().map(|c| c.variance(&chain)).sum();
        Candidate { params, chain, sizes, contributions, variance }
    }

    /// Tries one way of key switching, growing the scales until the error is small enough.
    pub(super) fn candidate(
        &self,
        base: &Sizes,
        target: f64,
        way: Way<'_>,
    ) -> Result<Outcome, ScheduleError> {
        let mut growth = 0.0;
        while growth <= MAX_GROWTH {
            let sizes = grown(base, growth);
            let first = way.with_special(&sizes)?;
            let Some((params, chain)) = first else {
                return way.too_large(&sizes);
            };
            let found = self.judged(params, chain, sizes.clone());
            if found.is_good(target) {
                return Ok(Outcome::Found(Box::new(found)));
            }
            if found.is_hopeless(target) {
                break;
            }
            // A larger input scale alone helps where the first layer's rotations are the problem.
            if let Some(found) = self.with_wider_input(&sizes, target, way)? {
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
        way: Way<'_>,
    ) -> Result<Outcome, ScheduleError> {
        let mut sizes = base.clone();
        for _ in 0..MAX_RAISES {
            let Some((params, chain)) = way.with_special(&sizes)? else {
                return way.too_large(&sizes);
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
        way: Way<'_>,
    ) -> Result<Option<Outcome>, ScheduleError> {
        for extra in [4.0, 8.0, 12.0, 16.0, 20.0, 24.0] {
            let wider = Sizes { input: sizes.input + extra, ..sizes.clone() };
            let Some((params, chain)) = way.with_special(&wider)? else {
                return Ok(None);
            };
            let found = self.judged(params, chain, wider);
            if found.is_good(target) {
                return Ok(Some(Outcome::Found(Box::new(found))));
            }
        }
        Ok(None)
    }

    /// The candidate with bits that are free below the security bound spent on headroom: as many as cost no tower, no slower
    /// prime and no precision.
    pub(super) fn with_spare_bits(&self, found: Candidate, target: f64, way: Way<'_>) -> Candidate {
        let widened = |extra: &f64| {
            let sizes = Sizes { headroom: found.sizes.headroom + extra, ..found.sizes.clone() };
            let chain = way.chains.of(way.towers, &sizes).ok()??;
            let (moduli, before) = (chain.moduli(), found.chain.moduli());
            let is_slow = |primes: &[u64]| primes.iter().any(|&q| q >> FAST_BITS != 0);
            if moduli.towers().len() != before.towers().len()
                || moduli.n_residues() > before.n_residues()
                || (is_slow(moduli.towers()) && !is_slow(before.towers()))
            {
                return None;
            }
            let special_primes = found.params.special_primes().to_vec();
            let (spec, chain) = way.spec(&chain, special_primes);
            let wider = self.judged(Params::new(spec).ok()?, chain, sizes);
            wider.is_good(target).then_some(wider)
        };
        SPARE_BITS.iter().find_map(widened).unwrap_or(found)
    }
}

fn log2(primes: &[u64]) -> f64 {
    primes.iter().map(|&q| (q as f64).log2()).sum()
}

/// All scales larger by some bits.
pub(super) fn grown(base: &Sizes, bits: f64) -> Sizes {
    let more = |v: &Vec<f64>| v.iter().map(|b| b + bits).collect();
    Sizes {
        input: base.input + bits,
        activations: more(&base.activations),
        weights: more(&base.weights),
        ..base.clone()
    }
}
