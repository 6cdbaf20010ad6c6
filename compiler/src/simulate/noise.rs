//! The variance that every instruction of a program adds to its result.
//!
//! What is simulated is real, and noise has imaginary parts. They are nothing to a number until a complex sum lets them in, so
//! their size is followed from one instruction to the next, and where one lets them in it adds that.

use std::collections::BTreeMap;

use fhe_bytecode::check::Fact;
use fhe_bytecode::clear::{ClearProgram, Event, Hook, InputError};
use fhe_bytecode::noise::{LinearNoise, Noise, NoiseModel, OperandNoise, Row};
use fhe_bytecode::{CheckedProgram, CtId, Kind, Layout, LinearMap, MapId, Pairing, Scale};
use fhec_ir::spec::Uniform;

use super::normal;

/// What one instruction adds to its result, in units of the values.
#[derive(Clone, Debug, Default)]
struct Added {
    /// Standard deviation in every slot.
    deviation: f64,
    /// Standard deviation slot by slot, where these differ.
    by_slot: Vec<Vec<f64>>,
    /// Standard deviation over the number in the slot.
    relative: f64,
}

/// The noise of every instruction.
#[derive(Clone, Debug)]
pub struct InstructionNoise {
    added: Vec<Added>,
}

impl InstructionNoise {
    /// Predicts the noise of a program whose values are about as large as for these samples.
    ///
    /// # Errors
    /// When a sample does not fit the program.
    pub fn new(clear: &ClearProgram<'_>, samples: &[Vec<f64>]) -> Result<Self, InputError> {
        let program = clear.program();
        let mut sizes = MeanSquares::new(program, samples.len());
        samples.iter().try_for_each(|sample| clear.run(sample, &mut sizes).map(|_| ()))?;
        let model = NoiseModel::new(program.params());
        let maps: Vec<LinearNoise> = program.spec().maps.iter().zip(0..).map(of_map(program)).collect();
        // Each of several inputs may be encrypted by itself.
        let n_encryptions = program.spec().input.ports.len().max(1);
        // What is in the registers while the instructions are replayed.
        let mut held: BTreeMap<CtId, Held> = BTreeMap::new();
        let mut added = Vec::with_capacity(program.spec().instructions.len());
        for step in program.steps() {
            let (index, instruction) = (step.index, step.instruction);
            let Some(fact) = step.result else {
                added.push(Added::default());
                continue;
            };
            let sources: Vec<Held> =
                instruction.op.sources().iter().filter_map(|range| held.get(&range.first).copied()).collect();
            let scale = fact.scale.value();
            let (mut relative, mut by_slot) = (0.0, Vec::new());
            let own = model.at(fact.level);
            let own_unit = scale.powi(2);
            let noise = match instruction.op.kind() {
                Kind::Input => Noise::complex(n_encryptions as f64 * own.fresh()),
                Kind::Product => Noise::complex(own.key_switch(fact.level)),
                Kind::Rescale => Noise::complex(model.rescale_from(step.level())),
                Kind::Map(map) => {
                    let squares: Vec<&[Vec<f64>]> = sources.iter().map(|s| sizes.slots(s.index)).collect();
                    let rows = clear.rows(map, &squares);
                    let mapped = Mapped::new(program, own, &maps[map.index()], fact, &sources, &rows);
                    by_slot = mapped.deviations;
                    mapped.rest
                }
                Kind::PlainSum(_) => Noise::real(model.encode(program.layout(fact.layout).period())),
                Kind::PlainProduct(_) => {
                    let weight = fact.scale.over(sources[0].scale).value();
                    let rounding = model.encode(program.layout(fact.layout).period()) / weight.powi(2);
                    let of_ct = |ct: &Vec<f64>| ct.iter().map(|square| (square * rounding).sqrt()).collect();
                    by_slot = sizes.slots(sources[0].index).iter().map(of_ct).collect();
                    Noise::default()
                }
                Kind::ScalarProduct => {
                    let weight = fact.scale.over(sources[0].scale).value();
                    relative = model.round_scalar().sqrt() / weight;
                    Noise::default()
                }
                Kind::Drop => Noise::complex(model.drop(step.level(), fact.level)),
                Kind::Exact | Kind::End => Noise::default(),
            };
            let is_apart = !by_slot.is_empty();
            let deviation = if is_apart { 0.0 } else { noise.total().sqrt() / scale };
            added.push(Added { deviation, by_slot, relative });
            if let Some(dst) = instruction.op.dst() {
                let mean = sizes.means.get(&index).copied().unwrap_or(0.0);
                let carried = carried(instruction.op.kind(), &maps, &sources, mean);
                let result = Held {
                    index,
                    scale: fact.scale,
                    size: mean,
                    filled: filled(program.layout(fact.layout)),
                    imaginary: carried + noise.complex / own_unit,
                };
                held.extend(dst.iter().map(|register| (register, result)));
            }
        }
        Ok(Self { added })
    }

    /// A hook that adds the noise, drawn from a seeded stream.
    #[must_use]
    pub fn hook(&self, seed: u64) -> impl Hook + '_ {
        Disturb { added: &self.added, stream: Uniform::new(seed) }
    }
}

/// What a register holds.
#[derive(Clone, Copy)]
struct Held {
    /// The instruction that it is the result of.
    index: usize,
    scale: Scale,
    /// Mean square of its slots.
    size: f64,
    /// The part of the slots that hold numbers.
    filled: f64,
    /// Variance of the imaginary part of its noise where it holds numbers.
    imaginary: f64,
}

impl Held {
    /// Mean square of its numbers.
    fn numbers(&self) -> f64 {
        self.size / self.filled
    }
}

/// The part of the slots of a layout that hold numbers.
fn filled(layout: &Layout) -> f64 {
    let slots = layout.scatter(&vec![1.0; layout.shape().len() * layout.members()]);
    let n = slots.iter().map(Vec::len).sum::<usize>();
    slots.iter().flatten().sum::<f64>() / n.max(1) as f64
}

/// What becomes of the imaginary parts of the noise of the operands, where the result has such a mean square.
fn carried(kind: Kind, maps: &[LinearNoise], sources: &[Held], mean: f64) -> f64 {
    let all = || sources.iter().map(|source| source.imaginary).sum::<f64>();
    match (kind, sources) {
        (Kind::Input | Kind::End, _) => 0.0,
        (Kind::Product, [a, b]) if a.index != b.index => {
            a.imaginary * b.numbers() + b.imaginary * a.numbers()
        }
        (Kind::Product, _) => sources.first().map_or(0.0, |a| 4.0 * a.imaginary * a.numbers()),
        (Kind::Map(map), _) => {
            let map = &maps[map.index()];
            let terms = sources.iter().zip(&map.terms);
            match map.pairing {
                Pairing::None => terms.map(|(source, term)| source.imaginary * term.weight_energy).sum(),
                // Sums that are taken apart are real.
                Pairing::Outputs | Pairing::Halves => 0.0,
            }
        }
        (Kind::PlainProduct(_) | Kind::ScalarProduct, _) => {
            let size: f64 = sources.iter().map(|source| source.size).sum();
            if size > 0.0 { all() * mean / size } else { all() }
        }
        (Kind::PlainSum(_) | Kind::Rescale | Kind::Drop | Kind::Exact, _) => all(),
    }
}

/// The noise of a map under its plan.
fn of_map(program: &CheckedProgram) -> impl Fn((&LinearMap, u32)) -> LinearNoise {
    |(map, id)| {
        let checked = program.map(MapId(id));
        LinearNoise::new(&checked.diagonals, &checked.plan, program.layout(map.output))
    }
}

/// What a linear map adds.
struct Mapped {
    /// Deviation in every slot, in units of the values.
    deviations: Vec<Vec<f64>>,
    /// The mean over its numbers, in units of stored integers.
    rest: Noise,
}

impl Mapped {
    /// Of a map whose numbers are computed from these rows.
    fn new(
        program: &CheckedProgram,
        model: &NoiseModel,
        map: &LinearNoise,
        fact: &Fact,
        sources: &[Held],
        rows: &[Vec<Row>],
    ) -> Self {
        let output = program.layout(fact.layout);
        let n_numbers = output.shape().len() * output.members();
        let unit = fact.scale.value().powi(2);
        let mut rest = Noise::default();
        let mut deviation = |number: usize| {
            let row =
                |term: usize| Row { shared_energy: map.terms[term].shared_by(number), ..rows[term][number] };
            let operand = |(term, held): (usize, &Held)| {
                let own = held.scale.value().powi(2);
                let row = row(term);
                let weight_scale = fact.scale.over(held.scale).value();
                let row = Row { squares: row.squares * own, ..row };
                OperandNoise { noise: 0.0, message: held.size * own, weight_scale, row }
            };
            let operands: Vec<OperandNoise> = sources.iter().enumerate().map(operand).collect();
            let let_in = |(term, held): (usize, &Held)| held.imaginary * row(term).shared_energy;
            let let_in: f64 = sources.iter().enumerate().map(let_in).sum();
            let noise = model.linear(&operands, fact.level, map);
            rest = rest + noise * (n_numbers as f64).recip();
            (noise.total() / unit + let_in).sqrt()
        };
        let deviations: Vec<f64> = (0..n_numbers).map(&mut deviation).collect();
        Self { deviations: output.scatter(&deviations), rest }
    }
}

/// Records the mean square of every result over all samples, and of every slot of what weights multiply.
struct MeanSquares {
    means: BTreeMap<usize, f64>,
    /// Slots of the results that weights multiply.
    slots: BTreeMap<usize, Vec<Vec<f64>>>,
    n_samples: usize,
}

impl MeanSquares {
    fn new(program: &CheckedProgram, n_samples: usize) -> Self {
        let mut held: BTreeMap<CtId, usize> = BTreeMap::new();
        let mut slots = BTreeMap::new();
        for step in program.steps() {
            let op = &step.instruction.op;
            if matches!(op.kind(), Kind::Map(_) | Kind::PlainProduct(_)) {
                for (range, fact) in op.sources().iter().zip(step.sources) {
                    let layout = program.layout(fact.layout);
                    let zeros = || vec![vec![0.0; layout.slots()]; layout.n_cts()];
                    slots.entry(held[&range.first]).or_insert_with(zeros);
                }
            }
            held.extend(op.dst().into_iter().flat_map(|dst| dst.iter()).map(|ct| (ct, step.index)));
        }
        Self { means: BTreeMap::new(), slots, n_samples }
    }

    fn slots(&self, index: usize) -> &[Vec<f64>] {
        &self.slots[&index]
    }
}

impl Hook for MeanSquares {
    fn result(&mut self, event: Event<'_>, cts: &mut [Vec<f64>]) {
        let n: usize = cts.iter().map(Vec::len).sum();
        let sum: f64 = cts.iter().flatten().map(|x| x * x).sum();
        *self.means.entry(event.instruction).or_default() += sum / (n * self.n_samples).max(1) as f64;
        if let Some(slots) = self.slots.get_mut(&event.instruction) {
            let share = (self.n_samples.max(1) as f64).recip();
            for (sums, ct) in slots.iter_mut().zip(cts.iter()) {
                sums.iter_mut().zip(ct).for_each(|(sum, x)| *sum += x * x * share);
            }
        }
    }
}

struct Disturb<'a> {
    added: &'a [Added],
    stream: Uniform,
}

impl Hook for Disturb<'_> {
    fn result(&mut self, event: Event<'_>, cts: &mut [Vec<f64>]) {
        let Added { deviation, by_slot, relative } = &self.added[event.instruction];
        if *relative > 0.0 {
            // A scalar rounds once for all slots.
            let [number, _] = normal::pair(&mut self.stream);
            let factor = 1.0 + relative * number;
            cts.iter_mut().flatten().for_each(|x| *x *= factor);
        }
        if *deviation > 0.0 {
            let same = std::iter::repeat(*deviation);
            cts.iter_mut().for_each(|slots| normal::disturb(slots, same.clone(), &mut self.stream));
        }
        for (slots, deviations) in cts.iter_mut().zip(by_slot) {
            normal::disturb(slots, deviations.iter().copied(), &mut self.stream);
        }
    }
}
