//! Everything that follows from the parameters: the ring, conversion tables, encoder tables, permutations.

use std::collections::HashMap;
use std::sync::{Arc, RwLock};

use fhe_bytecode::{Level, Params, TowerIdx};

use super::fft::Fft;
use super::{CkksError, Encoder, KeyUse, Segment};
use fhe_ring::kernels::Instructions;
use fhe_ring::modulus::ShoupConstant;
use fhe_ring::{Automorphism, BaseConverter, Basis, Ring, TowerSet};

/// Precomputed tables of one parameter set; shared by everything that computes with it.
#[derive(Debug)]
pub struct Context {
    params: Params,
    ring: Ring,
    fft: Fft,
    levels: Vec<LevelTables>,
    /// Converts from the special primes.
    special: BaseConverter,
    /// P modulo each tower of the chain.
    p: Vec<ShoupConstant>,
    /// P⁻¹ modulo each tower of the chain.
    p_inv: Vec<ShoupConstant>,
    automorphisms: RwLock<HashMap<usize, Arc<Automorphism>>>,
    lower: Vec<Segment>,
}

/// What a level has.
#[derive(Debug)]
struct LevelTables {
    q: TowerSet,
    /// Towers of a key that is usable up to this level.
    held: TowerSet,
    digits: Vec<Digit>,
}

/// A digit at a level.
#[derive(Debug)]
pub(super) struct Digit {
    /// Its place among the digits of the parameters.
    index: usize,
    /// Positions of its towers among those of the level.
    pub(super) positions: Vec<usize>,
    /// Converts from its towers.
    pub(super) converter: Arc<BaseConverter>,
}

impl Context {
    /// Tables for checked parameters, with the fastest kernels the CPU has.
    ///
    /// # Errors
    /// When a prime has no transform, which checked parameters exclude.
    pub fn new(params: Params) -> Result<Arc<Self>, CkksError> {
        Self::with_instructions(params, Instructions::Best)
    }

    /// As [`Context::new`], with a choice of kernels; results do not depend on it.
    ///
    /// # Errors
    /// As [`Context::new`].
    pub fn with_instructions(params: Params, instructions: Instructions) -> Result<Arc<Self>, CkksError> {
        let ring = Ring::new(params.n(), params.towers(), params.special_primes(), instructions)?;
        let n_q = ring.n_q();
        let p: Vec<ShoupConstant> = ring.towers()[..n_q]
            .iter()
            .map(|tower| {
                let q = tower.modulus;
                q.shoup(params.special_primes().iter().fold(1, |product, &s| q.mul(product, q.reduce(s))))
            })
            .collect();
        let p_inv = p
            .iter()
            .zip(ring.towers())
            .map(|(p, tower)| tower.modulus.shoup(tower.modulus.inv(p.value())))
            .collect();
        Ok(Arc::new(Self {
            fft: Fft::new(params.n(), instructions),
            levels: level_tables(&params, &ring),
            special: BaseConverter::new(&ring, n_q..ring.towers().len()),
            p,
            p_inv,
            automorphisms: RwLock::default(),
            lower: params
                .lower()
                .iter()
                .map(|lower| Segment::new(lower, instructions))
                .collect::<Result<_, _>>()?,
            ring,
            params,
        }))
    }

    /// The parameters.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// The tables of the segment that a level is in: of these parameters, or of a part of them.
    pub fn at(&self, level: Level) -> &Self {
        match self.params.segment(level) {
            0 => self,
            segment => self.lower[segment - 1].context(),
        }
    }

    /// The tables that a key is made and used with.
    pub fn of_key(&self, key_use: KeyUse, level: Level) -> &Self {
        match (key_use, self.params.segment(level)) {
            (KeyUse::Enter, segment @ 1..) => self.lower[segment - 1].entry().unwrap_or(self.at(level)),
            _ => self.at(level),
        }
    }

    /// The segments below the first, the highest first.
    pub fn lower(&self) -> &[Segment] {
        &self.lower
    }

    /// The ring.
    pub fn ring(&self) -> &Ring {
        &self.ring
    }

    /// Number of slots, N/2.
    pub fn slots(&self) -> usize {
        self.params.slots()
    }

    /// The encoder.
    pub fn encoder(&self) -> Encoder<'_> {
        Encoder::new(self)
    }

    /// Refuses a level that the parameters do not have.
    ///
    /// # Errors
    /// When `level` is above the highest.
    pub fn check_level(&self, level: Level) -> Result<(), CkksError> {
        let max = self.params.max_level();
        if level <= max { Ok(()) } else { Err(CkksError::NoSuchLevel { level, max }) }
    }

    /// The towers of a ciphertext at `level`.
    pub fn basis(&self, level: Level) -> Basis {
        Basis { q: self.tables(level).q, n_special: 0 }
    }

    /// The towers of a ciphertext at `level` and the special primes.
    pub fn key_basis(&self, level: Level) -> Basis {
        Basis { q: self.tables(level).q, n_special: self.ring.n_special() }
    }

    /// The towers of a key that is usable up to `level`, and the special primes.
    pub fn held_basis(&self, level: Level) -> Basis {
        Basis { q: self.tables(level).held, n_special: self.ring.n_special() }
    }

    /// The level that has exactly these towers.
    pub fn level_of(&self, basis: Basis) -> Option<Level> {
        let at = self.levels.iter().position(|level| level.q == basis.q)?;
        (basis.n_special == 0).then_some(Level(at as u16))
    }

    fn tables(&self, level: Level) -> &LevelTables {
        &self.levels[usize::from(level.0).min(self.levels.len() - 1)]
    }

    pub(super) fn fft(&self) -> &Fft {
        &self.fft
    }

    /// The digits of a level.
    pub(super) fn digits(&self, level: Level) -> &[Digit] {
        &self.tables(level).digits
    }

    /// Where a key that is usable up to `key` has the digit at position `digit` of `level`.
    pub(super) fn key_digit(&self, key: Level, level: Level, digit: usize) -> usize {
        let index = self.tables(level).digits[digit].index;
        self.params
            .key_digits(key)
            .binary_search(&index)
            .expect("a key has the digits of the levels it serves")
    }

    pub(super) fn special(&self) -> &BaseConverter {
        &self.special
    }

    /// The product of the special primes modulo the tower with index `tower`.
    pub fn p(&self, tower: usize) -> ShoupConstant {
        self.p[tower]
    }

    pub(super) fn p_inv(&self, tower: usize) -> ShoupConstant {
        self.p_inv[tower]
    }

    /// The permutation of X → X^element, made on first use.
    pub fn automorphism(&self, element: usize) -> Arc<Automorphism> {
        const LOCK: &str = "no holder of the lock panics";
        if let Some(found) = self.automorphisms.read().expect(LOCK).get(&element) {
            return found.clone();
        }
        let made = Arc::new(Automorphism::new(self.ring.n(), element));
        self.automorphisms.write().expect(LOCK).entry(element).or_insert(made).clone()
    }
}

fn level_tables(params: &Params, ring: &Ring) -> Vec<LevelTables> {
    // Levels share most digits.
    let mut made: HashMap<Vec<usize>, Arc<BaseConverter>> = HashMap::new();
    let mut digit = |level: Level, index: usize| {
        let own = |&(_, tower): &(usize, &TowerIdx)| params.digit_of(*tower) == index;
        let (positions, towers): (Vec<usize>, Vec<usize>) = params
            .set(level)
            .iter()
            .enumerate()
            .filter(own)
            .map(|(i, tower)| (i, usize::from(tower.0)))
            .unzip();
        let converter = made
            .entry(towers)
            .or_insert_with_key(|towers| Arc::new(BaseConverter::new(ring, towers.iter().copied())));
        Digit { index, positions, converter: converter.clone() }
    };
    let levels = (0..=params.max_level().0).map(Level);
    levels
        .map(|level| LevelTables {
            q: tower_set(params.set(level)),
            held: tower_set(params.held(level)),
            digits: params.digits(level).iter().map(|&index| digit(level, index)).collect(),
        })
        .collect()
}

pub(super) fn tower_set(towers: &[TowerIdx]) -> TowerSet {
    towers.iter().map(|tower| usize::from(tower.0)).collect()
}
