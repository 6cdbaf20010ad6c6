//! What lower levels have of their own: a smaller ring, other special primes, other digits.
//!
//! Bits that the chain has spent are free, so below some level a half of the ring may do, if all values there repeat often
//! enough, or a larger special modulus with fewer digits. Segments do not change moduli and scales. What a segment costs does
//! not depend on the others ([`Work::runs`]), so the best boundaries follow by dynamic programming from the lowest level up.

use std::collections::BTreeMap;
use std::rc::Rc;

use fhe_bytecode::params::{ntt_primes_below, security_cap};
use fhe_bytecode::{Level, Params, ParamsSpec, SegmentSpec};

use super::candidate::{Candidate, LEAST_SPECIAL_BITS, Way, grown};
use super::key_switching::{BEYOND, MAX_SPECIAL, Prices, ScheduleError};
use super::towers::FAST_BITS;
use super::work::Work;
use crate::schedule::{Chain, Problem, Sizes};
use crate::timed::Rung;

/// What a segment has to save at least of time and keys: less is within the error of the cost model.
const LEAST_GAIN: f64 = 0.005;
/// Most segments below the first.
const MAX_SEGMENTS: usize = 4;
/// Bits by which scales grow where those that noise of smaller rings asks for are not quite enough.
const REBALANCED_GROWTH: [f64; 4] = [0.0, 0.1, 0.2, 0.4];
/// Rings that are tried below a ring.
const SMALLER: u32 = 2;

/// Which rings a build may use below the first levels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RingChoice {
    /// Smaller ones for lower levels, where bound and slots allow it and it is faster.
    #[default]
    Smaller,
    /// One for all levels.
    One,
}

/// What key switching a build may use for lower levels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SpecialChoice {
    /// Special primes and digits of their own, where it is faster.
    #[default]
    ByLevel,
    /// The same special primes and towers per digit for all levels.
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

impl SpecialChoice {
    /// Bits by which digits may be larger than special moduli, as they are tried.
    fn beyond(self) -> &'static [f64] {
        match self {
            Self::ByLevel => &BEYOND,
            Self::Fixed => &BEYOND[..1],
        }
    }
}

impl Problem<'_> {
    /// The candidate with the segments that make it cheapest, and its price; nothing where it is too noisy with all of them.
    pub(super) fn segmented(
        &self,
        found: Candidate,
        target: f64,
        segmentation: Segmentation,
        prices: Prices<'_>,
    ) -> Option<(Candidate, f64)> {
        let work = Work::new(self, &found.chain, prices.costs, prices.menus);
        let price = prices.of_work(&work, &found.params);
        if segmentation == (Segmentation { rings: RingChoice::One, special: SpecialChoice::Fixed }) {
            return found.is_good(target).then_some((found, price));
        }
        let mut catalog = Catalog {
            work: &work,
            params: &found.params,
            periods: self.periods(&found.chain),
            segmentation,
            key_byte: prices.costs.key_byte_s,
            primes: Primes { log_n: self.log_n, known: BTreeMap::new() },
            made: BTreeMap::new(),
        };
        let mut all: Vec<(f64, Params)> = Vec::new();
        for beyond in segmentation.special.beyond() {
            let lower = catalog.cheapest(*beyond, LEAST_GAIN * price);
            let spec = ParamsSpec { lower, ..found.params.spec().clone() };
            // What was tried before is not better now.
            if spec.lower.is_empty() || all.iter().any(|(_, params)| *params.spec() == spec) {
                continue;
            }
            if let Ok(params) = Params::new(spec) {
                all.push((prices.of_work(&work, &params), params));
            }
        }
        all.retain(|(other, _)| *other < price);
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        let better = all.into_iter().find_map(|(price, params)| {
            let judged = self.judged(params, found.chain.clone(), found.sizes.clone());
            judged.is_good(target).then_some((judged, price))
        });
        better.or_else(|| found.is_good(target).then_some((found, price)))
    }

    /// A candidate whose lower levels are in smaller rings, with the scales that are enough for the noise there: all levels
    /// have less to hold.
    pub(super) fn rebalanced(
        &self,
        found: &Candidate,
        target: f64,
        way: Way<'_>,
        segmentation: Segmentation,
        prices: Prices<'_>,
    ) -> Result<Option<(Candidate, f64)>, ScheduleError> {
        let log_n = found.params.log_n();
        if found.params.lower().iter().all(|lower| lower.params().log_n() == log_n) {
            return Ok(None);
        }
        let base = self.balanced(&found.contributions, target, found.sizes.headroom);
        let base = Sizes { input: found.sizes.input, ..base };
        for growth in REBALANCED_GROWTH {
            let Some((params, chain)) = way.with_special(&grown(&base, growth))? else { return Ok(None) };
            let smaller = self.judged(params, chain, grown(&base, growth));
            if let Some(better) = self.segmented(smaller, target, segmentation, prices) {
                return Ok(Some(better));
            }
        }
        Ok(None)
    }

    /// For every level the largest period of what is at it or below.
    pub(super) fn periods(&self, chain: &Chain) -> Vec<usize> {
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

/// What segments there may be, priced.
struct Catalog<'a> {
    work: &'a Work<'a>,
    /// Without segments.
    params: &'a Params,
    /// For every level the largest period of what is at it or below.
    periods: Vec<usize>,
    segmentation: Segmentation,
    key_byte: f64,
    primes: Primes,
    made: BTreeMap<(Level, u32, Vec<u64>, Vec<u16>), Option<Rc<Priced>>>,
}

/// A segment and its price, down to whatever level it goes.
struct Priced {
    spec: SegmentSpec,
    /// Down to its highest level, to the one below, and so on.
    runs: Vec<f64>,
    /// Of the way into it from the same ring, from one of twice the degree, and so on.
    entries: Vec<f64>,
}

/// The price of all levels below one, and the segment that they begin with.
type Below = (f64, Option<(Rc<Priced>, usize)>);

impl Catalog<'_> {
    /// The segments that make the parameters cheapest where digits may be so many bits larger than special moduli and a segment
    /// has to save so much.
    fn cheapest(&mut self, beyond: f64, least_gain: f64) -> Vec<SegmentSpec> {
        let (top, log_n) = (self.params.max_level(), self.params.log_n());
        let options: Vec<Vec<Rc<Priced>>> =
            (0..top.0).map(|level| self.options(Level(level), beyond)).collect();
        // By segments left, levels left, and how often the ring was halved.
        let n_rings = SMALLER as usize + 1;
        let nothing: Vec<Vec<Below>> = (0..=top.0)
            .map(|left| vec![(if left == 0 { 0.0 } else { f64::INFINITY }, None); n_rings])
            .collect();
        let mut tables = vec![nothing.clone()];
        for _ in 0..MAX_SEGMENTS {
            let (less, mut table) = (&tables[tables.len() - 1], nothing.clone());
            for (left, options) in options.iter().enumerate() {
                for ring in 0..n_rings {
                    let own = &mut table[left + 1][ring];
                    for option in options {
                        let halved = (log_n - option.spec.log_n) as usize;
                        let Some(entry) = halved.checked_sub(ring).and_then(|by| option.entries.get(by))
                        else {
                            continue;
                        };
                        for (n_below, run) in option.runs.iter().enumerate() {
                            let rest = left - n_below;
                            let price = least_gain + entry + run + less[rest][halved].0;
                            if price < own.0 {
                                *own = (price, Some((Rc::clone(option), rest)));
                            }
                        }
                    }
                }
            }
            tables.push(table);
        }
        let bills = self.work.runs(self.params, top, self.key_byte);
        let first = bills.iter().enumerate().map(|(n_below, bill)| {
            let rest = usize::from(top.0) - n_below;
            (bill.price(self.key_byte) + tables[MAX_SEGMENTS][rest][0].0, rest)
        });
        let mut rest = first.min_by(|a, b| a.0.total_cmp(&b.0)).map_or(0, |(_, rest)| rest);
        let (mut segments, mut ring) = (Vec::new(), 0);
        for table in tables.iter().rev() {
            let Some((option, next)) = &table[rest][ring].1 else { break };
            segments.push(option.spec.clone());
            (rest, ring) = (*next, (log_n - option.spec.log_n) as usize);
        }
        segments
    }

    /// All segments whose highest level this is.
    fn options(&mut self, level: Level, beyond: f64) -> Vec<Rc<Priced>> {
        let log_n = self.params.log_n();
        let least = match self.segmentation.rings {
            RingChoice::Smaller => log_n.saturating_sub(SMALLER),
            RingChoice::One => log_n,
        };
        let mut all = Vec::new();
        for log_n in (least..=log_n).rev() {
            if self.periods[usize::from(level.0)] > 1 << (log_n - 1) {
                break;
            }
            for (special_primes, digits) in self.key_switching(level, log_n, beyond) {
                all.extend(self.priced(SegmentSpec { log_n, level, special_primes, digits }));
            }
        }
        all
    }

    /// The segment with its price, if there may be one.
    fn priced(&mut self, spec: SegmentSpec) -> Option<Rc<Priced>> {
        let name = (spec.level, spec.log_n, spec.special_primes.clone(), spec.digits.clone());
        if let Some(made) = self.made.get(&name) {
            return made.clone();
        }
        let (work, params, key_byte) = (self.work, self.params, self.key_byte);
        let price = || {
            let own = params.of_segment(&spec, spec.log_n).ok()?;
            let runs = work.runs(&own, spec.level, key_byte);
            let entry = |log_n: u32| match log_n == spec.log_n {
                true => Some(0.0),
                false => {
                    let above = params.of_segment(&spec.entry(), log_n).ok()?;
                    Some(work.entry(&above, spec.level).price(key_byte))
                }
            };
            let entries = (spec.log_n..=params.log_n()).map(entry).collect::<Option<Vec<f64>>>()?;
            let runs = runs.into_iter().map(|bill| bill.price(key_byte)).collect();
            Some(Rc::new(Priced { spec: spec.clone(), runs, entries }))
        };
        let made = price();
        self.made.insert(name, made.clone());
        made
    }

    /// Special primes and digits for the levels up to one in a ring.
    fn key_switching(&mut self, level: Level, log_n: u32, beyond: f64) -> Vec<(Vec<u64>, Vec<u16>)> {
        let params = self.params;
        let held: Vec<u64> =
            params.held(level).iter().map(|tower| params.towers()[usize::from(tower.0)]).collect();
        let bits: Vec<f64> = held.iter().map(|&q| (q as f64).log2()).collect();
        let cap = security_cap(log_n).filter(|_| !params.spec().insecure);
        let room = cap.map_or(f64::INFINITY, |cap| f64::from(cap) - bits.iter().sum::<f64>());
        if self.segmentation.special == SpecialChoice::Fixed {
            let digits = grouped(&vec![1.0; held.len()], params.digit_size() as f64);
            let is_other = log_n < params.log_n() && params.log2_p() <= room;
            return if is_other { vec![(params.special_primes().to_vec(), digits)] } else { Vec::new() };
        }
        let mut all = Vec::new();
        let mut fewest = usize::MAX;
        for n_special in 1..=MAX_SPECIAL {
            let most = (room / n_special as f64).min(f64::from(FAST_BITS)).floor();
            let least = f64::from(self.params.log_n()) + LEAST_SPECIAL_BITS;
            if most < least {
                break;
            }
            let digits = grouped(&bits, n_special as f64 * most + beyond);
            // More special primes are worth it only for fewer digits.
            if digits.len() >= fewest {
                continue;
            }
            let wanted = ((largest(&bits, &digits) - beyond) / n_special as f64).ceil();
            // A tower alone may be too large already.
            if wanted > most {
                continue;
            }
            fewest = digits.len();
            let each = wanted.max(least);
            let found = self.primes.below(each as u32, n_special, params.towers());
            all.extend(found.map(|special| (special, digits)));
        }
        all
    }
}

/// Bits of the largest digit.
fn largest(sizes: &[f64], digits: &[u16]) -> f64 {
    let mut rest = sizes;
    let sum = |digit: &u16| {
        let (own, others) = rest.split_at(usize::from(*digit));
        rest = others;
        own.iter().sum::<f64>()
    };
    digits.iter().map(sum).fold(0.0, f64::max)
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
