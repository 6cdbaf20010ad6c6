//! The predicted error of a schedule.
//!
//! Every operation adds noise to its value, and the gain of the value says what that noise does to the result. A
//! contribution is kept as an amount over the square of a scale, so that scales can be chosen to balance them.

use fhe_bytecode::noise::{LinearNoise, Noise, NoiseModel, Reach, Row, TermNoise};
use fhe_bytecode::{ExpandedPlan, Layout, Level, Pairing, PlanCounts};

use super::chain::Chain;
use crate::layout::{Part, Placed, PlacedMap, PlacedTerm};
use crate::lower::{Circuit, CircuitOp, Map, ValueId};
use crate::measure::Moments;
use crate::timed::Rung;

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
    /// Variance of a number of the value at scale one, over the mean square of what it is part of.
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
    sources: Vec<Source>,
    noise: LinearNoise,
    /// Whether numbers of the result read different copies of the operands.
    reads_copies: bool,
    counts: PlanCounts,
}

/// An operand of a map.
#[derive(Clone, Copy, Debug)]
struct Source {
    value: ValueId,
    /// Whether every number of the result comes from one number of the operand, the one at its place.
    in_place: bool,
    /// Of the rows of the result, those that read this summand: parts of the lanes of a value are summands of their own.
    share: f64,
}

impl MapFacts {
    /// The facts of a map to a layout under a plan.
    #[must_use]
    pub fn new(value: ValueId, map: &PlacedMap, output: &Layout, plan: &ExpandedPlan) -> Self {
        let n_parts = |term: &PlacedTerm| {
            let parts = map.terms.iter().filter(|other| other.source == term.source);
            parts.map(|other| other.part + 1).max().unwrap_or(1)
        };
        let source = |term: &PlacedTerm| Source {
            value: term.source,
            in_place: term.in_place(),
            share: f64::from(n_parts(term)).recip(),
        };
        Self {
            value,
            sources: map.terms.iter().map(source).collect(),
            noise: LinearNoise::new(&map.diagonals, plan, output),
            reads_copies: map.diagonals.input_period() < map.diagonals.period(),
            counts: plan.counts(),
        }
    }

    /// The same with noise that covers that of another plan as well.
    #[must_use]
    pub fn covering(self, other: &Self) -> Self {
        Self { noise: self.noise.worse(&other.noise), ..self }
    }

    /// The same with noise that covers that of every plan.
    #[must_use]
    pub fn under_any_plan(self, map: &PlacedMap) -> Self {
        Self { noise: self.noise.under_any_plan(&map.diagonals), ..self }
    }

    /// The row of a summand that the result depends on; the mean over those that read it and those that do not.
    fn acting(&self, moments: &Moments, source: &Source, term: &TermNoise) -> Row {
        let row = moments.row(self.value, source.value, source.in_place);
        let shared_energy = term.shared(moments.channels(self.value));
        let of_all = |row: Row| Row { weight_energy: source.share * row.weight_energy, shared_energy, ..row };
        row.map_or_else(|| Row::mean(term), of_all)
    }

    /// Steps of the plan.
    #[must_use]
    pub fn counts(&self) -> &PlanCounts {
        &self.counts
    }

    /// The values that the map reads.
    pub fn sources(&self) -> impl Iterator<Item = ValueId> {
        self.sources.iter().map(|source| source.value)
    }

    /// The value that the map belongs to.
    #[must_use]
    pub fn value(&self) -> ValueId {
        self.value
    }
}

/// What is assumed of the noise in copies of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copies {
    /// The same, as gains have it.
    Alike,
    /// Whichever is worse, the same or each its own. Every copy has noise of its own, so where the ways of a number to the
    /// result cancel, those of its noise do not.
    Worst,
}

/// Everything that moves the result.
///
/// `levels` has the level of every rung: how many towers there are when a key is switched. The input is the sum of
/// `n_encryptions` fresh ciphertexts.
#[must_use]
pub fn contributions(
    placed: &Placed,
    facts: &[MapFacts],
    levels: &[Level],
    moments: &Moments,
    copies: Copies,
    model: &NoiseModel,
    n_encryptions: usize,
) -> Vec<Contribution> {
    let (circuit, timed) = (placed.circuit(), &placed.timed);
    let sizes = sizes(circuit, moments);
    let mut sum = Sum { moments, sizes, reach: reach(placed, facts, moments, copies), all: Vec::new() };
    let level = |rung: Rung| levels[rung.index()];
    for id in circuit.ids() {
        let (value, time) = (placed.value(id), timed.time(id));
        let position = time.position;
        match &circuit.value(id).op {
            CircuitOp::Input => {
                let fresh = model.at(level(time.rung)).fresh();
                sum.push(id, Anchor::After(0), Noise::complex(n_encryptions as f64 * fresh));
            }
            CircuitOp::Product(_) => {
                let working = level(time.working);
                let key = model.at(working).key_switch(working);
                sum.push(id, Anchor::Before(position), Noise::complex(key));
            }
            CircuitOp::Affine(_) => {}
        }
        // An operand that is ready early is dropped to the level it is read at, on the way to this value only.
        let dropped = |source: ValueId| model.drop(level(timed.time(source).rung), level(time.working));
        for part in &value.parts {
            if let Part::Plain { source, .. } | Part::Scalar { source } = part {
                let factor = sum.row(id, *source, true).map_or(1.0, |row| row.weight_energy);
                let dropped = Noise::complex(factor * dropped(*source));
                sum.push(id, Anchor::After(timed.position(*source)), dropped);
            }
            let (source, rounding) = match part {
                Part::Plain { source, .. } => (*source, model.encode(value.layout.period())),
                // One rounding for all numbers: in the worst case they all move the result the same way.
                Part::Scalar { source } => {
                    let n_numbers = circuit.value(id).shape.len();
                    (*source, model.round_scalar() * n_numbers as f64)
                }
                Part::Map(_) => continue,
            };
            let anchor = Anchor::Weight { from: timed.position(source), to: position };
            sum.push_in_place(id, source, anchor, rounding);
        }
        if placed.is_rescaled(id) {
            sum.push(id, Anchor::After(position), Noise::complex(model.rescale_from(level(time.working))));
        }
        if value.bias.is_some() {
            let rounding = model.encode(value.layout.period());
            sum.push(id, Anchor::After(position), Noise::real(rounding));
        }
    }
    for map in facts {
        let time = timed.time(map.value);
        let (to, rung_level) = (time.position, &level);
        let level = rung_level(time.working);
        let own = model.at(level);
        for (source, term) in map.sources.iter().zip(&map.noise.terms) {
            let (from, energy) = (timed.position(source.value), moments.energy[source.value.index()]);
            let mean = Row::mean(term);
            let row = map.acting(moments, source, term);
            let [usual, acting] = [mean, row].map(|row| map.noise.rounding(term, &row, energy));
            sum.push_acting(map.value, Anchor::Weight { from, to }, usual, acting);
            let dropped = model.drop(rung_level(timed.time(source.value).rung), level);
            let moved =
                |row: &Row| map.noise.hoisted(term, row, own, level) + map.noise.carried(row) * dropped;
            sum.push_acting(map.value, Anchor::After(from), moved(&mean), moved(&row));
        }
        sum.push(map.value, Anchor::Before(to), map.noise.summed(own, level));
    }
    sum.all
}

struct Sum<'a> {
    moments: &'a Moments,
    /// What noise in every value is measured against.
    sizes: Vec<f64>,
    reach: Vec<Reach>,
    all: Vec<Contribution>,
}

impl Sum<'_> {
    /// The row of a summand that the result depends on.
    fn row(&self, value: ValueId, source: ValueId, in_place: bool) -> Option<Row> {
        self.moments.row(value, source, in_place)
    }

    /// Noise of a variance in every number of a value.
    fn push(&mut self, value: ValueId, anchor: Anchor, variance: Noise) {
        self.push_acting(value, anchor, variance, variance);
    }

    /// Noise of a mean variance in the numbers of a value, and of another one where it acts on the result.
    fn push_acting(&mut self, value: ValueId, anchor: Anchor, mean: Noise, acting: Noise) {
        let (gain, size) = (self.moments.gain[value.index()], self.sizes[value.index()]);
        // Noise in what is always zero is noise in what it becomes part of.
        let local = if size > 0.0 { mean.total() / size } else { 0.0 };
        let amount = gain * acting.reaching(self.reach[value.index()]);
        self.all.push(Contribution { value, anchor, local, amount });
    }

    /// Noise in proportion to the number of the source at the same place. Where numbers are large, results often depend on
    /// them most.
    fn push_in_place(&mut self, value: ValueId, source: ValueId, anchor: Anchor, rounding: f64) {
        let energy = self.moments.energy[source.index()];
        let acting = self.row(value, source, true).map_or(energy, |row| row.squares);
        let [usual, acting] = [energy, acting].map(|square| Noise::real(rounding * square));
        self.push_acting(value, anchor, usual, acting);
    }
}

/// The mean square that noise in every value is measured against: its own, or that of a larger sum it is added to. A small
/// summand may be noisy; only what is squared must not be, or noise no longer acts linearly. So noise is also measured against
/// the factors of products that it is carried to: a sum may cancel what is large in its operands, but not their noise.
fn sizes(circuit: &Circuit, moments: &Moments) -> Vec<f64> {
    let energy = &moments.energy;
    let mut sizes: Vec<f64> = vec![f64::INFINITY; circuit.values.len()];
    // Of the factors that noise is carried to, over what it has become there.
    let mut carried = sizes.clone();
    let lower = |of: &mut [f64], id: ValueId, to: f64| of[id.index()] = to.min(of[id.index()]);
    for id in circuit.ids().rev() {
        let own = sizes[id.index()];
        let own = if own.is_finite() { own.max(energy[id.index()]) } else { energy[id.index()] };
        let (own, carried_on) = (own.min(carried[id.index()]), carried[id.index()]);
        sizes[id.index()] = own;
        match &circuit.value(id).op {
            CircuitOp::Input => {}
            CircuitOp::Affine(affine) => {
                for term in &affine.terms {
                    let is_same = matches!(term.map, Map::Identity);
                    lower(&mut sizes, term.source, if is_same { own } else { energy[term.source.index()] });
                    let weights = moments.weights(id, term.source, !matches!(term.map, Map::Conv(_)));
                    if weights > 0.0 {
                        lower(&mut carried, term.source, carried_on / weights);
                    }
                }
            }
            CircuitOp::Product([a, b]) => {
                for (factor, other) in [(*a, *b), (*b, *a)] {
                    let other = energy[other.index()];
                    let size = if a != b && other > 0.0 { own / other } else { energy[factor.index()] };
                    lower(&mut sizes, factor, size);
                    let most = if other > 0.0 { size.min(carried_on / other) } else { size };
                    lower(&mut carried, factor, most);
                }
            }
        }
    }
    sizes
}

/// What noise in every value becomes beside what gains tell: a map with complex diagonals adds the imaginary part of the noise
/// to the real results and leaves none behind; and one that reads several copies of a number reads as many noises.
fn reach(placed: &Placed, facts: &[MapFacts], moments: &Moments, copies: Copies) -> Vec<Reach> {
    let circuit = placed.circuit();
    let mut reach = vec![Reach::PLAIN; circuit.values.len()];
    let mut facts = facts.iter().rev().peekable();
    for id in circuit.ids().rev() {
        let own = reach[id.index()];
        let mut raise = |source: ValueId, to: Reach| reach[source.index()] = to.max(reach[source.index()]);
        if let CircuitOp::Product(factors) = &circuit.value(id).op {
            factors.iter().for_each(|&f| raise(f, own));
        }
        for part in &placed.value(id).parts {
            if let Part::Scalar { source } | Part::Plain { source, .. } = part {
                raise(*source, own);
            }
        }
        while let Some(map) = facts.next_if(|map| map.value == id) {
            for (source, term) in map.sources.iter().zip(&map.noise.terms) {
                let row = map.acting(moments, source, term);
                let through = match map.noise.pairing {
                    Pairing::None => own,
                    Pairing::Outputs | Pairing::Halves => {
                        Reach { real: own.real, complex: own.real * row.leak() }
                    }
                };
                raise(source.value, through);
                let gain = |id: ValueId| moments.gain[id.index()];
                if copies == Copies::Worst && map.reads_copies && gain(source.value) > 0.0 {
                    let apart = gain(id) * row.weight_energy / source.share / gain(source.value);
                    raise(
                        source.value,
                        Reach { real: through.real * apart, complex: through.complex * apart },
                    );
                }
            }
        }
    }
    reach
}
