//! Towers apart from levels: the modulus of a level is a set of towers from a pool.
//!
//! In a plain chain a level has the first towers, and a rescale divides by the last of them. With a [`Pool`] a level has any
//! set, so large towers may serve scales of any size: a rescale removes some towers and adds others. With D the product of
//! those removed and A of those added it computes round(A·x/D), which is one rounding: A·x is zero modulo the new towers. What
//! a level has, and how one leads to another, is said here once, for the checker and for those who evaluate.

use serde::{Deserialize, Serialize};

use super::{Level, Params, ParamsError, TowerIdx};
use crate::scale::Scale;

/// Size from which the factor of a drop keeps the scale to a millionth.
const LEAST_FACTOR: f64 = (1u64 << 20) as f64;

/// Which towers a level has, and which are decomposed together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pool {
    /// The towers of every level, from level 0 on, ascending.
    pub levels: Vec<Vec<TowerIdx>>,
    /// Towers of every digit: the first ones, the next ones, and so on. A level has what it has of each.
    pub digits: Vec<u16>,
}

/// Why a [`Pool`] was refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PoolError {
    /// No levels or far too many.
    #[error("{0} levels in a pool, need 1 to 256")]
    Levels(usize),
    /// A set that is empty, unordered or names towers that do not exist.
    #[error("the towers of level {0} are none, not ascending or beyond the pool")]
    Set(Level),
    /// A level that is not larger than the one below.
    #[error("the modulus of level {0} is not larger than that of the level below")]
    NotGrowing(Level),
    /// A tower that no level has, but every key would.
    #[error("no level has tower {}", .0.0)]
    Idle(TowerIdx),
    /// Digits that do not cover the towers.
    #[error("digits of {digits:?} towers for {n_towers}, the largest said to be {digit_size}")]
    Digits {
        /// Towers of every digit.
        digits: Vec<u16>,
        /// Towers of the pool.
        n_towers: usize,
        /// What the parameters say of the largest.
        digit_size: usize,
    },
}

impl Pool {
    /// A chain as a pool: level l has the first l + 1 towers.
    pub(super) fn chain(n_towers: usize, digit_size: usize) -> Self {
        let level = |n: usize| (0..n as u16).map(TowerIdx).collect();
        let digits = (0..n_towers).step_by(digit_size).map(|start| digit_size.min(n_towers - start) as u16);
        Self { levels: (1..=n_towers).map(level).collect(), digits: digits.collect() }
    }

    /// Checks a pool of so many towers, whose levels have these sizes in bits.
    pub(super) fn check(&self, towers: &[u64], digit_size: usize) -> Result<(), PoolError> {
        let n_towers = towers.len();
        if self.levels.is_empty() || self.levels.len() > super::MAX_TOWERS {
            return Err(PoolError::Levels(self.levels.len()));
        }
        let mut used = vec![false; n_towers];
        let mut below = 0.0;
        for (set, level) in self.levels.iter().zip(0..) {
            let ordered = set.windows(2).all(|pair| pair[0] < pair[1]);
            let last = set.last().map(|tower| usize::from(tower.0));
            if !ordered || last.is_none_or(|last| last >= n_towers) {
                return Err(PoolError::Set(Level(level)));
            }
            let bits: f64 = set.iter().map(|tower| (towers[usize::from(tower.0)] as f64).log2()).sum();
            // A level that is less than a bit larger would make scales of rescaled values larger.
            if bits < below + 1.0 {
                return Err(PoolError::NotGrowing(Level(level)));
            }
            below = bits;
            set.iter().for_each(|tower| used[usize::from(tower.0)] = true);
        }
        if let Some(idle) = used.iter().position(|used| !used) {
            return Err(PoolError::Idle(TowerIdx(idle as u16)));
        }
        let covered: usize = self.digits.iter().map(|&size| usize::from(size)).sum();
        let largest = self.digits.iter().copied().max().map_or(0, usize::from);
        if covered != n_towers || self.digits.contains(&0) || largest != digit_size {
            let digits = self.digits.iter().copied().take(super::MAX_TOWERS).collect();
            return Err(PoolError::Digits { digits, n_towers, digit_size });
        }
        Ok(())
    }

    /// The digit of every tower.
    pub(super) fn digit_of(&self) -> Vec<usize> {
        let sizes = self.digits.iter().enumerate();
        sizes.flat_map(|(digit, &size)| std::iter::repeat_n(digit, usize::from(size))).collect()
    }
}

/// From one level to a lower one: x becomes round(factor·A·x/D), with A the product of the towers that are added and D of
/// those that are divided by. Towers that are neither divided by nor part of the lower level are dropped.
#[derive(Clone, Debug, PartialEq)]
pub struct Division {
    /// Divided by.
    pub divided: Vec<TowerIdx>,
    /// New in the lower level.
    pub added: Vec<TowerIdx>,
    /// A whole number.
    pub factor: f64,
}

impl Division {
    /// The rescale from a level with the towers `high` to one with `low`, both ascending.
    pub fn between(high: &[TowerIdx], low: &[TowerIdx]) -> Self {
        let without = |of: &[TowerIdx], other: &[TowerIdx]| {
            of.iter().filter(|tower| other.binary_search(tower).is_err()).copied().collect()
        };
        Self { divided: without(high, low), added: without(low, high), factor: 1.0 }
    }

    /// The scale of what was at `scale`, where these are all towers.
    pub fn rescaled(&self, towers: &[u64], scale: Scale) -> Scale {
        let prime = |tower: &TowerIdx| towers[usize::from(tower.0)];
        let factor = Scale::new(self.factor).unwrap_or(Scale::ONE);
        let raised = self.added.iter().fold(scale.times(factor), |scale, tower| {
            scale.times(Scale::new(prime(tower) as f64).unwrap_or(Scale::ONE))
        });
        // Towers beyond the range of numbers have no quotient; a scale below one is refused.
        if raised.value() == f64::MAX {
            return Scale::from_log2(f64::NEG_INFINITY);
        }
        self.divided.iter().rev().fold(raised, |scale, tower| scale.rescaled(prime(tower)))
    }
}

impl Params {
    /// A rescale from one level to another, which is lower; none if it is not, or there is no such level.
    pub fn rescale(&self, from: Level, to: Level) -> Option<Division> {
        (to < from && from <= self.max_level()).then(|| Division::between(self.set(from), self.set(to)))
    }

    /// A drop from one level to another where that takes a division: the lower level has towers that the higher one lacks.
    ///
    /// The factor makes up for what is divided by, so the scale stays what it was, but for the rounding of the factor.
    pub fn drop(&self, from: Level, to: Level) -> Option<Division> {
        let Division { divided: removed, added, .. } = self.rescale(from, to)?;
        if added.is_empty() {
            return None;
        }
        let prime = |tower: &TowerIdx| self.towers()[usize::from(tower.0)] as f64;
        let new = added.iter().map(prime).product::<f64>();
        let (mut ratio, mut divided) = (1.0 / new, Vec::new());
        for tower in removed.iter().rev() {
            if ratio >= LEAST_FACTOR {
                break;
            }
            ratio *= prime(tower);
            divided.push(*tower);
        }
        divided.reverse();
        Some(Division { divided, added, factor: ratio.round().max(1.0) })
    }
}

impl From<PoolError> for ParamsError {
    fn from(error: PoolError) -> Self {
        Self::Pool(error)
    }
}
