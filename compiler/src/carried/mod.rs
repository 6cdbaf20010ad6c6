//! What noise in every slot does to one score: the bound of a program, followed number by number and copy by copy.
//!
//! A value is in many slots, several copies of every number, and every slot has noise of its own. Gains are measured on
//! numbers: they hold where noise in all copies of a number is the same, and what becomes of copies that differ depends on
//! which of them every instruction reads. So a program is walked back from one score to its input, with what the score gains
//! by every slot on the way, and every instruction adds its noise where it arises. That is exact to first order. It takes as
//! long as an evaluation in the clear along the diagonals of every map.
//!
//! Noise that repeats with a plaintext is alike in copies, all other noise is not. Both parts of a slot are followed, since
//! complex sums let imaginary parts of noise into real results.

mod map;
mod slots;

use std::collections::{BTreeMap, BTreeSet};

use fhe_bytecode::check::Step;
use fhe_bytecode::clear::{ClearProgram, Event, Hook, InputError};
use fhe_bytecode::noise::NoiseModel;
use fhe_bytecode::{CtId, Kind, Level, Numbers, Pair};

use self::map::{Operand, Placed};
use self::slots::Slots;

/// A ciphertext: the instruction that it is a result of, and its place among the results.
type Place = (usize, usize);

/// A program made ready to be walked back.
pub(crate) struct Carried<'a> {
    clear: ClearProgram<'a>,
    model: NoiseModel,
    steps: Vec<Step<'a>>,
    /// What every instruction reads, operand by operand.
    sources: Vec<Vec<Vec<Place>>>,
}

/// What is in the slots of the results that are multiplied.
pub(crate) struct Evaluated(BTreeMap<usize, Vec<Vec<f64>>>);

impl Hook for Evaluated {
    fn result(&mut self, event: Event<'_>, cts: &mut [Vec<f64>]) {
        if let Some(numbers) = self.0.get_mut(&event.instruction) {
            *numbers = cts.to_vec();
        }
    }
}

impl<'a> Carried<'a> {
    pub(crate) fn new(program: &'a fhe_bytecode::CheckedProgram) -> Self {
        let steps: Vec<Step<'a>> = program.steps().collect();
        let mut held: BTreeMap<CtId, Place> = BTreeMap::new();
        let mut sources = Vec::with_capacity(steps.len());
        for step in &steps {
            let ranges = step.op().sources().into_iter();
            sources.push(ranges.map(|range| range.iter().map(|ct| held[&ct]).collect()).collect());
            let defined = step.op().dst().into_iter().flat_map(|dst| dst.iter());
            held.extend(defined.enumerate().map(|(place, ct)| (ct, (step.index, place))));
        }
        Self { clear: ClearProgram::new(program), model: NoiseModel::new(program.params()), steps, sources }
    }

    /// Products of slots and diagonals on the way back from one score.
    pub(crate) fn work(&self) -> f64 {
        let of_step = |step: &Step<'_>| match (step.op().kind(), step.result) {
            (Kind::Map(map), Some(fact)) => {
                let terms = self.clear.program().map(map).plan.groups.iter().map(|group| group.terms.len());
                (terms.sum::<usize>() * self.n_slots(fact.level)) as f64
            }
            (_, Some(fact)) => self.n_slots(fact.level) as f64,
            (_, None) => 0.0,
        };
        self.steps.iter().map(of_step).sum()
    }

    /// Numbers that are held on the way.
    pub(crate) fn numbers(&self) -> usize {
        let of_result = |index: usize| {
            let layout = self.steps[index].result.map(|fact| self.clear.program().layout(fact.layout));
            layout.map_or(0, |layout| layout.n_cts() * layout.slots())
        };
        let of_step = |step: &Step<'_>| match step.op().kind() {
            Kind::Map(map) => {
                let plan = &self.clear.program().map(map).plan;
                let n_slots = step.result.map_or(0, |fact| self.n_slots(fact.level));
                2 * plan.babies.len() * n_slots * self.sources[step.index].iter().map(Vec::len).sum::<usize>()
            }
            _ => 0,
        };
        let multiplied: BTreeSet<usize> = self.multiplied().collect();
        let largest_map = self.steps.iter().map(of_step).max().unwrap_or(0);
        multiplied.into_iter().map(of_result).sum::<usize>() + largest_map
    }

    /// The instructions whose results are multiplied, perhaps several times.
    fn multiplied(&self) -> impl Iterator<Item = usize> {
        let is_product = |step: &&Step<'_>| match step.op().kind() {
            Kind::Map(_) | Kind::Product | Kind::PlainProduct(_) | Kind::ScalarProduct => true,
            Kind::Input | Kind::PlainSum(_) | Kind::Rescale | Kind::Drop | Kind::Exact | Kind::End => false,
        };
        let sources = self.steps.iter().filter(is_product).flat_map(|step| &self.sources[step.index]);
        sources.flatten().map(|(index, _)| *index)
    }

    /// The program on an input.
    ///
    /// # Errors
    /// When the input does not fit the program.
    pub(crate) fn evaluated(&self, input: &[f64]) -> Result<Evaluated, InputError> {
        let mut evaluated = Evaluated(self.multiplied().map(|index| (index, Vec::new())).collect());
        self.clear.run(input, &mut evaluated)?;
        Ok(evaluated)
    }

    /// Variance of the error of a score.
    pub(crate) fn variance(&self, evaluated: &Evaluated, score: usize) -> f64 {
        self.back(evaluated, score, &mut |_, _| ())
    }

    /// The same; `seen` is told what the score gains by the slots of every result.
    fn back(&self, evaluated: &Evaluated, score: usize, seen: &mut dyn FnMut(usize, &[Slots])) -> f64 {
        let mut gains: BTreeMap<usize, Vec<Slots>> = BTreeMap::new();
        let mut variance = 0.0;
        for step in self.steps.iter().rev() {
            if let Numbers::Output = step.op().numbers() {
                let of_output = self.seeded(step, score);
                self.reach(&mut gains, &self.sources[step.index][0], of_output);
            }
            let Some(own) = gains.remove(&step.index) else { continue };
            seen(step.index, &own);
            variance += self.through(step, own, evaluated, &mut gains);
        }
        variance
    }

    fn n_slots(&self, level: Level) -> usize {
        self.clear.program().params().at(level).slots()
    }

    /// A score is read from one slot.
    fn seeded(&self, step: &Step<'_>, score: usize) -> Vec<Slots> {
        let layout = self.clear.program().output_layout();
        let mut tensor = vec![0.0; layout.shape().len() * layout.members()];
        tensor[score] = 1.0;
        let one = |ct: Vec<f64>| {
            let mut slots = Slots::zeros(self.n_slots(step.level()));
            if let Some(slot) = ct.iter().position(|x| *x != 0.0) {
                slots.re[slot] = 1.0;
            }
            slots
        };
        layout.scatter(&tensor).into_iter().map(one).collect()
    }

    /// Adds to what the score gains by some ciphertexts.
    fn reach(&self, gains: &mut BTreeMap<usize, Vec<Slots>>, places: &[Place], by: Vec<Slots>) {
        for (&(index, place), slots) in places.iter().zip(by) {
            let Some(fact) = self.steps[index].result else { continue };
            let n = self.n_slots(fact.level);
            let n_cts = self.clear.program().layout(fact.layout).n_cts();
            let all = gains.entry(index).or_insert_with(|| vec![Slots::zeros(n); n_cts]);
            all[place].add_moved(&slots.spread(n), 0);
        }
    }

    /// Variance from what an instruction adds; its sources gain what is gained by its result.
    fn through(
        &self,
        step: &Step<'_>,
        own: Vec<Slots>,
        evaluated: &Evaluated,
        gains: &mut BTreeMap<usize, Vec<Slots>>,
    ) -> f64 {
        let Some(fact) = step.result else { return 0.0 };
        let sources = &self.sources[step.index];
        let (model, unit) = (self.model.at(fact.level), fact.scale.value().powi(2));
        let period = self.clear.program().layout(fact.layout).period();
        let numbers = |(index, place): Place| &evaluated.0[&index][place][..];
        let squares = own.iter().map(Slots::squares).sum::<f64>();
        // A rounding in every number, the same in all copies.
        let rounded = |numbers: &dyn Fn(usize, usize) -> f64| {
            let of_ct = |(ct, slots): (usize, &Slots)| {
                let alike = slots.folded(period).re;
                alike.iter().enumerate().map(|(slot, g)| (g * numbers(ct, slot)).powi(2)).sum::<f64>()
            };
            own.iter().enumerate().map(of_ct).sum::<f64>()
        };
        // A division rounds in the ring of the operand, before slots become means over several of them.
        let divided = |variance: f64| {
            let entered = self.model.enter(step.level(), fact.level);
            let above = self.n_slots(step.level()) / self.n_slots(fact.level).max(1);
            squares * (entered + (variance - entered) / above as f64) / unit
        };
        let ratio = |source: usize| fact.scale.over(step.sources[source].scale).value();
        let added = match step.op().kind() {
            Kind::Input => {
                let n_encryptions = self.clear.program().spec().input.ports.len().max(1);
                squares * n_encryptions as f64 * model.fresh() / unit
            }
            Kind::Product => squares * model.key_switch(fact.level) / unit,
            Kind::Rescale => divided(self.model.rescale_from(step.level())),
            Kind::Drop => divided(self.model.drop(step.level(), fact.level)),
            Kind::PlainSum(_) => rounded(&|_, _| 1.0) * model.encode(period) / unit,
            Kind::PlainProduct(_) => {
                rounded(&|ct, slot| numbers(sources[0][ct])[slot]) * model.encode(period) / ratio(0).powi(2)
            }
            Kind::ScalarProduct => {
                // One rounding for all numbers.
                let of_ct = |(slots, place): (&Slots, &Place)| {
                    slots.re.iter().zip(numbers(*place)).map(|(g, x)| g * x).sum::<f64>()
                };
                let sum = own.iter().zip(&sources[0]).map(of_ct).sum::<f64>();
                sum.powi(2) * model.round_scalar() / ratio(0).powi(2)
            }
            Kind::Map(_) | Kind::Exact | Kind::End => 0.0,
        };
        let times = |places: &[Place]| -> Vec<Slots> {
            own.iter()
                .zip(places)
                .map(|(slots, place)| slots.times(numbers(*place).iter().copied()))
                .collect()
        };
        match step.op().numbers() {
            Numbers::Map(map) => {
                let operand = |(places, fact): (&Vec<Place>, _)| Operand {
                    fact,
                    numbers: places.iter().map(|place| numbers(*place)).collect(),
                };
                let operands = sources.iter().zip(step.sources).map(operand).collect();
                let map = self.clear.program().map(map);
                let placed = Placed { map, result: fact, operands, model: &self.model };
                let (variance, by_operand) = placed.back(own);
                for (places, by) in sources.iter().zip(by_operand) {
                    self.reach(gains, places, by);
                }
                return variance;
            }
            Numbers::Pairs(Pair::Product) => {
                let (a, b) = (&sources[0], &sources[sources.len() - 1]);
                let [by_a, by_b] = [times(b), times(a)];
                self.reach(gains, a, by_a);
                self.reach(gains, b, by_b);
            }
            Numbers::Pairs(pair @ (Pair::Sum | Pair::Difference)) => {
                let sign = if pair == Pair::Sum { 1.0 } else { -1.0 };
                let last = own.iter().map(|slots| slots.times(std::iter::repeat(sign))).collect();
                self.reach(gains, &sources[0], own);
                self.reach(gains, &sources[1], last);
            }
            Numbers::WithConstant(_, Pair::Product) => {
                let constant = self.clear.constant(step.index);
                let of_ct = |(slots, ct): (&Slots, &Vec<f64>)| slots.times(ct.iter().copied());
                let by = own.iter().zip(constant).map(of_ct).collect();
                self.reach(gains, &sources[0], by);
            }
            Numbers::WithConstant(_, Pair::Sum | Pair::Difference) => self.reach(gains, &sources[0], own),
            Numbers::Times(factor) => {
                let by = own.iter().map(|slots| slots.times(std::iter::repeat(factor))).collect();
                self.reach(gains, &sources[0], by);
            }
            Numbers::Input | Numbers::Output | Numbers::Free => {}
        }
        added
    }
}

#[cfg(test)]
mod tests;
