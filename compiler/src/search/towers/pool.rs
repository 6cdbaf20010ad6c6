//! Moduli as sets of towers from a pool: large ones, which cost as much as small ones, and a few small ones to come near any
//! size.
//!
//! The highest rung has all towers, so that keys hold no bit that no ciphertext has. Every other rung has some large towers
//! and any of the small ones. What a set is off the wanted size changes the scale of the weights of two levels, which rounds
//! them more or less; sets are chosen so that all levels together are cheap, then near. The sizes of the small towers are
//! tried from a fixed sequence.

use fhe_bytecode::params::{TowerIdx, ntt_primes_below, ntt_primes_near};

use crate::schedule::{Chain, ChainError, Moduli, Sizes};
use crate::timed::Positions;

/// Most small towers.
const MAX_SMALL: usize = 6;
/// Choices of small towers that are tried for every number of them.
const TRIALS: usize = 64;
/// Bits that a set may have beyond the wanted size. Fewer than wanted would take room from the values.
const MAX_OFF_BITS: f64 = 3.0;
/// More than sums of logarithms are off by, in bits.
const EXACT_BITS: f64 = 1e-6;
/// What a weight scale that is right costs, over the cost of all towers: a bit more of every scale is worth about 5 % of
/// the time.
const ROUNDING_PRICE: f64 = 0.05;
/// Towers that come with those of every set: the special primes.
const SPECIAL_TOWERS: f64 = 2.5;
/// Part of a bound that rounding leaves.
const BELOW: f64 = 1.0 - 1e-9;
/// Times that moduli grow until they hold the values.
const MAX_GROWTHS: usize = 4;
/// Bits by which they grow at least.
const LEAST_GROWTH: f64 = 0.02;

/// Sets of towers near the wanted sizes; nothing if such a pool has no such sets.
pub(super) fn chain(
    positions: &Positions,
    sizes: &Sizes,
    log_n: u32,
    large_bits: u32,
) -> Result<Option<Chain>, ChainError> {
    let mut wanted = sizes.moduli(positions);
    // The highest rung has all towers, so the one below lacks at least the smallest.
    if let [.., below, top] = &mut wanted[..] {
        *top = top.max(*below + least_bits(log_n) + MAX_OFF_BITS);
    }
    for _ in 0..MAX_GROWTHS {
        let Some(moduli) = moduli(&wanted, log_n, large_bits)? else { return Ok(None) };
        let chain = Chain::scaled(positions, sizes, moduli.clone());
        let missing = chain.missing_bits(&sizes.rooms, sizes.headroom);
        if missing <= 0.0 {
            // Sets that leave the weights of a level no scale are no chain; a prime per level may be one.
            return Ok(Chain::new(positions, sizes, moduli).ok());
        }
        wanted.iter_mut().for_each(|bits| *bits += missing + LEAST_GROWTH);
    }
    Ok(None)
}

/// Size of the smallest tower: smaller primes are sparse.
fn least_bits(log_n: u32) -> f64 {
    f64::from(log_n) + 5.5
}

/// The sets that come nearest, with their towers.
fn moduli(wanted: &[f64], log_n: u32, large_bits: u32) -> Result<Option<Moduli>, ChainError> {
    let target = Target::new(wanted, f64::from(large_bits));
    let mut reach = Reach::default();
    let mut best: (Option<Shape>, f64) = (None, f64::INFINITY);
    for shape in shapes(wanted, least_bits(log_n), f64::from(large_bits)) {
        if let Some(price) = reach.cheapest(&shape, &target, best.1) {
            best = (Some(shape), price);
        }
    }
    let Some(mut shape) = best.0 else { return Ok(None) };
    let mut towers: Vec<u64> = Vec::with_capacity(shape.n_small + shape.n_large);
    for size in &mut shape.sizes[..shape.n_small] {
        let found = ntt_primes_near(size.exp2(), log_n, 1, &towers)?[0];
        *size = (found as f64).log2();
        towers.push(found);
    }
    towers.extend(ntt_primes_below(large_bits, log_n, shape.n_large, &towers)?);
    if reach.cheapest(&shape, &target, f64::INFINITY).is_none() {
        return Ok(None);
    }
    let sets = reach.sets();
    Ok(Some(Moduli::of_sets(towers, sets.iter().map(|set| set.indices(&shape)).collect())))
}

/// Pools whose towers together have the largest of the wanted sizes.
fn shapes(wanted: &[f64], least: f64, large: f64) -> Vec<Shape> {
    let (last, top) = (wanted.first().copied().unwrap_or(0.0), wanted.last().copied().unwrap_or(0.0));
    let mut random = Sequence(0x9E37_79B9_7F4A_7C15);
    let mut all = Vec::with_capacity(MAX_SMALL * TRIALS);
    for n_small in 1..=MAX_SMALL {
        let trials = if n_small == 1 { 1 } else { TRIALS };
        for _ in 0..trials {
            let mut sizes = [0.0; MAX_SMALL];
            let tried = &mut sizes[..n_small - 1];
            tried.iter_mut().for_each(|size| *size = least + random.fraction() * (large - least));
            // One of them alone is what stays to the end.
            if let (Some(first), true) = (tried.first_mut(), (least..large).contains(&last)) {
                *first = (last + random.fraction()).min(large);
            }
            let left = top - tried.iter().sum::<f64>();
            // The last one makes up the difference.
            let n_large = floor((left - least) / large).max(0.0);
            let last = left - n_large * large;
            sizes[n_small - 1] = last;
            sizes[..n_small].sort_by(f64::total_cmp);
            if last >= least && last <= large {
                all.push(Shape { sizes, n_small, n_large: n_large as usize, large });
            }
        }
    }
    all
}

/// Wanted sizes, and what they say of the price of every pool with large towers of one size.
struct Target<'a> {
    wanted: &'a [f64],
    /// Of a weight scale that is right.
    unit: f64,
    /// For every rung what the towers of all rungs below it cost at least: as few as hold the wanted sizes.
    rest: Vec<f64>,
}

impl<'a> Target<'a> {
    fn new(wanted: &'a [f64], large: f64) -> Self {
        // What the sets would cost if all towers were large: the measure of a price.
        let all: f64 = wanted.iter().map(|bits| work(bits / large)).sum();
        let least = |bits: &f64| work(((bits - 2.0 * EXACT_BITS) / large).ceil().max(1.0));
        let below = |sum: &mut f64, bits: &f64| Some(std::mem::replace(sum, *sum + least(bits)));
        let unit = ROUNDING_PRICE * all / wanted.len() as f64;
        Self { wanted, unit, rest: wanted.iter().scan(0.0, below).collect() }
    }
}

/// What so many towers cost.
fn work(n_towers: f64) -> f64 {
    (n_towers + SPECIAL_TOWERS).powi(2)
}

/// The least that so many steps cost from a set that is off by so many bits to one that is not off: equal steps cost least.
fn least_rounding(n_steps: usize, off: f64) -> f64 {
    let n = n_steps as f64;
    if n_steps == 0 { 0.0 } else { n * (-2.0 * (off.max(0.0) + EXACT_BITS) / n).exp2() }
}

/// Numbers that are the same everywhere.
struct Sequence(u64);

impl Sequence {
    /// The next one, from 0 to 1.
    fn fraction(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// The towers of a pool by their sizes in bits.
#[derive(Clone, Copy)]
struct Shape {
    /// Those of the small ones, then zeros.
    sizes: [f64; MAX_SMALL],
    n_small: usize,
    n_large: usize,
    large: f64,
}

/// A set: which small towers, and how many large ones.
#[derive(Clone, Copy, Debug)]
struct Set {
    small: u32,
    n_large: usize,
    /// Bits beyond the wanted size.
    off: f64,
}

impl Set {
    fn n_towers(self) -> usize {
        self.small.count_ones() as usize + self.n_large
    }

    fn indices(self, shape: &Shape) -> Vec<TowerIdx> {
        let n_small = shape.n_small;
        let small = (0..n_small).filter(|i| self.small >> i & 1 == 1);
        small.chain(n_small..n_small + self.n_large).map(|i| TowerIdx(i as u16)).collect()
    }
}

/// A set of one rung with the cheapest way to it from the top.
#[derive(Clone, Copy)]
struct Reached {
    set: Set,
    price: f64,
    /// The set of the rung above, among all.
    from: usize,
}

/// The sets that rungs may have from the top down, in memory that serves one pool after the other.
#[derive(Default)]
struct Reach {
    /// Bits of every choice of small towers.
    choices: Vec<f64>,
    /// Of all rungs, one after the other.
    all: Vec<Reached>,
    /// The cheapest of the lowest rung.
    cheapest: usize,
}

impl Reach {
    /// Finds the cheapest sets, from the top down: every one pays for its towers and for the scale that weights lose on the
    /// way. Nothing if they are not cheaper than the limit.
    fn cheapest(&mut self, shape: &Shape, target: &Target<'_>, limit: f64) -> Option<f64> {
        let Target { wanted, unit, rest } = target;
        let least = |rung: usize, set: Set, price: f64| {
            price + (rest[rung] + unit * least_rounding(rung, set.off)) * BELOW
        };
        let top = Set {
            small: (1 << shape.n_small) - 1,
            n_large: shape.n_large,
            off: shape.bits() - wanted.last()?,
        };
        let price = work(top.n_towers() as f64);
        if wanted.len() > 1 && least(wanted.len() - 1, top, price) >= limit {
            return None;
        }
        let Self { choices, all, cheapest } = self;
        all.clear();
        all.push(Reached { set: top, price, from: 0 });
        shape.write_choices(choices);
        let mut above = 0..1;
        for (rung, pair) in wanted.windows(2).enumerate().rev() {
            for set in shape.near(pair[0], choices) {
                let own = work(set.n_towers() as f64);
                let mut best: (Option<usize>, f64) = (None, limit);
                for (i, from) in above.clone().zip(&all[above.clone()]) {
                    let lost = set.off - from.set.off;
                    // A step of less than a bit would be none; what costs too much already needs no power.
                    if from.price < best.1 && pair[1] - pair[0] - lost >= 1.0 {
                        let price = from.price + unit * (2.0 * lost).exp2();
                        if price < best.1 {
                            best = (Some(i), price);
                        }
                    }
                }
                let (Some(from), price) = (best.0, best.1 + own) else { continue };
                if least(rung, set, price) < limit {
                    all.push(Reached { set, price, from });
                }
            }
            above = above.end..all.len();
            if above.is_empty() {
                return None;
            }
        }
        *cheapest = above.min_by(|&a, &b| all[a].price.total_cmp(&all[b].price))?;
        Some(all[*cheapest].price)
    }

    /// The sets that were found, from the lowest rung up.
    fn sets(&self) -> Vec<Set> {
        let mut at = self.cheapest;
        let mut sets = vec![self.all[at].set];
        while at > 0 {
            at = self.all[at].from;
            sets.push(self.all[at].set);
        }
        sets
    }
}

impl Shape {
    /// Bits of every choice of small towers.
    fn write_choices(&self, all: &mut Vec<f64>) {
        all.clear();
        all.push(0.0);
        for bits in &self.sizes[..self.n_small] {
            (0..all.len()).for_each(|others| all.push(all[others] + bits));
        }
    }

    /// The sets that a rung may have, of these choices.
    fn near(&self, wanted: f64, choices: &[f64]) -> impl Iterator<Item = Set> {
        (0..).zip(choices).filter_map(move |(small, bits): (u32, _)| {
            let n_large = ceil((wanted - bits - EXACT_BITS) / self.large).max(0.0);
            let off = bits + n_large * self.large - wanted;
            let set = Set { small, n_large: n_large as usize, off };
            (off <= MAX_OFF_BITS && set.n_large <= self.n_large && set.n_towers() > 0).then_some(set)
        })
    }

    fn bits(&self) -> f64 {
        self.sizes[..self.n_small].iter().sum::<f64>() + self.n_large as f64 * self.large
    }
}

/// The whole number below a number of towers. Without vectors that all CPUs have the usual one is a call.
fn floor(x: f64) -> f64 {
    let whole = x as i64 as f64;
    if whole > x { whole - 1.0 } else { whole }
}

/// The whole number above.
fn ceil(x: f64) -> f64 {
    let whole = x as i64 as f64;
    if whole < x { whole + 1.0 } else { whole }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_come_near_twenty_equal_levels_with_fewer_towers() {
        let wanted: Vec<f64> = (0..=20).map(|rung| 34.0 + 37.0 * f64::from(rung)).collect();
        let found = moduli(&wanted, 15, 50).unwrap().unwrap();
        for (rung, wanted) in wanted.iter().enumerate() {
            let bits = found.log2(crate::timed::Rung(rung as u16));
            assert!((bits - wanted).abs() <= MAX_OFF_BITS + 0.1, "{bits} for {wanted}");
        }
        // A prime per level has 231.
        assert!(found.n_residues() <= 190, "{}", found.n_residues());
        assert!(found.towers().len() <= 18, "{:?}", found.towers());
    }

    #[test]
    fn levels_beyond_every_prime_have_sets_too() {
        let found = moduli(&[30.0, 120.0, 150.0, 260.0], 14, 50).unwrap().unwrap();
        assert_eq!(found.n_rungs(), 4);
        assert!(found.towers().iter().all(|&q| q >> 50 == 0));
    }

    /// Sets are given up where what is left costs too much. Without a limit none are.
    #[test]
    fn sets_within_a_limit_are_the_cheapest_of_all() {
        let wanted: Vec<f64> = (0..=20).map(|rung| 34.0 + 37.3 * f64::from(rung)).collect();
        let target = Target::new(&wanted, 50.0);
        let (mut n_found, mut reach) = (0, Reach::default());
        for shape in shapes(&wanted, least_bits(15), 50.0) {
            let Some(cheapest) = reach.cheapest(&shape, &target, f64::INFINITY) else { continue };
            let masks =
                |reach: &Reach| reach.sets().iter().map(|set| set.indices(&shape)).collect::<Vec<_>>();
            let all = masks(&reach);
            let within = reach.cheapest(&shape, &target, cheapest * (1.0 + 1e-12));
            assert_eq!(within.map(f64::to_bits), Some(cheapest.to_bits()));
            assert_eq!(masks(&reach), all);
            assert!(reach.cheapest(&shape, &target, cheapest).is_none());
            n_found += 1;
        }
        assert!(n_found > 20, "{n_found}");
    }

    #[test]
    fn the_same_sizes_give_the_same_towers() {
        let wanted = [31.0, 66.0, 99.0, 140.0];
        assert_eq!(moduli(&wanted, 13, 48).unwrap(), moduli(&wanted, 13, 48).unwrap());
    }
}
