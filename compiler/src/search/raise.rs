//! Larger scales where they are missing.
//!
//! Some scales follow from others: that of a product from its factors, that of a factor beside a product from both. What is
//! too noisy there is mended by raising the scale it comes from.

use super::balance::MAX_LOCAL_BITS;
use super::candidate::Candidate;
use crate::schedule::Sizes;
use crate::schedule::noise::Anchor;
use crate::timed::{Positions, Step};

/// Most bits by which a scale grows at a time.
const MOST_BITS: f64 = 4.0;
/// Bits by which all scales grow where nothing stands out.
const LEAST_BITS: f64 = 0.1;

/// The sizes of a candidate that is too noisy, raised where its noise arises.
pub(super) fn raised(positions: &Positions, found: &Candidate, target: f64) -> Sizes {
    let variances: Vec<f64> = found.contributions.iter().map(|c| c.variance(&found.chain)).collect();
    let total: f64 = variances.iter().sum();
    // Those that matter share what is allowed.
    let share = target / variances.len().max(1) as f64;
    let n_large = variances.iter().filter(|v| **v > share).count().max(1) as f64;
    let mut growth = Growth::new(positions);
    for (contribution, variance) in found.contributions.iter().zip(&variances) {
        let local = 0.5 * (contribution.local_variance(&found.chain).log2() - MAX_LOCAL_BITS);
        let excess = if total > target { 0.5 * (2.0 * variance * n_large / target).log2() } else { 0.0 };
        let bits = local.max(excess).min(MOST_BITS);
        if bits > 0.0 {
            growth.at(contribution.anchor, bits);
        }
    }
    growth.applied(&found.sizes)
}

/// Bits by which every size grows.
struct Growth<'a> {
    positions: &'a Positions,
    input: f64,
    activations: Vec<f64>,
    weights: Vec<f64>,
}

impl<'a> Growth<'a> {
    fn new(positions: &'a Positions) -> Self {
        Self {
            positions,
            input: LEAST_BITS,
            activations: vec![LEAST_BITS; positions.n_rescales() as usize],
            weights: vec![LEAST_BITS; positions.depth() as usize],
        }
    }

    fn at(&mut self, anchor: Anchor, bits: f64) {
        match anchor {
            Anchor::After(position) => self.after(position, bits),
            Anchor::Before(position) => self.before(position, bits),
            Anchor::Weight { to, .. } => match self.positions.step(to) {
                Step::Linear => self.before(to, bits),
                Step::Product => self.after(to - 1, bits),
            },
        }
    }

    /// A larger scale after the rescale of a position.
    fn after(&mut self, position: u32, bits: f64) {
        if position == 0 {
            self.input = self.input.max(bits);
        } else if self.positions.is_boundary(position) {
            let rescale = self.activations.len() - 1 - self.positions.rung(position).index();
            self.activations[rescale] = self.activations[rescale].max(bits);
        } else {
            self.before(position, bits);
        }
    }

    /// A larger scale before the rescale of a position.
    fn before(&mut self, position: u32, bits: f64) {
        match self.positions.step(position) {
            Step::Linear => {
                let weight = &mut self.weights[position as usize - 1];
                *weight = weight.max(bits);
            }
            Step::Product => self.after(position - 1, bits / 2.0),
        }
    }

    fn applied(self, sizes: &Sizes) -> Sizes {
        let sum = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a + b).collect();
        Sizes {
            input: sizes.input + self.input,
            activations: sum(&sizes.activations, &self.activations),
            weights: sum(&sizes.weights, &self.weights),
            ..sizes.clone()
        }
    }
}
