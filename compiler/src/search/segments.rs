//! What lower levels have of their own: a smaller ring, other special primes, other digits.
//!
//! Bits that the chain has spent are free, so below some level a half of the ring may do, if all values there repeat often enough, or
//! a larger special modulus with fewer digits. Segments do not change moduli and scales. They are added one at a time, the one
//! that saves most first, until none saves anything worth a key switch more.

use std::collections::BTreeMap;

use fhe_bytecode::params::{ntt_primes_below, security_cap};
use fhe_bytecode::{Level, Params, ParamsSpec, SegmentSpec};

use super::candidate::{Candidate, LEAST_SPECIAL_BITS};
use super::key_switching::{BEYOND, MAX_SPECIAL, Prices};
use super::towers::FAST_BITS;
use crate::schedule::{Chain, Problem};
use crate::timed::Rung;

/// What a segment has to save at least of all seconds: less is within the error of the cost model.
const LEAST_GAIN: f64 = 0.005;
/// Most segments below the first.
const MAX_SEGMENTS: usize = 4;
/// Rings that are tried below a ring.
const SMALLER: u32 = 2;

/// Which rings a build may use below the first levels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum RingChoice {
    /// Smaller ones for lower levels, where bound and slots allow it and it is faster
    #[default]
    Smaller,
    /// One for all levels
    One,
}

/// What key switching a build may use for lower levels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum SpecialChoice {
    /// Special primes and digits of their own, where it is faster
    #[default]
    ByLevel,
    /// The same special primes and towers per digit for all levels
    Fixed,
}

/// What segments may have of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segmentation {
    /// Rings.
    pub rings: RingChoice,
    /// Special primes and digits.
    pub special: SpecialChoice,
}

impl Problem<'_> {
    /// The candidate with the segments that make it cheapest, and its price.
    pub(super) fn segmented(
        &self,
        found: Candidate,
        target: f64,
        segmentation: Segmentation,
        prices: Prices<'_>,
    ) -> (Candidate, f64) {
        let mut best = found;
        let mut price = prices.of(self, &best.params, &best.chain);
        if segmentation == (Segmentation { rings: RingChoice::One, special: SpecialChoice::Fixed }) {
            return (best, price);
        }
        let periods = self.periods(&best.chain);
        let mut primes = Primes { log_n: self.log_n, known: BTreeMap::new() };
        for _ in 0..MAX_SEGMENTS {
            let options = options(&best.params, &periods, segmentation, &mut primes);
            let mut priced: Vec<(f64, Params)> = options
                .into_iter()
                .filter_map(|spec| Params::new(spec).ok())
                .map(|params| (prices.of(self, &params, &best.chain), params))
                .filter(|(other, _)| *other < price * (1.0 - LEAST_GAIN))
                .collect();
            priced.sort_by(|a, b| a.0.total_cmp(&b.0));
            let better = priced.into_iter().find_map(|(price, params)| {
                let judged = self.judged(params, best.chain.clone(), best.sizes.clone());
                judged.is_good(target).then_some((price, judged))
            });
            let Some((lower, judged)) = better else { break };
            (price, best) = (lower, judged);
        }
        (best, price)
    }

    /// For every level the largest period of what is at it or below.
    fn periods(&self, chain: &Chain) -> Vec<usize> {
        let placed = self.placed;
        let mut periods = vec![1; chain.moduli().n_rungs()];
        let mut at = |rung: Rung, period: usize| {
            let own = &mut periods[usize::from(chain.level(rung).0)];
            *own = period.max(*own);
        };
        for id in placed.circuit().ids() {
            let (time, period) = (placed.timed.time(id), placed.layout(id).period());
            at(time.rung, period);
            at(time.working, period);
            for source in placed.circuit().value(id).op.sources() {
                at(time.working, placed.layout(source).period());
            }
        }
        let mut largest = 1;
        for period in &mut periods {
            largest = largest.max(*period);
            *period = largest;
        }
        periods
    }
}

/// Special primes by their size and number: those of the largest ring, which serve all.
struct Primes {
    log_n: u32,
    known: BTreeMap<(u32, usize), Vec<u64>>,
}

impl Primes {
    /// So many of at most so many bits that are none of these.
    fn below(&mut self, bits: u32, count: usize, towers: &[u64]) -> Option<Vec<u64>> {
        let log_n = self.log_n;
        let found = self
            .known
            .entry((bits, count))
            .or_insert_with(|| ntt_primes_below(bits, log_n, count, towers).unwrap_or_default());
        (found.len() == count && !found.iter().any(|prime| towers.contains(prime))).then(|| found.clone())
    }
}

/// The parameters with one segment more, in all ways.
fn options(
    params: &Params,
    periods: &[usize],
    segmentation: Segmentation,
    primes: &mut Primes,
) -> Vec<ParamsSpec> {
    let mut all = Vec::new();
    for level in (0..params.max_level().0).map(Level) {
        let segment = params.segment(level);
        let above = params.at(level);
        // A segment that begins here already is replaced.
        let is_new = above.max_level() != level;
        let before = if is_new { segment } else { segment - 1 };
        let ring_above = before.checked_sub(1).map_or(params, |at| params.lower()[at].params()).log_n();
        let ring_below = params.lower().get(segment).map_or(0, |lower| lower.params().log_n());
        let least = match segmentation.rings {
            RingChoice::Smaller => ring_above.saturating_sub(SMALLER).max(ring_below),
            RingChoice::One => ring_above,
        };
        for log_n in (least..=ring_above).rev() {
            if periods[usize::from(level.0)] > 1 << (log_n - 1) {
                break;
            }
            for (special_primes, digits) in key_switching(params, level, log_n, segmentation, primes) {
                let mut lower = params.spec().lower.clone();
                let made = SegmentSpec { log_n, level, special_primes, digits };
                if is_new {
                    lower.insert(segment, made);
                } else {
                    lower[segment - 1] = made;
                }
                all.push(ParamsSpec { lower, ..params.spec().clone() });
            }
        }
    }
    all
}

/// Special primes and digits for the levels up to one in a ring.
fn key_switching(
    params: &Params,
    level: Level,
    log_n: u32,
    segmentation: Segmentation,
    primes: &mut Primes,
) -> Vec<(Vec<u64>, Vec<u16>)> {
    let held: Vec<u64> =
        params.held(level).iter().map(|tower| params.towers()[usize::from(tower.0)]).collect();
    let bits: Vec<f64> = held.iter().map(|&q| (q as f64).log2()).collect();
    let cap = security_cap(log_n).filter(|_| !params.spec().insecure);
    let room = cap.map_or(f64::INFINITY, |cap| f64::from(cap) - bits.iter().sum::<f64>());
    if segmentation.special == SpecialChoice::Fixed {
        let digits = grouped(&vec![1.0; held.len()], params.digit_size() as f64);
        let fits = params.log2_p() <= room;
        return if fits { vec![(params.special_primes().to_vec(), digits)] } else { Vec::new() };
    }
    let mut all = Vec::new();
    for n_special in 1..=MAX_SPECIAL {
        let each = (room / n_special as f64).min(f64::from(FAST_BITS)).floor();
        if each < f64::from(log_n) + LEAST_SPECIAL_BITS {
            break;
        }
        let Some(special) = primes.below(each as u32, n_special, &held) else { continue };
        let log2_p: f64 = special.iter().map(|&p| (p as f64).log2()).sum();
        let mut tried: Vec<Vec<u16>> = BEYOND.iter().map(|beyond| grouped(&bits, log2_p + beyond)).collect();
        tried.dedup();
        all.extend(tried.into_iter().map(|digits| (special.clone(), digits)));
    }
    all
}

/// Consecutive towers of these sizes in as few digits of at most so much as there are.
fn grouped(sizes: &[f64], most: f64) -> Vec<u16> {
    let mut digits: Vec<u16> = Vec::new();
    let mut own = f64::INFINITY;
    for size in sizes {
        match digits.last_mut() {
            Some(digit) if own + size <= most => {
                *digit += 1;
                own += size;
            }
            _ => {
                digits.push(1);
                own = *size;
            }
        }
    }
    digits
}

#[cfg(test)]
mod tests {
    use super::grouped;

    #[test]
    fn digits_are_as_large_as_they_may_be() {
        assert_eq!(grouped(&[30.0, 20.0, 20.0, 45.0], 50.0), [2, 1, 1]);
        assert_eq!(grouped(&[60.0, 60.0], 50.0), [1, 1]);
        assert_eq!(grouped(&[1.0; 7], 3.0), [3, 3, 1]);
        assert!(grouped(&[], 3.0).is_empty());
    }
}
