//! Noise of linear maps: the one formula that schedules, simulations and tests against real encryption share.
//!
//! What a map adds falls into three parts, each at a scale of its own: weights round at the weight scale, rotated inputs
//! carry the noise of their keys at the scale of the input, and everything that happens to the sums (giant steps, the
//! division by P, conjugations, folds) adds at the scale of the result. The last part is the same in every number of the
//! result; the first two depend on what the number is computed from, its [`Row`].

use super::{NoiseModel, REAL_ENCODING};
use crate::layout::Layout;
use crate::linear::{Diagonals, Pairing, Share};
use crate::params::Level;
use crate::plan::ExpandedPlan;

/// What the noise model needs to know of a linear map under a plan, averaged over its rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinearNoise {
    /// Its summands.
    pub terms: Vec<TermNoise>,
    /// Rotations of the partial sums of one sum.
    pub n_giants: f64,
    /// Rotate-and-add steps at the end; each doubles what came before.
    pub n_folds: usize,
    /// What the imaginary parts of the sums are.
    pub pairing: Pairing,
}

/// One summand of a [`LinearNoise`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TermNoise {
    /// Sum of the squared weights behind a number of the result.
    pub weight_energy: f64,
    /// The part of `weight_energy` that multiplies a rotated input (a non-zero baby step).
    pub rotated_energy: f64,
    /// Sum over the diagonals of one sum of their period, in slots: encodings round in a subring. Diagonals that share a
    /// plaintext share its rounding and count as [`Diagonals::roundings`] says.
    pub encoded_slots: f64,
    /// Products with slots of the operand that end in a number of the result, those with a weight of zero included.
    pub products: f64,
    /// What complex sums let in.
    pub leak: Leak,
}

/// How many times the weights of a number those may be that it shares a complex sum with, in squares: what is beyond that is
/// counted whole.
const RATIOS: [f64; 8] = [1.0, 4.0, 16.0, 64.0, 256.0, 1024.0, 4096.0, 16384.0];

/// Bounds on the squared weights that a number shares a complex sum with, from its own: times each of some ratios, and what
/// may be beyond that.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Leak {
    beyond: [f64; RATIOS.len()],
}

impl Leak {
    fn new(shares: &[Share]) -> Self {
        let beyond = |ratio: f64| shares.iter().map(|s| s.other - ratio * s.own).fold(0.0, f64::max);
        Self { beyond: RATIOS.map(beyond) }
    }

    /// The least of the bounds. Every one is linear, so it holds for means over rows as well.
    fn of(&self, own: f64) -> f64 {
        RATIOS
            .iter()
            .zip(&self.beyond)
            .map(|(ratio, beyond)| ratio * own + beyond)
            .fold(f64::INFINITY, f64::min)
    }
}

/// What a number of the result is computed from in one term, or the mean over such rows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Row {
    /// Sum of its squared weights.
    pub weight_energy: f64,
    /// Numbers of the operand that have a weight in it.
    pub reads: f64,
    /// Sum of their squares.
    pub squares: f64,
}

impl Row {
    /// The mean over all rows of a term; what it reads is like the whole operand.
    pub fn mean(term: &TermNoise) -> Self {
        Self { weight_energy: term.weight_energy, ..Self::default() }
    }

    /// The mean square of what the roundings of this row multiply, where that of the operand is `mean`: products with a
    /// weight of zero bring slots that are none of its own.
    fn message(&self, term: &TermNoise, mean: f64) -> f64 {
        let products = term.products.max(self.reads);
        if products > 0.0 { (self.squares + (products - self.reads) * mean) / products } else { mean }
    }
}

/// The operand of a row in units of stored integers: variance of its noise, mean squares, and the scale that the weights
/// bring into the result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OperandNoise {
    /// Variance of the noise of a slot.
    pub noise: f64,
    /// Mean square of a slot.
    pub message: f64,
    /// Scale of the result over that of the operand.
    pub weight_scale: f64,
    /// What the number of the result is computed from.
    pub row: Row,
}

impl LinearNoise {
    /// The facts of a map to a layout. Gaps and spare slots have no weights, so energy belongs to the numbers alone.
    pub fn new(diagonals: &Diagonals, plan: &ExpandedPlan, output: &Layout) -> Self {
        let n_numbers = output.shape().len() * output.members();
        let n_sums = diagonals.n_sums().max(1) as f64;
        let period = diagonals.period() as f64;
        let per_number = period / n_numbers.max(1) as f64;
        // A diagonal ends in a number once per copy that is folded, and once per half of a complex sum.
        let halves = if plan.pairing == Pairing::Halves { 2.0 } else { 1.0 };
        let products = (plan.folds.len() as f64).exp2() * halves;
        let mut terms = vec![TermNoise::default(); diagonals.n_terms()];
        if plan.pairing != Pairing::None {
            let shares = diagonals.shares(output);
            terms.iter_mut().zip(&shares).for_each(|(term, shares)| term.leak = Leak::new(shares));
        }
        for group in &plan.groups {
            let mut ids: Vec<(usize, _)> =
                group.terms.iter().map(|t| (diagonals.term(t.diagonal), t.diagonal)).collect();
            ids.sort_unstable();
            for of_term in ids.chunk_by(|a, b| a.0 == b.0) {
                let roundings = diagonals.roundings(of_term.iter().map(|(_, id)| *id));
                let facts = &mut terms[of_term[0].0];
                facts.encoded_slots += period * roundings / n_sums;
                facts.products += of_term.len() as f64 * products / n_sums;
            }
            for term in &group.terms {
                let energy = diagonals.energy(term.diagonal) * per_number;
                let facts = &mut terms[diagonals.term(term.diagonal)];
                facts.weight_energy += energy;
                if !plan.babies[term.baby as usize].is_zero() {
                    facts.rotated_energy += energy;
                }
            }
        }
        let n_giants = plan.n_hops() as f64 / n_sums;
        Self { terms, n_giants, n_folds: plan.folds.len(), pairing: plan.pairing }
    }

    /// Slots of the result's period that one of the sum's holds: each copy adds its noise.
    fn copies(&self) -> f64 {
        (self.n_folds as f64).exp2()
    }

    /// Factor on the variance of a sum: the result is twice a part of a complex one, or twice the sum of both parts.
    fn sum_gain(&self) -> f64 {
        match self.pairing {
            Pairing::None => 1.0,
            Pairing::Outputs => 4.0,
            Pairing::Halves => 8.0,
        }
    }

    /// Key switches that taking a complex sum apart brings into a result: a conjugate in every part, and a rotation.
    fn n_apart(&self) -> f64 {
        match self.pairing {
            Pairing::None => 0.0,
            Pairing::Outputs => 1.0,
            Pairing::Halves => 3.0,
        }
    }

    /// What the roundings of a term's weights add to a row, if the operand has a mean square: over the square of the weight
    /// scale.
    pub fn rounding(&self, term: &TermNoise, row: &Row, mean: f64) -> f64 {
        self.copies() * self.sum_gain() * term.encoded_slots * REAL_ENCODING * row.message(term, mean)
    }

    /// What noise of the operand becomes: complex weights let the imaginary part of the noise in as well, by the weights of
    /// those that the row shares a sum with.
    pub fn carried(&self, term: &TermNoise, row: &Row) -> f64 {
        match self.pairing {
            Pairing::None => row.weight_energy,
            Pairing::Outputs | Pairing::Halves => row.weight_energy + term.leak.of(row.weight_energy),
        }
    }

    /// Factor on what noise of the operand becomes, over what its real part alone becomes.
    pub fn leak(&self, term: &TermNoise, row: &Row) -> f64 {
        let real = row.weight_energy;
        // Where nothing is read nothing is carried.
        if real > 0.0 { self.carried(term, row) / real } else { 1.0 }
    }

    /// What the keys of hoisted rotations add: over the square of the operand's scale. All weights of a row may be on rotated
    /// inputs, whatever their share in the map.
    pub fn hoisted(&self, term: &TermNoise, row: &Row, model: &NoiseModel, level: Level) -> f64 {
        match term.rotated_energy > 0.0 {
            true => self.carried(term, row) * model.key_switch_product(level),
            false => 0.0,
        }
    }

    /// The noisier of two ways to evaluate a map, part by part.
    #[must_use]
    pub fn worse(&self, other: &Self) -> Self {
        let term = |(a, b): (&TermNoise, &TermNoise)| TermNoise {
            rotated_energy: a.rotated_energy.max(b.rotated_energy),
            encoded_slots: a.encoded_slots.max(b.encoded_slots),
            ..*a
        };
        Self {
            terms: self.terms.iter().zip(&other.terms).map(term).collect(),
            n_giants: self.n_giants.max(other.n_giants),
            ..*self
        }
    }

    /// As noisy as any plan could make it: every rotation is one of the operand and one of a sum.
    #[must_use]
    pub fn under_any_plan(&self, diagonals: &Diagonals) -> Self {
        let n_giants = diagonals.list().len() as f64 / diagonals.n_sums().max(1) as f64;
        let term = |term: &TermNoise| TermNoise { rotated_energy: term.weight_energy, ..*term };
        self.worse(&Self { terms: self.terms.iter().map(term).collect(), n_giants, ..*self })
    }

    /// What happens to the sums adds: over the square of the result's scale.
    pub fn summed(&self, model: &NoiseModel, level: Level) -> f64 {
        let key = model.key_switch(level);
        let sum = self.sum_gain() * (self.n_giants * key + model.mod_down()) + self.n_apart() * key;
        self.copies() * sum + (self.copies() - 1.0) * key
    }
}

impl NoiseModel {
    /// A linear map with hoisted baby steps and delayed division by P, at `level`: variance of a slot of the result that is
    /// computed from these rows.
    pub fn linear(&self, operands: &[OperandNoise], level: Level, map: &LinearNoise) -> f64 {
        let added = |(operand, term): (&OperandNoise, &TermNoise)| {
            let OperandNoise { noise, message, weight_scale, row } = operand;
            let weight = weight_scale * weight_scale;
            let noisy = Row { squares: row.reads * noise, ..*row };
            let rounding = map.rounding(term, row, *message) + map.rounding(term, &noisy, *noise);
            rounding + (noise * map.carried(term, row) + map.hoisted(term, row, self, level)) * weight
        };
        operands.iter().zip(&map.terms).map(added).sum::<f64>() + map.summed(self, level)
    }
}
