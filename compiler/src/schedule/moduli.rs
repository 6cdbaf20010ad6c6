//! The modulus of every rung: a set of towers.
//!
//! Rungs may simply have the towers of the rung below and some more, or any sets of a pool; what a rescale removes and adds
//! follows from the sets.

use fhe_bytecode::params::{Division, Pool, TowerIdx};
use fhe_bytecode::{Level, Scale};

use crate::timed::Rung;

/// All towers, and which of them every rung has.
#[derive(Clone, Debug, PartialEq)]
pub struct Moduli {
    towers: Vec<u64>,
    /// Their sizes in bits.
    bits: Vec<f64>,
    /// The towers of every rung, ascending.
    sets: Vec<Vec<TowerIdx>>,
}

impl Moduli {
    /// Every rung has the towers of the one below and a group of its own.
    #[must_use]
    pub fn nested(groups: &[Vec<u64>]) -> Self {
        let up_to = |n: usize| (0..n as u16).map(TowerIdx).collect();
        let ends = groups.iter().scan(0, |end, group| {
            *end += group.len();
            Some(*end)
        });
        Self::of_sets(groups.concat(), ends.map(up_to).collect())
    }

    /// Rungs with sets of towers, each ascending.
    #[must_use]
    pub fn of_sets(towers: Vec<u64>, sets: Vec<Vec<TowerIdx>>) -> Self {
        Self { bits: towers.iter().copied().map(log2).collect(), towers, sets }
    }

    /// All towers.
    #[must_use]
    pub fn towers(&self) -> &[u64] {
        &self.towers
    }

    /// Size of all towers together, in bits.
    #[must_use]
    pub fn log2_all(&self) -> f64 {
        self.bits.iter().sum()
    }

    /// Number of rungs.
    #[must_use]
    pub fn n_rungs(&self) -> usize {
        self.sets.len()
    }

    /// Towers of all rungs together.
    #[must_use]
    pub fn n_residues(&self) -> usize {
        self.sets.iter().map(Vec::len).sum()
    }

    /// The level of ciphertexts at a rung.
    #[must_use]
    pub fn level(&self, rung: Rung) -> Level {
        Level(rung.0)
    }

    /// Size of the modulus of a rung, in bits.
    #[must_use]
    pub fn log2(&self, rung: Rung) -> f64 {
        self.sets[rung.index()].iter().map(|tower| self.bits[usize::from(tower.0)]).sum()
    }

    /// Bits that the rescale from a rung to the one below takes from a scale.
    #[must_use]
    pub fn step_bits(&self, from: Rung) -> f64 {
        self.log2(from) - self.log2(Rung(from.0 - 1))
    }

    /// The rescale from a rung to the one below.
    #[must_use]
    pub fn rescale(&self, from: Rung) -> Division {
        Division::between(&self.sets[from.index()], &self.sets[from.index() - 1])
    }

    /// The scale after the rescale from a rung to the one below.
    #[must_use]
    pub fn rescaled(&self, from: Rung, scale: Scale) -> Scale {
        self.rescale(from).rescaled(&self.towers, scale)
    }

    /// The same sets as parameters have them; none where every rung has one tower more than the one below.
    #[must_use]
    pub fn pool(&self, digits: Vec<u16>) -> Option<Pool> {
        let is_chain = self.sets.iter().enumerate().all(|(rung, set)| {
            set.len() == rung + 1 && set.iter().enumerate().all(|(i, tower)| usize::from(tower.0) == i)
        });
        (!is_chain).then(|| Pool { levels: self.sets.clone(), digits })
    }

    /// Towers in digits of so many, in their order.
    #[must_use]
    pub fn digits(&self, digit_size: usize) -> Vec<u16> {
        let n_towers = self.towers.len();
        (0..n_towers).step_by(digit_size).map(|start| digit_size.min(n_towers - start) as u16).collect()
    }

    /// The same moduli with the towers in an order in which consecutive ones make up digits of at most so many bits, and
    /// those digits. Towers that most rungs have share digits, so that low rungs have few.
    #[must_use]
    pub fn in_digits(&self, most_bits: f64) -> (Self, Vec<u16>) {
        let mut uses = vec![0usize; self.towers.len()];
        self.sets.iter().flatten().for_each(|tower| uses[usize::from(tower.0)] += 1);
        let mut order: Vec<u16> = (0..self.towers.len() as u16).collect();
        order.sort_by_key(|&tower| std::cmp::Reverse(uses[usize::from(tower)]));
        let mut digits: Vec<(Vec<u16>, f64)> = Vec::new();
        for tower in order {
            let bits = self.bits[usize::from(tower)];
            match digits.iter_mut().find(|(_, own)| own + bits <= most_bits) {
                Some((digit, own)) => {
                    digit.push(tower);
                    *own += bits;
                }
                None => digits.push((vec![tower], bits)),
            }
        }
        let sizes = digits.iter().map(|(digit, _)| digit.len() as u16).collect();
        let order: Vec<u16> = digits.into_iter().flat_map(|(digit, _)| digit).collect();
        let mut place = vec![TowerIdx(0); order.len()];
        order.iter().zip(0..).for_each(|(&tower, at)| place[usize::from(tower)] = TowerIdx(at));
        let moved = |set: &Vec<TowerIdx>| {
            let mut set: Vec<TowerIdx> = set.iter().map(|tower| place[usize::from(tower.0)]).collect();
            set.sort_unstable();
            set
        };
        let towers = order.iter().map(|&tower| self.towers[usize::from(tower)]).collect();
        (Self::of_sets(towers, self.sets.iter().map(moved).collect()), sizes)
    }
}

/// Size of a prime, in bits.
fn log2(prime: u64) -> f64 {
    (prime as f64).log2()
}
