//! Segments: what lower levels have of their own.
//!
//! Bits that the chain has spent protect nothing any more, so lower levels may have a smaller ring, and whatever the ring is,
//! more special primes and larger digits. A *segment* is a run of levels with a ring degree, special primes and digits of its
//! own; the level of a ciphertext says which segment it is in. Its towers are those of the whole chain, so scales and moduli of
//! levels are the same whatever the segments are.
//!
//! The first segment is the parameters themselves; every lower one is checked as parameters of its own ([`Params::at`]): the
//! towers that its levels have, its special primes, and the security bound of *its* ring, which therefore holds for all keys that
//! live there. That includes the key that leads into a smaller ring: it has the degree of the ring above and a secret that
//! has no more coefficients than the smaller one, so its modulus is that of the lower segment, too ([`Lower::entry`]).

use serde::{Deserialize, Serialize};

use super::{Level, Params, ParamsError, ParamsSpec, Pool, TowerIdx};

/// Most segments below the first.
pub const MAX_LOWER: usize = 4;

/// A segment below the first, as written by hand or read from a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SegmentSpec {
    /// log2 of the degree of its ring.
    pub log_n: u32,
    /// Its highest level; its lowest is the one above the next segment.
    pub level: Level,
    /// Primes used only inside key switching.
    pub special_primes: Vec<u64>,
    /// Towers of every digit, over the towers of its levels in ascending order: the first ones, the next ones, and so on.
    pub digits: Vec<u16>,
}

impl SegmentSpec {
    /// The same with a digit for every tower, as the key has that leads into its ring: ciphertexts come there at the scale after
    /// a rescale, where the noise of large digits has nothing to hide in, and the way is gone seldom.
    #[must_use]
    pub fn entry(&self) -> Self {
        let n_towers = self.digits.iter().map(|&size| usize::from(size)).sum();
        Self { digits: vec![1; n_towers], ..self.clone() }
    }
}

/// Why a [`SegmentSpec`] was refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SegmentError {
    /// Far too many.
    #[error("{0} segments below the first, {MAX_LOWER} are too many already")]
    Count(usize),
    /// Not below the segment before it.
    #[error("the segment from {level} on does not lie below the one before it, which ends at {above}")]
    Order {
        /// Its highest level.
        level: Level,
        /// The highest level of the segment before.
        above: Level,
    },
    /// A larger ring than above.
    #[error("the segment from {level} on has a ring of 2^{log_n}, larger than 2^{above} above it")]
    Grows {
        /// Its highest level.
        level: Level,
        /// Its ring.
        log_n: u32,
        /// The ring above.
        above: u32,
    },
    /// The parameters of the segment are refused.
    #[error("the segment from {level} on: {error}")]
    Params {
        /// Its highest level.
        level: Level,
        /// Why.
        error: Box<ParamsError>,
    },
}

/// A checked segment below the first.
#[derive(Clone, Debug, PartialEq)]
pub struct Lower {
    params: Params,
    entry: Option<Params>,
}

impl Lower {
    /// The segment as parameters of its own. Levels keep their numbers.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// What the key that leads into the segment is made with: its towers and special primes in the ring above, and a digit for
    /// every tower. None where the ring stays what it was and no key is needed.
    pub fn entry(&self) -> Option<&Params> {
        self.entry.as_ref()
    }

    /// How many coefficients of the ring above there are for one of this ring.
    pub fn stride(&self) -> usize {
        self.entry.as_ref().map_or(1, |entry| entry.n() / self.params.n())
    }

    pub(super) fn check(
        spec: &ParamsSpec,
        whole: &Pool,
        segment: &SegmentSpec,
        above: (u32, Level),
    ) -> Result<Self, SegmentError> {
        let (log_n, level) = (segment.log_n, segment.level);
        if level >= above.1 {
            return Err(SegmentError::Order { level, above: above.1 });
        }
        if log_n > above.0 {
            return Err(SegmentError::Grows { level, log_n, above: above.0 });
        }
        let refused = |error| SegmentError::Params { level, error: Box::new(error) };
        let checked = |segment: &SegmentSpec, log_n| {
            Params::new(parameters(spec, whole, segment, log_n)).map_err(refused)
        };
        let params = checked(segment, log_n)?;
        let entry = if log_n == above.0 { None } else { Some(checked(&segment.entry(), above.0)?) };
        Ok(Self { params, entry })
    }
}

/// The parameters of a segment in a ring of degree 2^`log_n`.
fn parameters(spec: &ParamsSpec, whole: &Pool, segment: &SegmentSpec, log_n: u32) -> ParamsSpec {
    let sets = &whole.levels[..=usize::from(segment.level.0)];
    let mut held: Vec<TowerIdx> = sets.iter().flatten().copied().collect();
    held.sort_unstable();
    held.dedup();
    let place = |tower: &TowerIdx| held.binary_search(tower).map_or(TowerIdx(0), |at| TowerIdx(at as u16));
    let levels = sets.iter().map(|set| set.iter().map(place).collect()).collect();
    ParamsSpec {
        log_n,
        towers: held.iter().map(|tower| spec.towers[usize::from(tower.0)]).collect(),
        special_primes: segment.special_primes.clone(),
        digit_size: segment.digits.iter().copied().max().map_or(0, usize::from),
        pool: Some(Pool { levels, digits: segment.digits.clone() }),
        lower: Vec::new(),
        insecure: spec.insecure,
        toy: spec.toy,
    }
}

/// Where a key lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyPlace {
    /// The highest level that it serves.
    pub level: Level,
    /// Whether it leads into the segment of that level, from the ring above.
    pub enters: bool,
}

impl From<Level> for KeyPlace {
    /// A key for use inside the segment of a level.
    fn from(level: Level) -> Self {
        Self { level, enters: false }
    }
}

impl Params {
    /// The segments below the first, the highest first.
    pub fn lower(&self) -> &[Lower] {
        &self.lower
    }

    /// All segments as parameters of their own: these, then the lower ones.
    pub fn segments(&self) -> impl Iterator<Item = &Params> {
        std::iter::once(self).chain(self.lower.iter().map(Lower::params))
    }

    /// The segment of a level, counted from the first, which has the highest.
    pub fn segment(&self, level: Level) -> usize {
        self.lower.iter().take_while(|lower| level <= lower.params.max_level()).count()
    }

    /// The parameters of the segment that a level is in.
    pub fn at(&self, level: Level) -> &Params {
        match self.segment(level) {
            0 => self,
            segment => &self.lower[segment - 1].params,
        }
    }

    /// The segments that are entered on the way from one level to a lower one, the highest first.
    pub fn entered(&self, from: Level, to: Level) -> &[Lower] {
        let (first, last) = (self.segment(from), self.segment(to));
        &self.lower[first.min(last)..last]
    }

    /// What a lower segment would be as parameters of its own, in a ring of degree 2^`log_n`.
    ///
    /// # Errors
    /// When it is none.
    pub fn of_segment(&self, segment: &SegmentSpec, log_n: u32) -> Result<Params, ParamsError> {
        Params::new(parameters(&self.spec, &self.pool, segment, log_n))
    }

    /// What a key is made with.
    pub fn of_key(&self, place: KeyPlace) -> &Params {
        let segment = self.segment(place.level);
        let entry = segment.checked_sub(1).and_then(|lower| self.lower[lower].entry());
        match entry.filter(|_| place.enters) {
            Some(entry) => entry,
            None => self.at(place.level),
        }
    }
}
