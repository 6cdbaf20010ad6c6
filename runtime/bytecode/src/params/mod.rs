//! Checked scheme parameters.
//!
//! [`ParamsSpec`] is what people and files write; [`Params`] is what the rest of the system accepts. The only
//! way from one to the other is [`Params::new`], which holds:
//! ring degree 2^12 to 2^17 (2^5 to 2^11 only with the toy flag); every prime is an NTT prime (1 mod 2N) of
//! at most 60 bits; all primes, special ones included, are distinct; at least one tower and one special
//! prime; a digit has at least one tower and no more than there are; a pool is one ([`pool`]); the modulus of the keys,
//! which have all towers whatever a level has of them, summed over the real primes, stays within the 128-bit bound unless the
//! insecure flag says otherwise; and all of that for every segment of lower levels in its own ring ([`segment`]).

pub mod pool;
pub mod primes;
pub mod security;
pub mod segment;

use serde::{Deserialize, Serialize};

pub use pool::{Division, Pool, PoolError};
pub use primes::{PrimeSearchError, is_ntt_prime, ntt_primes_below, ntt_primes_near};
pub use security::security_cap;
pub use segment::{KeyPlace, Lower, SegmentError, SegmentSpec};

/// Largest size of a prime, in bits.
pub const MAX_PRIME_BITS: u32 = 60;
/// Smallest and largest log2 of the ring degree that may protect data.
pub const LOG_N_RANGE: std::ops::RangeInclusive<u32> = 12..=17;
/// Smallest log2 of the ring degree that the toy flag allows.
pub const MIN_TOY_LOG_N: u32 = 5;
/// More towers than any secure chain can have; bounds what a file may ask for.
pub const MAX_TOWERS: usize = 256;

/// Version of what numbers in files mean beyond the parameters: the root of unity, the order of residues and the
/// growth of seeds (`docs/FILES.md`). Part of every fingerprint, so files of different versions do not mix.
pub const ARITHMETIC_VERSION: u32 = 1;

/// Index of one RNS prime of the chain, in a chain without a pool counted from the one that survives every rescale.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TowerIdx(pub u16);

/// Number of rescales that a ciphertext still has; [`Params::set`] says which towers that takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Level(pub u16);

impl Level {
    /// The level below, if there is one.
    pub fn lower(self) -> Option<Level> {
        self.0.checked_sub(1).map(Level)
    }
}

impl std::fmt::Display for Level {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "L{}", self.0)
    }
}

/// Parameters as written by hand or read from a file; not yet checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ParamsSpec {
    /// log2 of the ring degree N.
    pub log_n: u32,
    /// The chain q_0, q_1, …, q_L, where a rescale at level l divides by q_l; or the towers of a pool.
    pub towers: Vec<u64>,
    /// Primes used only inside key switching.
    pub special_primes: Vec<u64>,
    /// Towers per digit of the hybrid key switching, at most.
    pub digit_size: usize,
    /// The towers of every level, where a level does not simply have the first ones.
    #[serde(default)]
    pub pool: Option<Pool>,
    /// What lower levels have of their own: a smaller ring, other special primes, other digits. The highest levels first.
    #[serde(default)]
    pub lower: Vec<SegmentSpec>,
    /// Accept a modulus beyond the 128-bit bound.
    #[serde(default)]
    pub insecure: bool,
    /// Accept a ring too small to protect anything (tests).
    #[serde(default)]
    pub toy: bool,
}

impl ParamsSpec {
    /// Parameters that need not protect anything, with digits of one tower: for tests and estimates.
    pub fn toy(log_n: u32, towers: Vec<u64>, special_primes: Vec<u64>) -> Self {
        Self {
            log_n,
            towers,
            special_primes,
            digit_size: 1,
            pool: None,
            lower: Vec::new(),
            insecure: true,
            toy: true,
        }
    }
}

/// Why a [`ParamsSpec`] was refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ParamsError {
    /// The ring degree is outside the supported range.
    #[error("ring degree 2^{log_n} is not supported (2^12 to 2^17)")]
    RingDegree {
        /// The exponent asked for.
        log_n: u32,
    },
    /// A toy ring without the toy flag.
    #[error("ring degree 2^{log_n} protects nothing and needs the toy flag")]
    ToyNotAllowed {
        /// The exponent asked for.
        log_n: u32,
    },
    /// No tower, no special prime, or too many of them.
    #[error("{count} {kind} primes, need 1 to {MAX_TOWERS}")]
    PrimeCount {
        /// `tower` or `special`.
        kind: &'static str,
        /// How many were given.
        count: usize,
    },
    /// Not a prime, not 1 mod 2N, or too large.
    #[error("{prime} is not a prime of at most 60 bits that is 1 mod {modulus}")]
    NotNttPrime {
        /// The offending number.
        prime: u64,
        /// 2N.
        modulus: u64,
    },
    /// The same prime twice.
    #[error("prime {prime} appears twice")]
    DuplicatePrime {
        /// The offending prime.
        prime: u64,
    },
    /// Digit of zero towers or more towers than the chain has.
    #[error("digits of {digit_size} towers in a chain of {n_towers}")]
    DigitSize {
        /// Towers per digit.
        digit_size: usize,
        /// Towers of the chain.
        n_towers: usize,
    },
    /// Not a pool of these towers.
    #[error(transparent)]
    Pool(PoolError),
    /// Not a segment of lower levels.
    #[error(transparent)]
    Segment(#[from] SegmentError),
    /// The modulus of the keys is too large for 128-bit security.
    #[error("log2(PQ) = {log2_pq:.2} exceeds the 128-bit bound of {cap} at N = 2^{log_n} by {:.2} bits", log2_pq - f64::from(*cap))]
    Insecure {
        /// The exponent of the ring degree.
        log_n: u32,
        /// Size of the modulus of the keys.
        log2_pq: f64,
        /// Bound at this ring degree.
        cap: u32,
    },
}

/// Identifies parameters (or any other artefact) by the BLAKE3 hash of its canonical bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Fingerprint(pub [u8; 32]);

impl std::fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0[..8].iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl std::fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Fingerprint({self}…)")
    }
}

/// Parameters that satisfy every rule of this module.
#[derive(Clone, Debug, PartialEq)]
pub struct Params {
    spec: ParamsSpec,
    /// The pool of the specification, or the chain as one.
    pool: Pool,
    digit_of: Vec<usize>,
    levels: Vec<LevelFacts>,
    lower: Vec<Lower>,
    log2_q: f64,
    log2_p: f64,
    fingerprint: Fingerprint,
}

/// What a level has.
#[derive(Clone, Debug, PartialEq)]
struct LevelFacts {
    log2_q: f64,
    /// Digits with a tower of this level.
    digits: Vec<usize>,
    /// Towers of a key usable up to this level: those of all levels up to it.
    held: Vec<TowerIdx>,
    /// Digits of such a key.
    held_digits: Vec<usize>,
}

impl Params {
    /// Checks a specification.
    ///
    /// # Errors
    /// The first rule of the module documentation that does not hold.
    pub fn new(spec: ParamsSpec) -> Result<Self, ParamsError> {
        let log_n = spec.log_n;
        if !(MIN_TOY_LOG_N..=*LOG_N_RANGE.end()).contains(&log_n) {
            return Err(ParamsError::RingDegree { log_n });
        }
        if !LOG_N_RANGE.contains(&log_n) && !spec.toy {
            return Err(ParamsError::ToyNotAllowed { log_n });
        }
        for (kind, count) in [("tower", spec.towers.len()), ("special", spec.special_primes.len())] {
            if count == 0 || count > MAX_TOWERS {
                return Err(ParamsError::PrimeCount { kind, count });
            }
        }
        let mut seen = std::collections::BTreeSet::new();
        for &prime in spec.towers.iter().chain(&spec.special_primes) {
            if !is_ntt_prime(prime, log_n) {
                return Err(ParamsError::NotNttPrime { prime, modulus: 2 << log_n });
            }
            if !seen.insert(prime) {
                return Err(ParamsError::DuplicatePrime { prime });
            }
        }
        if spec.digit_size == 0 || spec.digit_size > spec.towers.len() {
            return Err(ParamsError::DigitSize { digit_size: spec.digit_size, n_towers: spec.towers.len() });
        }
        if let Some(pool) = &spec.pool {
            pool.check(&spec.towers, spec.digit_size)?;
        }
        let (log2_q, log2_p) = (log2_product(&spec.towers), log2_product(&spec.special_primes));
        if let Some(cap) = security_cap(log_n)
            && log2_q + log2_p > f64::from(cap)
            && !spec.insecure
        {
            return Err(ParamsError::Insecure { log_n, log2_pq: log2_q + log2_p, cap });
        }
        let fingerprint = fingerprint(&spec);
        let pool = spec.pool.clone().unwrap_or_else(|| Pool::chain(spec.towers.len(), spec.digit_size));
        let digit_of = pool.digit_of();
        let levels = level_facts(&spec.towers, &pool, &digit_of);
        let lower = lower_segments(&spec, &pool)?;
        Ok(Self { spec, pool, digit_of, levels, lower, log2_q, log2_p, fingerprint })
    }

    /// The specification these parameters were made from.
    pub fn spec(&self) -> &ParamsSpec {
        &self.spec
    }

    /// log2 of the ring degree.
    pub fn log_n(&self) -> u32 {
        self.spec.log_n
    }

    /// The ring degree N.
    pub fn n(&self) -> usize {
        1 << self.spec.log_n
    }

    /// Number of slots of a ciphertext, N/2.
    pub fn slots(&self) -> usize {
        self.n() / 2
    }

    /// The chain q_0 … q_L.
    pub fn towers(&self) -> &[u64] {
        &self.spec.towers
    }

    /// The towers of a level, ascending; those of the highest for a level that does not exist.
    pub fn set(&self, level: Level) -> &[TowerIdx] {
        &self.pool.levels[self.clamped(level)]
    }

    /// Number of towers of a level.
    pub fn n_towers(&self, level: Level) -> usize {
        self.set(level).len()
    }

    /// The towers of a key that is usable up to `level`: those of all levels up to it.
    pub fn held(&self, level: Level) -> &[TowerIdx] {
        &self.levels[self.clamped(level)].held
    }

    fn clamped(&self, level: Level) -> usize {
        usize::from(level.0).min(self.levels.len() - 1)
    }

    /// The special primes.
    pub fn special_primes(&self) -> &[u64] {
        &self.spec.special_primes
    }

    /// The highest level, L.
    pub fn max_level(&self) -> Level {
        Level((self.levels.len() - 1) as u16)
    }

    /// Towers per digit, at most.
    pub fn digit_size(&self) -> usize {
        self.spec.digit_size
    }

    /// The digit that a tower is decomposed in.
    pub fn digit_of(&self, tower: TowerIdx) -> usize {
        self.digit_of[usize::from(tower.0)]
    }

    /// Digits of a ciphertext at `level`, ascending.
    pub fn digits(&self, level: Level) -> &[usize] {
        &self.levels[self.clamped(level)].digits
    }

    /// Number of digits of a ciphertext at `level`.
    pub fn n_digits(&self, level: Level) -> usize {
        self.digits(level).len()
    }

    /// Digits of a key usable up to `level`, ascending.
    pub fn key_digits(&self, level: Level) -> &[usize] {
        &self.levels[self.clamped(level)].held_digits
    }

    /// Size of all towers together, Q, in bits.
    pub fn log2_q(&self) -> f64 {
        self.log2_q
    }

    /// Size of the modulus at a level in bits.
    pub fn log2_q_at(&self, level: Level) -> f64 {
        self.levels[self.clamped(level)].log2_q
    }

    /// Size of the special modulus P in bits.
    pub fn log2_p(&self) -> f64 {
        self.log2_p
    }

    /// Size of the modulus of the keys, PQ, in bits.
    pub fn log2_pq(&self) -> f64 {
        self.log2_q + self.log2_p
    }

    /// Largest log2(PQ) at 128 bits; none for a toy ring.
    pub fn security_cap(&self) -> Option<u32> {
        security_cap(self.spec.log_n)
    }

    /// Whether the keys of all segments really have 128-bit security, whatever the flags allow.
    pub fn is_secure(&self) -> bool {
        self.segments().all(Self::is_secure_alone)
    }

    /// Whether the keys of this segment alone have 128-bit security.
    pub fn is_secure_alone(&self) -> bool {
        self.security_cap().is_some_and(|cap| self.log2_pq() <= f64::from(cap))
    }

    /// Whether a ring is too small to protect anything.
    pub fn is_toy(&self) -> bool {
        self.segments().any(|segment| !LOG_N_RANGE.contains(&segment.spec.log_n))
    }

    /// The primes of a ciphertext at `level`.
    pub fn primes(&self, level: Level) -> Vec<u64> {
        self.set(level).iter().map(|tower| self.spec.towers[usize::from(tower.0)]).collect()
    }

    /// The primes of a key usable up to `level`: its towers, then the special ones.
    pub fn key_primes(&self, level: Level) -> Vec<u64> {
        let towers = self.held(level).iter().map(|tower| self.spec.towers[usize::from(tower.0)]);
        towers.chain(self.spec.special_primes.iter().copied()).collect()
    }

    /// Bytes of a key as held in memory.
    pub fn key_bytes(&self, place: impl Into<KeyPlace>) -> u64 {
        let place = place.into();
        let own = self.of_key(place);
        let primes = own.key_primes(place.level).into_iter();
        let residues: usize = primes.map(|prime| (residue_bits(prime) * own.n()).div_ceil(8)).sum();
        (2 * own.key_digits(place.level).len() * residues) as u64
    }

    /// Bytes of a ciphertext of two polynomials at `level`, in the ring of that level.
    pub fn ciphertext_bytes(&self, level: Level) -> u64 {
        let own = self.at(level);
        2 * 8 * own.n_towers(level) as u64 * own.n() as u64
    }

    /// Bytes of two polynomials over the towers of `level` and the special primes of its segment.
    pub fn key_pair_bytes(&self, level: Level) -> u64 {
        let own = self.at(level);
        2 * 8 * (own.n_towers(level) + own.spec.special_primes.len()) as u64 * own.n() as u64
    }

    /// Hash of every field, flags included, and of [`ARITHMETIC_VERSION`].
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }
}

/// Bits in which a key holds a residue: as many as the prime has, or a word if kernels do not unpack it.
fn residue_bits(prime: u64) -> usize {
    if prime >> 50 == 0 { (u64::BITS - prime.leading_zeros()) as usize } else { 64 }
}

fn log2_product(primes: &[u64]) -> f64 {
    primes.iter().map(|&p| (p as f64).log2()).sum()
}

fn level_facts(towers: &[u64], pool: &Pool, digit_of: &[usize]) -> Vec<LevelFacts> {
    let digits = |set: &[TowerIdx]| {
        let mut all: Vec<usize> = set.iter().map(|tower| digit_of[usize::from(tower.0)]).collect();
        all.dedup();
        all
    };
    let mut is_held = vec![false; towers.len()];
    let facts = pool.levels.iter().map(|set| {
        set.iter().for_each(|tower| is_held[usize::from(tower.0)] = true);
        let held: Vec<TowerIdx> =
            (0..towers.len() as u16).map(TowerIdx).filter(|tower| is_held[usize::from(tower.0)]).collect();
        let log2_q = set.iter().map(|tower| (towers[usize::from(tower.0)] as f64).log2()).sum();
        LevelFacts { log2_q, digits: digits(set), held_digits: digits(&held), held }
    });
    facts.collect()
}

fn lower_segments(spec: &ParamsSpec, pool: &Pool) -> Result<Vec<Lower>, SegmentError> {
    if spec.lower.len() > segment::MAX_LOWER {
        return Err(SegmentError::Count(spec.lower.len()));
    }
    let mut above = (spec.log_n, Level((pool.levels.len() - 1) as u16));
    let segments = spec.lower.iter().map(|segment| {
        let checked = Lower::check(spec, pool, segment, above)?;
        above = (segment.log_n, segment.level);
        Ok(checked)
    });
    segments.collect()
}

fn fingerprint(spec: &ParamsSpec) -> Fingerprint {
    let mut hasher = blake3::Hasher::new_derive_key(&format!("fhec {ARITHMETIC_VERSION} parameters"));
    let mut word = |value: u64| {
        hasher.update(&value.to_le_bytes());
    };
    word(u64::from(spec.log_n));
    for primes in [&spec.towers, &spec.special_primes] {
        word(primes.len() as u64);
        primes.iter().for_each(|&p| word(p));
    }
    word(spec.digit_size as u64);
    word(u64::from(spec.insecure));
    word(u64::from(spec.toy));
    // A chain without a pool has the fingerprint that it had before there were pools.
    if let Some(pool) = &spec.pool {
        word(pool.levels.len() as u64);
        for set in &pool.levels {
            word(set.len() as u64);
            set.iter().for_each(|tower| word(u64::from(tower.0)));
        }
        word(pool.digits.len() as u64);
        pool.digits.iter().for_each(|&size| word(u64::from(size)));
    }
    // Nor does one segment change it. No chain has a pool of so many levels.
    if !spec.lower.is_empty() {
        word(u64::MAX);
        word(spec.lower.len() as u64);
    }
    for segment in &spec.lower {
        word(u64::from(segment.log_n));
        word(u64::from(segment.level.0));
        word(segment.special_primes.len() as u64);
        segment.special_primes.iter().for_each(|&p| word(p));
        word(segment.digits.len() as u64);
        segment.digits.iter().for_each(|&size| word(u64::from(size)));
    }
    Fingerprint(*hasher.finalize().as_bytes())
}

#[cfg(test)]
mod tests;
