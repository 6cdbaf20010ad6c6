//! The predicted error of a schedule.
//!
//! Every operation adds noise to its value, and the gain of the value says what that noise does to the result. A
//! contribution is kept as an amount over the square of a scale, so that scales can be chosen to balance them.

use fhe_bytecode::noise::NoiseModel;
use fhe_bytecode::{DiagonalId, Pairing, PlanCounts};

use super::chain::Chain;
use super::positions::Positions;
use super::stats::Stats;
use crate::layout::{Part, Placed, PlacedMap};
use crate::lower::{CircuitOp, ValueId};

/// The scale that a contribution is measured against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// That of a position after its rescale.
    After(u32),
    /// That of a position before its rescale.
    Before(u32),
    /// That of the weights of a map from a position to another.
    Weight {
        /// Position of the operand.
        from: u32,
        /// Position of the result.
        to: u32,
    },
}

/// Variance of a result: `amount` over the square of a scale.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Contribution {
    /// The value that the noise arises in.
    pub value: ValueId,
    /// The scale.
    pub anchor: Anchor,
    /// Variance of a number of the value at scale one, over its mean square.
    pub local: f64,
    /// Variance of a result at scale one.
    pub amount: f64,
}

impl Contribution {
    /// The variance of a result under the scales of a chain.
    #[must_use]
    pub fn variance(&self, chain: &Chain) -> f64 {
        self.amount / self.squared_scale(chain)
    }

    /// The noise-to-signal ratio in the value itself. Gains hold only while this is small.
    #[must_use]
    pub fn local_variance(&self, chain: &Chain) -> f64 {
        self.local / self.squared_scale(chain)
    }

    fn squared_scale(&self, chain: &Chain) -> f64 {
        let scale = match self.anchor {
            Anchor::After(position) => chain.scale(position),
            Anchor::Before(position) => chain.raw(position),
            Anchor::Weight { from, to } => chain.raw(to).over(chain.scale(from)),
        };
        scale.value() * scale.value()
    }
}

/// What the noise model needs to know of a linear map; computed once, whatever the parameters.
#[derive(Clone, Debug)]
pub struct MapFacts {
    value: ValueId,
    terms: Vec<TermFacts>,
    n_folds: usize,
    counts: PlanCounts,
}

#[derive(Clone, Debug)]
struct TermFacts {
    source: ValueId,
    /// Slots encoded per output ciphertext.
    encoded_slots: f64,
    /// Sum of the squared weights behind a number of the output, those of rotated operands.
    rotated_energy: f64,
}

impl MapFacts {
    /// The facts of a map to so many numbers with a plan of these counts.
    #[must_use]
    pub fn new(value: ValueId, map: &PlacedMap, n_numbers: usize, counts: PlanCounts) -> Self {
        let diagonals = &map.diagonals;
        let n_outputs = diagonals.n_outputs().max(1) as f64;
        // Gaps and spare slots have no weights: the energy belongs to the numbers of the output alone.
        let per_number = diagonals.period() as f64 / n_numbers.max(1) as f64;
        let mut terms: Vec<TermFacts> = map
            .sources
            .iter()
            .map(|&source| TermFacts { source, encoded_slots: 0.0, rotated_energy: 0.0 })
            .collect();
        let pairing = diagonals.pairing();
        let slots = pairing.rounding_gain() * diagonals.period() as f64 / n_outputs;
        let ids: Vec<DiagonalId> = (0..diagonals.list().len() as u32).map(DiagonalId).collect();
        for of_sum in ids.chunk_by(|a, b| diagonals.list()[a.index()].sum == diagonals.list()[b.index()].sum)
        {
            for (index, term) in terms.iter_mut().enumerate() {
                let of_term = of_sum.iter().copied().filter(|&id| diagonals.term(id) == index);
                term.encoded_slots += slots * diagonals.roundings(of_term);
            }
        }
        for (&id, diagonal) in ids.iter().zip(diagonals.list()) {
            let term = &mut terms[diagonals.term(id)];
            if !diagonal.rotation.is_zero() {
                term.rotated_energy += pairing.noise_gain() * diagonals.energy(id) * per_number;
            }
        }
        Self { value, terms, n_folds: diagonals.folds().len(), counts }
    }

    /// Steps of the plan.
    #[must_use]
    pub fn counts(&self) -> &PlanCounts {
        &self.counts
    }

    /// The value that the map belongs to.
    #[must_use]
    pub fn value(&self) -> ValueId {
        self.value
    }
}

/// Everything that moves the result.
#[must_use]
pub fn contributions(
    placed: &Placed,
    facts: &[MapFacts],
    positions: &Positions,
    stats: &Stats,
    model: &NoiseModel,
) -> Vec<Contribution> {
    let leaks = leaks(placed);
    let mut all = Vec::new();
    let mut push = |value: ValueId, anchor, amount: f64| {
        let (gain, energy) = (stats.gain[value.index()], stats.energy[value.index()]);
        let local = amount / energy.max(f64::MIN_POSITIVE);
        all.push(Contribution { value, anchor, local, amount: amount * gain * leaks[value.index()] });
    };
    for id in placed.circuit.ids() {
        let position = positions.of(id);
        let level = positions.working_level(position);
        match &placed.circuit.value(id).op {
            CircuitOp::Input => push(id, Anchor::After(0), model.fresh()),
            CircuitOp::Product(_) => push(id, Anchor::Before(position), model.key_switch(level)),
            CircuitOp::Affine(_) => {}
        }
        for part in &placed.parts[id.index()] {
            if let Part::Plain { source, .. } = part {
                let slots = placed.layouts[id.index()].period();
                let anchor = Anchor::Weight { from: positions.of(*source), to: position };
                push(id, anchor, stats.energy[source.index()] * model.encode(slots));
            }
        }
        if positions.is_boundary(position) && rescales(placed, id) {
            push(id, Anchor::After(position), model.rescale_rounding());
        }
    }
    for map in facts {
        let to = positions.of(map.value);
        let level = positions.working_level(to);
        let copies = (map.n_folds as f64).exp2();
        let key = model.key_switch_product(level);
        for term in &map.terms {
            let from = positions.of(term.source);
            let encode = model.encode(1) * term.encoded_slots;
            push(map.value, Anchor::Weight { from, to }, copies * encode * stats.energy[term.source.index()]);
            push(map.value, Anchor::After(from), key * term.rotated_energy);
        }
        let per_output = map.counts.giants as f64 / map.counts.outputs.max(1) as f64;
        let giants = per_output * model.key_switch(level) + model.mod_down();
        push(map.value, Anchor::Before(to), copies * giants + (copies - 1.0) * model.key_switch(level));
    }
    all
}

/// Factor on the variance of noise in every value: a map with complex diagonals adds the imaginary part of the noise to
/// the real results and leaves none behind.
fn leaks(placed: &Placed) -> Vec<f64> {
    let mut leaks = vec![1.0; placed.circuit.values.len()];
    for id in placed.circuit.ids().rev() {
        let own: f64 = leaks[id.index()];
        let mut raise = |source: ValueId, to: f64| leaks[source.index()] = to.max(leaks[source.index()]);
        if let CircuitOp::Product(factors) = &placed.circuit.value(id).op {
            factors.iter().for_each(|&f| raise(f, own));
        }
        for part in &placed.parts[id.index()] {
            match part {
                Part::Map(map) if map.diagonals.pairing() == Pairing::None => {
                    map.sources.iter().for_each(|&s| raise(s, own));
                }
                Part::Map(map) => map.sources.iter().for_each(|&s| raise(s, Pairing::Halves.noise_gain())),
                Part::Scalar { source } | Part::Plain { source, .. } => raise(*source, own),
            }
        }
    }
    leaks
}

/// Whether a value at a boundary is rescaled itself: it is a product or has a summand that is.
#[must_use]
pub fn rescales(placed: &Placed, id: ValueId) -> bool {
    matches!(placed.circuit.value(id).op, CircuitOp::Product(_)) || !placed.parts[id.index()].is_empty()
}
