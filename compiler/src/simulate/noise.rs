//! The variance that every instruction of a program adds to its result.

use std::collections::BTreeMap;

use fhe_bytecode::clear::{ClearProgram, Event, Hook};
use fhe_bytecode::noise::NoiseModel;
use fhe_bytecode::{CheckedProgram, CtId, DiagonalId, MapId, Op, Scale};
use fhec_ir::spec::Uniform;

/// Standard deviations of the noise of every instruction, in units of the values.
#[derive(Clone, Debug)]
pub struct InstructionNoise {
    deviations: Vec<f64>,
}

impl InstructionNoise {
    /// Predicts the noise of a program whose values are about as large as for `sample`.
    ///
    /// # Errors
    /// When the sample does not fit the program.
    pub fn new(program: &CheckedProgram, sample: &[f64]) -> Result<Self, fhe_bytecode::clear::InputError> {
        let mut sizes = MeanSquares(BTreeMap::new());
        ClearProgram::new(program).run(sample, &mut sizes)?;
        let model = NoiseModel::new(program.params());
        // What is in the registers while the instructions are replayed: scale and mean square.
        let mut held: BTreeMap<CtId, (Scale, f64)> = BTreeMap::new();
        let mut deviations = Vec::with_capacity(program.spec().instructions.len());
        for (index, instruction) in program.spec().instructions.iter().enumerate() {
            let Some(fact) = program.fact(index) else {
                deviations.push(0.0);
                continue;
            };
            let sources: Vec<(Scale, f64)> =
                instruction.op.sources().iter().filter_map(|range| held.get(&range.first).copied()).collect();
            let scale = fact.scale.value();
            let variance = match &instruction.op {
                Op::Input { .. } => model.fresh() / scale.powi(2),
                Op::Square { .. } | Op::Mul { .. } => model.key_switch(fact.level) / scale.powi(2),
                Op::Rescale { .. } => model.rescale_rounding() / scale.powi(2),
                Op::Linear { map, .. } => linear(program, &model, *map, fact, &sources),
                Op::AddPlain { .. } => model.encode(program.layout(fact.layout).period()) / scale.powi(2),
                Op::MulPlain { .. } => {
                    let weight = fact.scale.over(sources[0].0).value();
                    sources[0].1 * model.encode(program.layout(fact.layout).period()) / weight.powi(2)
                }
                Op::Add { .. } | Op::Sub { .. } | Op::MulScalar { .. } | Op::Drop { .. } => 0.0,
                Op::Free { .. } | Op::Output { .. } => 0.0,
            };
            deviations.push(variance.sqrt());
            if let Some(dst) = instruction.op.dst() {
                let size = sizes.0.get(&index).copied().unwrap_or(0.0);
                held.extend(dst.iter().map(|register| (register, (fact.scale, size))));
            }
        }
        Ok(Self { deviations })
    }

    /// A hook that adds the noise, drawn from a seeded stream.
    #[must_use]
    pub fn hook(&self, seed: u64) -> impl Hook + '_ {
        Disturb { deviations: &self.deviations, stream: Uniform::new(seed) }
    }
}

fn linear(
    program: &CheckedProgram,
    model: &NoiseModel,
    map: MapId,
    fact: &fhe_bytecode::check::Fact,
    sources: &[(Scale, f64)],
) -> f64 {
    let checked = program.map(map);
    let diagonals = &checked.diagonals;
    let n_outputs = diagonals.n_outputs().max(1) as f64;
    let key = model.key_switch_product(fact.level);
    let output = program.layout(fact.layout);
    let n_numbers = (output.shape().len() * output.members()).max(1) as f64;
    // The folds below count every copy of a sum; these weights are spread over the copies.
    let per_number = diagonals.period() as f64 / n_numbers / (diagonals.folds().len() as f64).exp2();
    let mut variance = 0.0;
    for (index, diagonal) in diagonals.list().iter().enumerate() {
        let id = DiagonalId(index as u32);
        let (scale, size) = sources[diagonals.term(id)];
        let weight = fact.scale.over(scale).value();
        let pairing = diagonals.pairing();
        let rounding = pairing.rounding_gain() * model.encode(diagonals.period());
        variance += size * rounding / weight.powi(2) / n_outputs;
        if !diagonal.rotation.is_zero() {
            let energy = diagonals.energy(id) * per_number;
            variance += pairing.noise_gain() * key * energy / scale.value().powi(2);
        }
    }
    let counts = checked.plan.counts();
    let giants = counts.giants as f64 / n_outputs * model.key_switch(fact.level) + model.mod_down();
    variance += giants / fact.scale.value().powi(2);
    for _ in diagonals.folds() {
        variance = 2.0 * variance + model.key_switch(fact.level) / fact.scale.value().powi(2);
    }
    variance
}

/// Records the mean square of every result.
struct MeanSquares(BTreeMap<usize, f64>);

impl Hook for MeanSquares {
    fn result(&mut self, event: Event<'_>, cts: &mut [Vec<f64>]) {
        let n: usize = cts.iter().map(Vec::len).sum();
        let sum: f64 = cts.iter().flatten().map(|x| x * x).sum();
        self.0.insert(event.instruction, sum / n.max(1) as f64);
    }
}

struct Disturb<'a> {
    deviations: &'a [f64],
    stream: Uniform,
}

impl Hook for Disturb<'_> {
    fn result(&mut self, event: Event<'_>, cts: &mut [Vec<f64>]) {
        let deviation = self.deviations[event.instruction];
        if deviation > 0.0 {
            cts.iter_mut().flatten().for_each(|x| *x += deviation * normal(&mut self.stream));
        }
    }
}

/// A normal number by Box and Muller's transform.
fn normal(stream: &mut Uniform) -> f64 {
    let radius = (-2.0 * stream.between(f64::MIN_POSITIVE, 1.0).max(1e-300).ln()).sqrt();
    radius * (std::f64::consts::TAU * stream.between(0.0, 1.0)).cos()
}
