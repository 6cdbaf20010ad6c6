//! Baby-step/giant-step plans of linear maps.
//!
//! Every rotation r of a map is split as r = g + b. The babies rotate the inputs, hoisted: one
//! decomposition per input. The giants rotate the partial sums of an output:
//!
//! ```text
//! P_o = Σ_g rot( Σ_{i,b} rot(d_{o,i,g+b}, -g) · rot(x_i, b), g )
//! ```
//!
//! Real sums P are the outputs; the parts of complex ones are taken apart ([`Pairing`]). At the end
//! y ← y + rot(y, f) for every fold f.
//!
//! A sum need not go all the way at once: it may be rotated to the next giant step and go on together with the sum that is
//! there ([`Gait`]). That takes as many rotations, and one key where giant steps are equally far apart.
//!
//! A [`Plan`] stores only how each distinct rotation is split, so it stays small however many ciphertexts a
//! map has; [`Plan::expand`] gives the groups and terms that an executor walks through.

mod cost;
mod cpu;
mod gait;
mod search;

use crate::linear::{DiagonalId, Diagonals, Pairing};
use crate::rotation::Rotation;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashSet};

pub use cost::{CostModel, StepCosts};
pub use cpu::Cpu;
pub use gait::{Gait, Hop};
pub use search::{Ways, plan};

/// How one rotation is split; the giant step is what the baby step leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Split {
    /// Rotation of the diagonals.
    pub rotation: Rotation,
    /// Baby step.
    pub baby: Rotation,
}

/// A plan: the split of every distinct rotation of a map, sorted by rotation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// One split per distinct rotation.
    pub splits: Vec<Split>,
    /// How sums take their giant steps.
    #[serde(default)]
    pub gait: Gait,
}

/// One product under a giant step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PlanTerm {
    /// Input ciphertext, counted through the terms of the map.
    pub input: u32,
    /// Index into [`ExpandedPlan::babies`].
    pub baby: u32,
    /// The diagonal; its vector is written with the giant step of the group.
    pub diagonal: DiagonalId,
}

/// The products that share one sum and one giant step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanGroup {
    /// The sum: an output ciphertext, or a pair of them.
    pub sum: u32,
    /// Rotation of the sum.
    pub giant: Rotation,
    /// The products, by input and baby step.
    pub terms: Vec<PlanTerm>,
}

/// A plan written out for an executor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpandedPlan {
    /// Distinct baby steps, zero included if it is used; every input may need each of them.
    pub babies: Vec<Rotation>,
    /// Sorted by sum and giant step.
    pub groups: Vec<PlanGroup>,
    /// The rotations that bring what is at a giant step to its sum, in order.
    pub hops: Vec<Hop>,
    /// Rotations to add up at the end, in order, once the parts are taken apart.
    pub folds: Vec<Rotation>,
    /// What the imaginary parts of the sums are.
    pub pairing: Pairing,
    /// The rotation of the imaginary parts for [`Pairing::Halves`].
    pub half: Option<Rotation>,
    /// Output ciphertexts.
    pub n_outputs: usize,
    /// Products with plaintexts: one per term, or one per sum and plaintext where inputs are added first.
    pub n_products: usize,
    /// Slots after which every plaintext repeats.
    pub period: usize,
}

/// Why a plan does not fit its map.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// A diagonal has no split.
    #[error("no split for rotation {0}")]
    Missing(Rotation),
    /// Splits out of order, twice, or for a rotation that no diagonal has.
    #[error("split of rotation {0} is out of order or of no use")]
    Superfluous(Rotation),
    /// An amount that is not normalized.
    #[error("rotation {0} is not normalized")]
    NotNormalized(Rotation),
}

impl Plan {
    /// The plan without giant steps.
    pub fn trivial(diagonals: &Diagonals) -> Self {
        let rotations = distinct_rotations(diagonals);
        let splits = rotations.into_iter().map(|r| Split { rotation: r, baby: r }).collect();
        Self { splits, gait: Gait::Direct }
    }

    /// Groups and terms for an executor.
    ///
    /// # Errors
    /// When the splits are not exactly those of the map's distinct rotations.
    pub fn expand(&self, diagonals: &Diagonals) -> Result<ExpandedPlan, PlanError> {
        self.fits(diagonals)?;
        let mut babies: Vec<Rotation> = self.splits.iter().map(|s| s.baby).collect();
        babies.sort_unstable();
        babies.dedup();
        let mut groups: BTreeMap<(u32, Rotation), Vec<PlanTerm>> = BTreeMap::new();
        for (index, diagonal) in diagonals.list().iter().enumerate() {
            let split = self.split(diagonal.rotation).ok_or(PlanError::Missing(diagonal.rotation))?;
            let baby = babies.binary_search(&split.baby).expect("every baby step is in the list") as u32;
            let term = PlanTerm { input: diagonal.input, baby, diagonal: DiagonalId(index as u32) };
            groups.entry((diagonal.sum, split.giant(diagonals))).or_default().push(term);
        }
        let groups: Vec<PlanGroup> =
            groups.into_iter().map(|((sum, giant), terms)| PlanGroup { sum, giant, terms }).collect();
        Ok(ExpandedPlan {
            babies,
            n_products: n_products(diagonals, &groups),
            period: diagonals.period(),
            hops: self.hops(diagonals.period()),
            groups,
            folds: diagonals.folds().to_vec(),
            pairing: diagonals.pairing(),
            half: diagonals.half(),
            n_outputs: diagonals.n_outputs(),
        })
    }

    /// Whether the splits are exactly those of a map's distinct rotations.
    ///
    /// # Errors
    /// The first split that is missing, superfluous or not normalized.
    pub fn fits(&self, diagonals: &Diagonals) -> Result<(), PlanError> {
        self.check(&distinct_rotations(diagonals), diagonals.slots())
    }

    /// Whether the splits are exactly those of these distinct rotations, which are sorted.
    pub(crate) fn check(&self, rotations: &[Rotation], slots: usize) -> Result<(), PlanError> {
        for pair in self.splits.windows(2) {
            if pair[0].rotation >= pair[1].rotation {
                return Err(PlanError::Superfluous(pair[1].rotation));
            }
        }
        if let Some(split) = self.splits.iter().find(|s| rotations.binary_search(&s.rotation).is_err()) {
            return Err(PlanError::Superfluous(split.rotation));
        }
        if let Some(split) = self.splits.iter().find(|s| !s.baby.is_normalized(slots)) {
            return Err(PlanError::NotNormalized(split.baby));
        }
        match rotations.iter().find(|r| self.split(**r).is_none()) {
            Some(&missing) => Err(PlanError::Missing(missing)),
            None => Ok(()),
        }
    }

    /// The distinct non-zero rotations that need a key.
    pub fn rotations(&self, diagonals: &Diagonals) -> Vec<Rotation> {
        let end = diagonals.folds().iter().copied().chain(diagonals.half());
        self.keyed(diagonals.period(), end)
    }

    /// The distinct non-zero rotations of a map with this period and these rotations at its end, sorted.
    pub(crate) fn keyed(&self, period: usize, end: impl Iterator<Item = Rotation>) -> Vec<Rotation> {
        let hops = self.hops(period);
        let steps = self.splits.iter().map(|s| s.baby).chain(hops.iter().map(|hop| hop.by));
        let mut all: Vec<Rotation> = steps.chain(end).collect();
        all.retain(|r| !r.is_zero());
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The rotations of sums, in order.
    fn hops(&self, period: usize) -> Vec<Hop> {
        let mut giants: Vec<Rotation> = self.splits.iter().map(|split| split.giant_in(period)).collect();
        giants.sort_unstable();
        giants.dedup();
        self.gait.hops(&giants, period)
    }

    fn split(&self, rotation: Rotation) -> Option<&Split> {
        let at = self.splits.binary_search_by_key(&rotation, |s| s.rotation).ok()?;
        Some(&self.splits[at])
    }
}

impl Split {
    /// The giant step: a rotation of a sum that repeats every period of the map.
    pub fn giant(&self, diagonals: &Diagonals) -> Rotation {
        self.giant_in(diagonals.period())
    }

    fn giant_in(&self, period: usize) -> Rotation {
        Rotation::new(self.rotation.amount() - self.baby.amount(), period)
    }
}

impl ExpandedPlan {
    /// Counts for cost reports and the noise model.
    pub fn counts(&self) -> PlanCounts {
        let mut used: Vec<(u32, u32)> =
            self.groups.iter().flat_map(|g| g.terms.iter().map(|t| (t.input, t.baby))).collect();
        used.sort_unstable();
        used.dedup();
        let rotated = used.iter().filter(|(_, baby)| !self.babies[*baby as usize].is_zero());
        let mut hoisted: Vec<u32> = rotated.clone().map(|(input, _)| *input).collect();
        hoisted.dedup();
        let sums = self.groups.iter().map(|g| g.sum).max().map_or(0, |last| last as usize + 1);
        PlanCounts {
            hoists: hoisted.len(),
            babies: rotated.count(),
            giants: self.n_hops(),
            folds: (self.folds.len() + usize::from(self.half.is_some())) * self.n_outputs,
            conjugations: if self.pairing == Pairing::None { 0 } else { sums },
            terms: self.n_products,
            plaintext_slots: self.n_products * self.period,
            additions: self.groups.iter().map(|g| g.terms.len()).sum::<usize>() - self.n_products,
            outputs: self.n_outputs,
        }
    }
}

impl ExpandedPlan {
    /// Rotations of partial sums, of all sums together.
    pub fn n_hops(&self) -> usize {
        let of_sum = |groups: &[PlanGroup]| gait::n_hops(&self.hops, groups.iter().map(|group| group.giant));
        self.groups.chunk_by(|a, b| a.sum == b.sum).map(of_sum).sum()
    }

    /// Pairs of polynomials over the key basis that an executor holds at most: the rotations of one input, its digits, and
    /// all sums.
    pub fn working_pairs(&self, n_digits: usize) -> usize {
        let mut used: Vec<(u32, u32)> =
            self.groups.iter().flat_map(|g| g.terms.iter().map(|t| (t.input, t.baby))).collect();
        used.sort_unstable();
        used.dedup();
        let most_babies = used.chunk_by(|a, b| a.0 == b.0).map(<[_]>::len).max().unwrap_or(0);
        let sums = self.groups.iter().map(|g| g.sum).max().map_or(0, |last| last as usize + 1);
        most_babies + n_digits + self.groups.len() + sums
    }
}

/// How much work a plan is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlanCounts {
    /// Decompositions of inputs.
    pub hoists: usize,
    /// Hoisted rotations.
    pub babies: usize,
    /// Rotations of partial sums.
    pub giants: usize,
    /// Rotations at the end.
    pub folds: usize,
    /// Conjugations that take paired sums apart.
    pub conjugations: usize,
    /// Plaintext products.
    pub terms: usize,
    /// Slots of the periods of all plaintexts, which are transformed for every product.
    pub plaintext_slots: usize,
    /// Inputs added to others that share their plaintext, before the product.
    pub additions: usize,
    /// Output ciphertexts.
    pub outputs: usize,
}

impl PlanCounts {
    /// All rotations.
    pub fn rotations(&self) -> usize {
        self.babies + self.giants + self.folds + self.conjugations
    }
}

/// Distinct plaintexts of every group, if inputs are added first.
fn n_products(diagonals: &Diagonals, groups: &[PlanGroup]) -> usize {
    let adds_first = groups.iter().all(|group| group.giant.is_zero()) && diagonals.is_shared();
    let products = |group: &PlanGroup| match adds_first {
        true => group.terms.iter().map(|t| diagonals.key(t.diagonal)).collect::<HashSet<_>>().len(),
        false => group.terms.len(),
    };
    groups.iter().map(products).sum()
}

fn distinct_rotations(diagonals: &Diagonals) -> Vec<Rotation> {
    let mut rotations: Vec<Rotation> = diagonals.list().iter().map(|d| d.rotation).collect();
    rotations.sort_unstable();
    rotations.dedup();
    rotations
}

#[cfg(test)]
mod tests;
