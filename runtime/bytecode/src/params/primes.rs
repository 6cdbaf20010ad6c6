//! Search for NTT primes: p = 1 mod 2N, at most 60 bits.
//!
//! The search is deterministic, so equal requests give equal chains on every machine. Primes already taken
//! are passed in and never returned again.

use std::cell::Cell;

use super::MAX_PRIME_BITS;

/// No further prime meets the request.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("found only {found} of {wanted} primes near 2^{log2_target:.2} that are 1 mod 2^{}", log_n + 1)]
pub struct PrimeSearchError {
    /// log2 of the ring degree.
    pub log_n: u32,
    /// Size asked for, in bits.
    pub log2_target: f64,
    /// Primes asked for.
    pub wanted: usize,
    /// Primes that exist.
    pub found: usize,
}

/// Whether `p` is a prime of at most 60 bits with p = 1 mod 2N.
pub fn is_ntt_prime(p: u64, log_n: u32) -> bool {
    p >> MAX_PRIME_BITS == 0 && p % (2 << log_n) == 1 && is_prime(p)
}

/// The `count` NTT primes nearest to `target` that are not in `taken`, nearest first; of two at the same
/// distance the smaller comes first.
///
/// # Errors
/// When fewer than `count` primes remain at any distance.
pub fn ntt_primes_near(
    target: f64,
    log_n: u32,
    count: usize,
    taken: &[u64],
) -> Result<Vec<u64>, PrimeSearchError> {
    let step = 2u64 << log_n;
    let largest = ((1u64 << MAX_PRIME_BITS) - 1) / step;
    let center = if target.is_finite() { target.clamp(1.0, (1u64 << MAX_PRIME_BITS) as f64) } else { 1.0 };
    // The candidates are k·2N + 1; `below` and `above` walk away from the target.
    let start = (((center - 1.0) / step as f64).floor() as u64).min(largest);
    let (mut below, mut above) = (start, start + 1);
    let mut found = Vec::with_capacity(count);
    while found.len() < count && (below >= 1 || above <= largest) {
        let (low, high) = (below * step + 1, above * step + 1);
        let low_first = below >= 1 && (above > largest || center - low as f64 <= high as f64 - center);
        let candidate = if low_first {
            below -= 1;
            low
        } else {
            above += 1;
            high
        };
        if is_prime(candidate) && !taken.contains(&candidate) {
            found.push(candidate);
        }
    }
    complete(found, count, target.log2(), log_n)
}

/// The `count` largest NTT primes below 2^`bits` (at most 60) that are not in `taken`, largest first.
///
/// # Errors
/// When fewer than `count` such primes have at least `bits - 1` bits.
pub fn ntt_primes_below(
    bits: u32,
    log_n: u32,
    count: usize,
    taken: &[u64],
) -> Result<Vec<u64>, PrimeSearchError> {
    let step = 2u64 << log_n;
    let top = 1u64 << bits.min(MAX_PRIME_BITS);
    let found = (1..=(top - 1) / step)
        .rev()
        .map(|k| k * step + 1)
        .take_while(|&p| p > top / 4)
        .filter(|p| *p < top && is_prime(*p) && !taken.contains(p))
        .take(count)
        .collect();
    complete(found, count, f64::from(bits), log_n)
}

fn complete(
    found: Vec<u64>,
    wanted: usize,
    log2_target: f64,
    log_n: u32,
) -> Result<Vec<u64>, PrimeSearchError> {
    if found.len() == wanted {
        Ok(found)
    } else {
        Err(PrimeSearchError { log_n, log2_target, wanted, found: found.len() })
    }
}

/// First primes: the bases under which Miller-Rabin is exact below 2^64.
const BASES: [u64; 12] = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37];

/// Numbers that a thread remembers having tested, as log2.
const LOG_REMEMBERED: u32 = 12;

thread_local! {
    /// Odd numbers that were tested, each at the place that its hash names: itself if it is prime, one less if not. A search
    /// for parameters asks for the same few thousand numbers over and over.
    static TESTED: [Cell<u64>; 1 << LOG_REMEMBERED] = const { [const { Cell::new(0) }; 1 << LOG_REMEMBERED] };
}

fn is_prime(p: u64) -> bool {
    if p < 2 {
        return false;
    }
    if let Some(&base) = BASES.iter().find(|&&base| p.is_multiple_of(base)) {
        return p == base;
    }
    let place = (p.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - LOG_REMEMBERED)) as usize;
    TESTED.with(|tested| {
        let known = tested[place].get();
        if known == p || known == p - 1 {
            return known == p;
        }
        let found = has_no_witness(p);
        tested[place].set(if found { p } else { p - 1 });
        found
    })
}

/// Miller-Rabin with the bases above, for numbers that none of them divides.
fn has_no_witness(p: u64) -> bool {
    let twos = (p - 1).trailing_zeros();
    let odd = (p - 1) >> twos;
    let modulo = Montgomery::new(p);
    let (one, minus_one) = (modulo.one, p - modulo.one);
    BASES.iter().all(|&base| {
        let mut x = modulo.power(modulo.enter(base), odd);
        if x == one || x == minus_one {
            return true;
        }
        (1..twos).any(|_| {
            x = modulo.times(x, x);
            x == minus_one
        })
    })
}

/// Products modulo an odd number without divisions; a number x is held as x·2^64 mod p. A search for parameters tests
/// millions of numbers.
struct Montgomery {
    p: u64,
    /// -1/p mod 2^64.
    inverse: u64,
    /// 2^64 mod p: one.
    one: u64,
    /// 2^128 mod p.
    square: u64,
}

impl Montgomery {
    fn new(p: u64) -> Self {
        // Newton's iteration doubles the correct bits of 1/p; p itself has three of them.
        let mut inverse = p;
        for _ in 0..5 {
            inverse = inverse.wrapping_mul(2u64.wrapping_sub(p.wrapping_mul(inverse)));
        }
        let one = ((1u128 << 64) % u128::from(p)) as u64;
        let square = (u128::from(one) * u128::from(one) % u128::from(p)) as u64;
        Self { p, inverse: inverse.wrapping_neg(), one, square }
    }

    /// A number below 2^64, as it is held.
    fn enter(&self, x: u64) -> u64 {
        self.times(x % self.p, self.square)
    }

    /// The product of two numbers in [0, p), in [0, p).
    fn times(&self, a: u64, b: u64) -> u64 {
        let product = u128::from(a) * u128::from(b);
        let factor = (product as u64).wrapping_mul(self.inverse);
        let multiple = u128::from(factor) * u128::from(self.p);
        // The low halves cancel; the sum may take one bit more than 128.
        let (sum, is_over) = product.overflowing_add(multiple);
        let high = (sum >> 64) as u64;
        if is_over || high >= self.p { high.wrapping_sub(self.p) } else { high }
    }

    fn power(&self, mut base: u64, mut exponent: u64) -> u64 {
        let mut result = self.one;
        while exponent > 0 {
            if exponent & 1 == 1 {
                result = self.times(result, base);
            }
            base = self.times(base, base);
            exponent >>= 1;
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn primality_agrees_with_a_sieve() {
        let mut composite = vec![false; 20_000];
        for i in 2..20_000 {
            if !composite[i] {
                (i * i..20_000).step_by(i).for_each(|j| composite[j] = true);
            }
            assert_eq!(is_prime(i as u64), !composite[i], "{i}");
        }
    }

    #[test]
    fn strong_pseudoprimes_are_refused() {
        // Twice: tested, and remembered.
        for n in [3_215_031_751, 3_474_749_660_383, 341_550_071_728_321, 3_825_123_056_546_413_051].repeat(2)
        {
            assert!(!is_prime(n), "{n}");
        }
        assert!(is_prime((1 << 61) - 1));
        // The largest prime below 2^64 and its neighbor.
        assert!(is_prime(u64::MAX - 58) && !is_prime(u64::MAX - 56));
    }

    #[test]
    fn products_are_those_of_a_division() {
        for p in [3, 65_537, (1 << 61) - 1, u64::MAX - 58, u64::MAX] {
            let modulo = Montgomery::new(p);
            for (a, b) in [(0, 5), (1, 1), (2, p - 1), (p - 1, p - 1), (p / 3, p / 7 + 1)] {
                let held = modulo.times(modulo.enter(a), modulo.enter(b));
                let expected = (u128::from(a) * u128::from(b) % u128::from(p)) as u64;
                assert_eq!(modulo.times(held, 1), expected, "{a} * {b} mod {p}");
            }
        }
    }

    #[test]
    fn nearest_primes_are_the_nearest() {
        let target = 1_000_000f64;
        let near = ntt_primes_near(target, 10, 6, &[]).unwrap();
        let mut all: Vec<u64> = (2..4_000_000).filter(|&p| is_ntt_prime(p, 10)).collect();
        all.sort_by(|a, b| (*a as f64 - target).abs().total_cmp(&(*b as f64 - target).abs()));
        assert_eq!(near, all[..6]);
    }

    #[test]
    fn taken_primes_are_skipped_and_results_distinct() {
        let first = ntt_primes_near(2f64.powi(38), 15, 4, &[]).unwrap();
        let second = ntt_primes_near(2f64.powi(38), 15, 4, &first).unwrap();
        assert!(first.iter().all(|p| is_ntt_prime(*p, 15) && !second.contains(p)));
    }

    #[test]
    fn small_prime_at_large_ring_is_found() {
        assert_eq!(ntt_primes_near(2f64.powi(17), 15, 1, &[]).unwrap(), [65_537]);
    }

    #[test]
    fn primes_below_have_the_size_asked_for() {
        let primes = ntt_primes_below(50, 15, 20, &[]).unwrap();
        assert!(primes.windows(2).all(|w| w[0] > w[1]));
        assert!(primes.iter().all(|p| p.ilog2() == 49 && is_ntt_prime(*p, 15)));
    }

    #[test]
    fn impossible_requests_say_how_many_exist() {
        let error = ntt_primes_below(18, 15, 3, &[]).unwrap_err();
        assert_eq!((error.wanted, error.found), (3, 1));
    }
}
