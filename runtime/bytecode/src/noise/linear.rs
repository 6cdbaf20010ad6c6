//! Noise of linear maps: the one formula that schedules, simulations and tests against real encryption share.
//!
//! What a map adds falls into three parts, each at a scale of its own: weights round at the weight scale, rotated inputs
//! carry the noise of their keys at the scale of the input, and everything that happens to the sums (giant steps, the
//! division by P, conjugations, folds) adds at the scale of the result. The last part is the same in every number of the
//! result; the first two depend on what the number is computed from, its [`Row`].

use std::ops::Add;
use std::sync::Arc;

use super::{Noise, NoiseModel, REAL_ENCODING};
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
#[derive(Clone, Debug, Default, PartialEq)]
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
    /// What complex sums let in; nothing where there are none.
    pub shares: Arc<Shares>,
}

impl TermNoise {
    /// Squared weights that share complex sums with the rows that a result depends on, where noise in every channel does so
    /// much to it; the mean over all rows where it does nothing in any.
    pub fn shared(&self, gains: &[f64]) -> f64 {
        let channels = &self.shares.channels;
        let total: f64 = gains.iter().sum();
        if total > 0.0 && gains.len() == channels.len() {
            return channels.iter().zip(gains).map(|(share, gain)| share.other * gain / total).sum();
        }
        channels.iter().map(|share| share.other).sum::<f64>() / channels.len().max(1) as f64
    }

    /// The same of one number of the result.
    pub fn shared_by(&self, number: usize) -> f64 {
        self.shares.numbers.get(number).map_or(0.0, |share| share.other)
    }
}

/// What the numbers of a result have of each other in complex sums, and the mean over each of its channels.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shares {
    numbers: Arc<[Share]>,
    channels: Vec<Share>,
}

impl Shares {
    fn new(numbers: Arc<[Share]>, output: &Layout) -> Self {
        let shape = output.shape();
        let (size, n_channels) = ((shape.height * shape.width) as usize, shape.channels as usize);
        let mut channels = vec![Share::default(); n_channels];
        let weight = ((output.members() * size) as f64).recip();
        for (place, share) in numbers.chunks(size.max(1)).enumerate() {
            let channel = &mut channels[place % n_channels];
            channel.own += weight * share.iter().map(|share| share.own).sum::<f64>();
            channel.other += weight * share.iter().map(|share| share.other).sum::<f64>();
        }
        Self { numbers, channels }
    }
}

/// What a number of the result is computed from in one term, or the mean over such rows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Row {
    /// Sum of its squared weights.
    pub weight_energy: f64,
    /// Sum of those that it shares complex sums with.
    pub shared_energy: f64,
    /// Numbers of the operand that have a weight in it.
    pub reads: f64,
    /// Sum of their squares.
    pub squares: f64,
}

impl Row {
    /// The mean over all rows of a term; what it reads is like the whole operand.
    pub fn mean(term: &TermNoise) -> Self {
        Self { weight_energy: term.weight_energy, shared_energy: term.shared(&[]), ..Self::default() }
    }

    /// Factor on what complex noise of the operand becomes in a complex sum, over what its real part alone becomes.
    pub fn leak(&self) -> f64 {
        // Where nothing is read nothing is carried.
        if self.weight_energy > 0.0 { 1.0 + self.shared_energy / self.weight_energy } else { 1.0 }
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
            let shares = shares.into_iter().map(|numbers| Arc::new(Shares::new(numbers, output)));
            terms.iter_mut().zip(shares).for_each(|(term, shares)| term.shares = shares);
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
    pub fn rounding(&self, term: &TermNoise, row: &Row, mean: f64) -> Noise {
        let slots = self.copies() * self.sum_gain() * term.encoded_slots * self.encoding();
        Noise::real(slots * row.message(term, mean))
    }

    /// Variance of either part of a sum from the rounding of a diagonal, per slot of its period: a real vector's is real, a
    /// complex one's is shared by both parts.
    fn encoding(&self) -> f64 {
        match self.pairing {
            Pairing::None => REAL_ENCODING,
            Pairing::Outputs | Pairing::Halves => REAL_ENCODING / 2.0,
        }
    }

    /// What complex noise of the operand becomes: complex weights let its imaginary part in as well, by the weights of those
    /// that the row shares a sum with.
    pub fn carried(&self, row: &Row) -> Noise {
        self.of_operands(row.weight_energy + row.shared_energy)
    }

    /// What the keys of hoisted rotations add: over the square of the operand's scale. All weights of a row may be on rotated
    /// inputs, whatever their share in the map.
    pub fn hoisted(&self, term: &TermNoise, row: &Row, model: &NoiseModel, level: Level) -> Noise {
        match term.rotated_energy > 0.0 {
            true => self.carried(row) * model.key_switch_product(level),
            false => Noise::default(),
        }
    }

    /// The noisier of two ways to evaluate a map, part by part.
    #[must_use]
    pub fn worse(&self, other: &Self) -> Self {
        let term = |(a, b): (&TermNoise, &TermNoise)| TermNoise {
            rotated_energy: a.rotated_energy.max(b.rotated_energy),
            encoded_slots: a.encoded_slots.max(b.encoded_slots),
            ..a.clone()
        };
        Self {
            terms: self.terms.iter().zip(&other.terms).map(term).collect(),
            n_giants: self.n_giants.max(other.n_giants),
            ..self.clone()
        }
    }

    /// As noisy as any plan could make it: every rotation is one of the operand and one of a sum.
    #[must_use]
    pub fn under_any_plan(&self, diagonals: &Diagonals) -> Self {
        let n_giants = diagonals.list().len() as f64 / diagonals.n_sums().max(1) as f64;
        let term = |term: &TermNoise| TermNoise { rotated_energy: term.weight_energy, ..term.clone() };
        self.worse(&Self { terms: self.terms.iter().map(term).collect(), n_giants, ..self.clone() })
    }

    /// What happens to the sums adds: over the square of the result's scale.
    ///
    /// Taking complex sums apart leaves the real part of what came before; the division by P is the last step.
    pub fn summed(&self, model: &NoiseModel, level: Level) -> Noise {
        let key = model.key_switch(level);
        let giants = self.copies() * self.sum_gain() * self.n_giants * key;
        let after = (self.copies() * self.n_apart() + self.copies() - 1.0) * key + model.mod_down();
        self.of_operands(giants) + Noise::complex(after)
    }

    /// Noise that is in the sums before they are taken apart.
    fn of_operands(&self, variance: f64) -> Noise {
        match self.pairing {
            Pairing::None => Noise::complex(variance),
            Pairing::Outputs | Pairing::Halves => Noise::real(variance),
        }
    }
}

impl NoiseModel {
    /// A linear map with hoisted baby steps and delayed division by P, at `level`: variance of a slot of the result that is
    /// computed from these rows, where the noise of operands is complex.
    pub fn linear(&self, operands: &[OperandNoise], level: Level, map: &LinearNoise) -> Noise {
        let added = |(operand, term): (&OperandNoise, &TermNoise)| {
            let OperandNoise { noise, message, weight_scale, row } = operand;
            let weight = weight_scale * weight_scale;
            let noisy = Row { squares: row.reads * noise, ..*row };
            let rounding = map.rounding(term, row, *message) + map.rounding(term, &noisy, *noise);
            rounding + (map.carried(row) * *noise + map.hoisted(term, row, self, level)) * weight
        };
        operands.iter().zip(&map.terms).map(added).fold(map.summed(self, level), Noise::add)
    }
}
