//! The variance that every instruction of a program adds to its result.

use std::collections::BTreeMap;

use fhe_bytecode::clear::{ClearProgram, Event, Hook, InputError};
use fhe_bytecode::noise::{LinearNoise, NoiseModel, OperandNoise};
use fhe_bytecode::{CheckedProgram, CtId, Kind, MapId, Pairing, Scale};
use fhec_ir::spec::Uniform;

/// Noise of one instruction, in units of the values.
#[derive(Clone, Copy, Debug, Default)]
struct Noise {
    /// Standard deviation in every slot.
    deviation: f64,
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
        let mut sizes = MeanSquares { sums: BTreeMap::new(), n_samples: samples.len() };
        samples.iter().try_for_each(|sample| clear.run(sample, &mut sizes).map(|_| ()))?;
        let model = NoiseModel::new(program.params());
        let leaks = leaks(program);
        // Each of several inputs may be encrypted by itself.
        let n_encryptions = (program.spec().input.ports.len() / program.batch()).max(1);
        // What is in the registers while the instructions are replayed: scale and mean square.
        let mut held: BTreeMap<CtId, (Scale, f64)> = BTreeMap::new();
        let mut noise = Vec::with_capacity(program.spec().instructions.len());
        for step in program.steps() {
            let (index, instruction) = (step.index, step.instruction);
            let Some(fact) = step.result else {
                noise.push(Noise::default());
                continue;
            };
            let sources: Vec<(Scale, f64)> =
                instruction.op.sources().iter().filter_map(|range| held.get(&range.first).copied()).collect();
            let scale = fact.scale.value();
            let mut relative = 0.0;
            let variance = match instruction.op.kind() {
                Kind::Input => n_encryptions as f64 * model.fresh() / scale.powi(2),
                Kind::Product => model.key_switch(fact.level) / scale.powi(2),
                Kind::Rescale => model.rescale_rounding() / scale.powi(2),
                Kind::Map(map) => linear(program, &model, map, fact, &sources),
                Kind::PlainSum(_) => model.encode(program.layout(fact.layout).period()) / scale.powi(2),
                Kind::PlainProduct(_) => {
                    let weight = fact.scale.over(sources[0].0).value();
                    sources[0].1 * model.encode(program.layout(fact.layout).period()) / weight.powi(2)
                }
                Kind::ScalarProduct => {
                    let weight = fact.scale.over(sources[0].0).value();
                    relative = (model.round_scalar() * leaks[index]).sqrt() / weight;
                    0.0
                }
                Kind::Drop => model.drop(step.level(), fact.level) / scale.powi(2),
                Kind::Exact | Kind::End => 0.0,
            };
            noise.push(Noise { deviation: (variance * leaks[index]).sqrt(), relative });
            if let Some(dst) = instruction.op.dst() {
                let size = sizes.sums.get(&index).copied().unwrap_or(0.0);
                held.extend(dst.iter().map(|register| (register, (fact.scale, size))));
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

/// Variance of what a linear map adds, in units of the values.
fn linear(
    program: &CheckedProgram,
    model: &NoiseModel,
    map: MapId,
    fact: &fhe_bytecode::check::Fact,
    sources: &[(Scale, f64)],
) -> f64 {
    let checked = program.map(map);
    let output = program.layout(fact.layout);
    let n_numbers = output.shape().len() * output.members();
    let noise = LinearNoise::new(&checked.diagonals, &checked.plan, n_numbers);
    let operand = |&(scale, size): &(Scale, f64)| OperandNoise {
        noise: 0.0,
        message: size * scale.value().powi(2),
        weight_scale: fact.scale.over(scale).value(),
    };
    let operands: Vec<OperandNoise> = sources.iter().map(operand).collect();
    model.linear(&operands, fact.level, &noise) / fact.scale.value().powi(2)
}

/// Factor on the variance of what every instruction adds: slots here are real, but complex diagonals let the imaginary part
/// of the noise into the results as well.
fn leaks(program: &CheckedProgram) -> Vec<f64> {
    let instructions = &program.spec().instructions;
    let mut leaks = vec![1.0; instructions.len()];
    // The largest factor that the readers of a register have.
    let mut read: BTreeMap<CtId, f64> = BTreeMap::new();
    for (index, instruction) in instructions.iter().enumerate().rev() {
        if let Some(dst) = instruction.op.dst() {
            leaks[index] = dst.iter().filter_map(|register| read.remove(&register)).fold(1.0, f64::max);
        }
        let pairing = match instruction.op.kind() {
            Kind::Map(map) => program.map(map).diagonals.pairing(),
            _ => Pairing::None,
        };
        let factor = if pairing == Pairing::None { leaks[index] } else { pairing.noise_gain() };
        for register in instruction.op.sources().iter().flat_map(|range| range.iter()) {
            let largest = read.entry(register).or_insert(1.0);
            *largest = largest.max(factor);
        }
    }
    leaks
}

/// Records the mean square of every result, over all samples.
struct MeanSquares {
    sums: BTreeMap<usize, f64>,
    n_samples: usize,
}

impl Hook for MeanSquares {
    fn result(&mut self, event: Event<'_>, cts: &mut [Vec<f64>]) {
        let n: usize = cts.iter().map(Vec::len).sum();
        let sum: f64 = cts.iter().flatten().map(|x| x * x).sum();
        *self.sums.entry(event.instruction).or_default() += sum / (n * self.n_samples).max(1) as f64;
    }
}

struct Disturb<'a> {
    noise: &'a [Noise],
    stream: Uniform,
}

impl Hook for Disturb<'_> {
    fn result(&mut self, event: Event<'_>, cts: &mut [Vec<f64>]) {
        let Noise { deviation, relative } = self.noise[event.instruction];
        if relative > 0.0 {
            // A scalar rounds once for all slots.
            let [number, _] = normals(&mut self.stream);
            let factor = 1.0 + relative * number;
            cts.iter_mut().flatten().for_each(|x| *x *= factor);
        }
        if deviation > 0.0 {
            for slots in cts.iter_mut() {
                for pair in slots.chunks_mut(2) {
                    let numbers = normals(&mut self.stream);
                    pair.iter_mut().zip(numbers).for_each(|(x, z)| *x += deviation * z);
                }
            }
        }
    }
}

/// Two normal numbers by Box and Muller's transform.
fn normals(stream: &mut Uniform) -> [f64; 2] {
    let radius = (-2.0 * stream.between(f64::MIN_POSITIVE, 1.0).max(1e-300).ln()).sqrt();
    let (sin, cos) = (std::f64::consts::TAU * stream.between(0.0, 1.0)).sin_cos();
    [radius * cos, radius * sin]
}
