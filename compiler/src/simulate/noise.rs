//! The variance that every instruction of a program adds to its result.

use std::collections::BTreeMap;

use fhe_bytecode::clear::{ClearProgram, Event, Hook, InputError};
use fhe_bytecode::noise::{LinearNoise, NoiseModel, OperandNoise, Row};
use fhe_bytecode::{CheckedProgram, CtId, Kind, LinearMap, MapId, Pairing, Scale};
use fhec_ir::spec::Uniform;

use super::normal;

/// Noise of one instruction, in units of the values.
#[derive(Clone, Debug, Default)]
struct Noise {
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
    noise: Vec<Noise>,
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
        let leaks = leaks(program, &maps);
        // Each of several inputs may be encrypted by itself.
        let n_encryptions = program.spec().input.ports.len().max(1);
        // What is in the registers while the instructions are replayed.
        let mut held: BTreeMap<CtId, Held> = BTreeMap::new();
        let mut noise = Vec::with_capacity(program.spec().instructions.len());
        for step in program.steps() {
            let (index, instruction) = (step.index, step.instruction);
            let Some(fact) = step.result else {
                noise.push(Noise::default());
                continue;
            };
            let sources: Vec<Held> =
                instruction.op.sources().iter().filter_map(|range| held.get(&range.first).copied()).collect();
            let scale = fact.scale.value();
            let (mut relative, mut by_slot) = (0.0, Vec::new());
            let own = model.at(fact.level);
            let variance = match instruction.op.kind() {
                Kind::Input => n_encryptions as f64 * own.fresh() / scale.powi(2),
                Kind::Product => own.key_switch(fact.level) / scale.powi(2),
                Kind::Rescale => model.rescale_from(step.level()) / scale.powi(2),
                Kind::Map(map) => {
                    let squares: Vec<&[Vec<f64>]> = sources.iter().map(|s| sizes.slots(s.index)).collect();
                    let rows = clear.rows(map, &squares);
                    by_slot = linear(program, own, &maps[map.index()], fact, &sources, &rows, leaks[index]);
                    0.0
                }
                Kind::PlainSum(_) => model.encode(program.layout(fact.layout).period()) / scale.powi(2),
                Kind::PlainProduct(_) => {
                    let weight = fact.scale.over(sources[0].scale).value();
                    let rounding = model.encode(program.layout(fact.layout).period()) / weight.powi(2);
                    let deviation = |square: &f64| (square * rounding * leaks[index]).sqrt();
                    let of_ct = |ct: &Vec<f64>| ct.iter().map(deviation).collect();
                    by_slot = sizes.slots(sources[0].index).iter().map(of_ct).collect();
                    0.0
                }
                Kind::ScalarProduct => {
                    let weight = fact.scale.over(sources[0].scale).value();
                    relative = (model.round_scalar() * leaks[index]).sqrt() / weight;
                    0.0
                }
                Kind::Drop => model.drop(step.level(), fact.level) / scale.powi(2),
                Kind::Exact | Kind::End => 0.0,
            };
            noise.push(Noise { deviation: (variance * leaks[index]).sqrt(), by_slot, relative });
            if let Some(dst) = instruction.op.dst() {
                let size = sizes.means.get(&index).copied().unwrap_or(0.0);
                let result = Held { index, scale: fact.scale, size };
                held.extend(dst.iter().map(|register| (register, result)));
            }
        }
        Ok(Self { noise })
    }

    /// A hook that adds the noise, drawn from a seeded stream.
    #[must_use]
    pub fn hook(&self, seed: u64) -> impl Hook + '_ {
        Disturb { noise: &self.noise, stream: Uniform::new(seed) }
    }
}

/// What a register holds.
#[derive(Clone, Copy)]
struct Held {
    /// The instruction that it is the result of.
    index: usize,
    scale: Scale,
    /// Mean square.
    size: f64,
}

/// The noise of a map under its plan.
fn of_map(program: &CheckedProgram) -> impl Fn((&LinearMap, u32)) -> LinearNoise {
    |(map, id)| {
        let checked = program.map(MapId(id));
        LinearNoise::new(&checked.diagonals, &checked.plan, program.layout(map.output))
    }
}

/// Deviation of what a linear map adds to every slot, in units of the values, where its numbers are computed from these rows.
fn linear(
    program: &CheckedProgram,
    model: &NoiseModel,
    noise: &LinearNoise,
    fact: &fhe_bytecode::check::Fact,
    sources: &[Held],
    rows: &[Vec<Row>],
    leak: f64,
) -> Vec<Vec<f64>> {
    let output = program.layout(fact.layout);
    let n_numbers = output.shape().len() * output.members();
    let deviation = |number: usize| {
        let operand = |(held, rows): (&Held, &Vec<Row>)| {
            let unit = held.scale.value().powi(2);
            let row = Row { squares: rows[number].squares * unit, ..rows[number] };
            let weight_scale = fact.scale.over(held.scale).value();
            OperandNoise { noise: 0.0, message: held.size * unit, weight_scale, row }
        };
        let operands: Vec<OperandNoise> = sources.iter().zip(rows).map(operand).collect();
        (model.linear(&operands, fact.level, noise) * leak).sqrt() / fact.scale.value()
    };
    output.scatter(&(0..n_numbers).map(deviation).collect::<Vec<f64>>())
}

/// Factor on the variance of what every instruction adds: slots here are real, but complex diagonals let the imaginary part
/// of the noise into the results as well.
fn leaks(program: &CheckedProgram, maps: &[LinearNoise]) -> Vec<f64> {
    let instructions = &program.spec().instructions;
    let mut leaks = vec![1.0; instructions.len()];
    // The largest factor that the readers of a register have.
    let mut read: BTreeMap<CtId, f64> = BTreeMap::new();
    for (index, instruction) in instructions.iter().enumerate().rev() {
        if let Some(dst) = instruction.op.dst() {
            leaks[index] = dst.iter().filter_map(|register| read.remove(&register)).fold(1.0, f64::max);
        }
        let paired = match instruction.op.kind() {
            Kind::Map(map) => Some(&maps[map.index()]).filter(|noise| noise.pairing != Pairing::None),
            _ => None,
        };
        for (term, range) in instruction.op.sources().iter().enumerate() {
            let mean = |noise: &LinearNoise| noise.leak(&noise.terms[term], &Row::mean(&noise.terms[term]));
            let factor = paired.map_or(leaks[index], mean);
            for register in range.iter() {
                let largest = read.entry(register).or_insert(1.0);
                *largest = largest.max(factor);
            }
        }
    }
    leaks
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
    noise: &'a [Noise],
    stream: Uniform,
}

impl Hook for Disturb<'_> {
    fn result(&mut self, event: Event<'_>, cts: &mut [Vec<f64>]) {
        let Noise { deviation, by_slot, relative } = &self.noise[event.instruction];
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
