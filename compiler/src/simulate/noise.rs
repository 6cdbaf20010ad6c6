//! The variance that every instruction of a program adds to its result.
//!
//! What is simulated is real, and noise has imaginary parts. They are nothing to a number until a complex sum lets them in, so
//! their size is followed number by number from one instruction to the next, and where one lets them in it adds that.

use std::collections::BTreeMap;
use std::sync::Arc;

use fhe_bytecode::check::Fact;
use fhe_bytecode::clear::{ClearProgram, Event, Hook, InputError};
use fhe_bytecode::noise::{LinearNoise, Noise, NoiseModel, OperandNoise, Row};
use fhe_bytecode::{CheckedProgram, CtId, Kind, LayoutId, MapId, Pairing, Scale};
use fhec_ir::spec::Uniform;
use rayon::prelude::*;

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
        let sizes = MeanSquares::of(clear, samples)?;
        let model = NoiseModel::new(program.params());
        let n_maps = program.spec().maps.len() as u32;
        let maps: Vec<LinearNoise> = (0..n_maps).into_par_iter().map(of_map(program)).collect();
        // What numbers are computed from does not depend on noise, so maps need not wait for each other.
        let mut rows: BTreeMap<usize, Vec<Vec<Row>>> = (sizes.read_by_maps.par_iter())
            .map(|(&index, (map, read))| {
                let squares: Vec<&[f64]> = read.iter().map(|source| sizes.numbers(*source)).collect();
                (index, clear.rows(*map, &squares))
            })
            .collect();
        // Each of several inputs may be encrypted by itself.
        let n_encryptions = (program.spec().input.ports.len() / program.batch()).max(1);
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
                instruction.op.sources().iter().filter_map(|range| held.get(&range.first).cloned()).collect();
            let (scale, kind) = (fact.scale.value(), instruction.op.kind());
            let (mut relative, mut by_slot) = (0.0, Vec::new());
            let own = model.at(fact.level);
            let layout = program.layout(fact.layout);
            let unit = scale.powi(2);
            let mut imaginary = carried(kind, &sources, &sizes, index);
            imaginary.resize(layout.shape().len() * layout.members(), 0.0);
            let noise = match kind {
                Kind::Input => Noise::complex(n_encryptions as f64 * own.fresh()),
                Kind::Product => Noise::complex(own.key_switch(fact.level)),
                Kind::Rescale => Noise::complex(model.rescale_from(step.level())),
                Kind::Map(map) => {
                    let variances: Vec<&[f64]> = sources.iter().map(|s| &s.imaginary[..]).collect();
                    let rows = rows.remove(&index).expect("every map has read something");
                    let moved = clear.carried(map, &variances);
                    let mapped = Mapped { noise: &maps[map.index()], fact, sources: &sources, rows, moved };
                    let deviations = mapped.deviations(own, &mut imaginary);
                    by_slot = layout.scatter(&deviations);
                    Noise::default()
                }
                Kind::PlainSum(_) => Noise::real(model.encode(layout.period())),
                Kind::PlainProduct(_) => {
                    let weight = fact.scale.over(sources[0].scale).value();
                    let rounding = model.encode(layout.period()) / weight.powi(2);
                    let squares = sizes.numbers(sources[0].index).iter();
                    by_slot =
                        layout.scatter(&squares.map(|square| (square * rounding).sqrt()).collect::<Vec<_>>());
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
            imaginary.iter_mut().for_each(|variance| *variance += noise.complex / unit);
            if let Some(dst) = instruction.op.dst() {
                let size = sizes.means.get(&index).copied().unwrap_or(0.0);
                let result = Held { index, scale: fact.scale, size, imaginary: imaginary.into() };
                held.extend(dst.iter().map(|register| (register, result.clone())));
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
#[derive(Clone)]
struct Held {
    /// The instruction that it is the result of.
    index: usize,
    scale: Scale,
    /// Mean square of its slots.
    size: f64,
    /// Variance of the imaginary part of the noise in every number.
    imaginary: Arc<[f64]>,
}

/// What becomes of the imaginary parts of the noise of the operands of an instruction other than a map.
fn carried(kind: Kind, sources: &[Held], sizes: &MeanSquares<'_>, index: usize) -> Vec<f64> {
    let times = |variances: &[f64], squares: &[f64], factor: f64| {
        variances.iter().zip(squares).map(|(variance, square)| factor * variance * square).collect()
    };
    let sum = |mut a: Vec<f64>, b: &[f64]| {
        a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
        a
    };
    match (kind, sources) {
        (Kind::Input | Kind::End | Kind::Map(_), _) | (_, []) => Vec::new(),
        (Kind::Product, [a, b, ..]) if a.index != b.index => {
            let other: Vec<f64> = times(&b.imaginary, sizes.numbers(a.index), 1.0);
            sum(times(&a.imaginary, sizes.numbers(b.index), 1.0), &other)
        }
        (Kind::Product, [a, ..]) => times(&a.imaginary, sizes.numbers(a.index), 4.0),
        (Kind::PlainProduct(_), [a, ..]) => {
            let squares = sizes.numbers(index).iter().zip(sizes.numbers(a.index));
            let factors: Vec<f64> =
                squares.map(|(after, before)| if *before > 0.0 { after / before } else { 0.0 }).collect();
            // What is zero in every sample tells nothing of its factor.
            let largest = factors.iter().copied().fold(0.0, f64::max);
            let factors: Vec<f64> = factors.iter().map(|f| if *f > 0.0 { *f } else { largest }).collect();
            times(&a.imaginary, &factors, 1.0)
        }
        (Kind::ScalarProduct, [a, ..]) => {
            let mean = sizes.means.get(&index).copied().unwrap_or(0.0);
            let factor = if a.size > 0.0 { mean / a.size } else { 1.0 };
            a.imaginary.iter().map(|variance| factor * variance).collect()
        }
        (Kind::PlainSum(_) | Kind::Rescale | Kind::Drop | Kind::Exact, [first, rest @ ..]) => {
            rest.iter().fold(first.imaginary.to_vec(), |all, source| sum(all, &source.imaginary))
        }
    }
}

/// The noise of a map under its plan.
fn of_map(program: &CheckedProgram) -> impl Fn(u32) -> LinearNoise + Sync {
    |id| {
        let (map, checked) = (&program.spec().maps[id as usize], program.map(MapId(id)));
        LinearNoise::new(&checked.diagonals, &checked.plan, program.layout(map.output))
    }
}

/// A linear map, with what its numbers are computed from.
struct Mapped<'a> {
    noise: &'a LinearNoise,
    fact: &'a Fact,
    sources: &'a [Held],
    /// By term and number.
    rows: Vec<Vec<Row>>,
    /// Imaginary parts of the noise of the operands under the squared weights, by term and number.
    moved: Vec<Vec<f64>>,
}

impl Mapped<'_> {
    /// The deviation of what is added to every number, in units of the values; `imaginary` becomes the variance of the imaginary
    /// part of the noise there.
    fn deviations(&self, model: &NoiseModel, imaginary: &mut [f64]) -> Vec<f64> {
        let unit = self.fact.scale.value().powi(2);
        let of_number = |(number, imaginary): (usize, &mut f64)| {
            let operands: Vec<OperandNoise> =
                (0..self.sources.len()).map(|term| self.operand(term, number)).collect();
            let noise = model.linear(&operands, self.fact.level, self.noise);
            let terms = 0..self.sources.len();
            let (stays, let_in): (f64, f64) = match self.noise.pairing {
                Pairing::None => (terms.map(|term| self.moved[term][number]).sum(), 0.0),
                // Sums that are taken apart are real.
                Pairing::Outputs | Pairing::Halves => {
                    (0.0, terms.map(|term| self.let_in(term, number)).sum())
                }
            };
            *imaginary = stays + noise.complex / unit;
            (noise.total() / unit + let_in).sqrt()
        };
        imaginary.iter_mut().enumerate().map(of_number).collect()
    }

    fn operand(&self, term: usize, number: usize) -> OperandNoise {
        let held = &self.sources[term];
        let own = held.scale.value().powi(2);
        let row = self.rows[term][number];
        let shared_energy = self.noise.terms[term].shared_by(number);
        let row = Row { shared_energy, squares: row.squares * own, ..row };
        let weight_scale = self.fact.scale.over(held.scale).value();
        OperandNoise { noise: 0.0, message: held.size * own, weight_scale, row }
    }

    /// What a complex sum lets in. The row that shares it reads what this one reads, or something like it.
    fn let_in(&self, term: usize, number: usize) -> f64 {
        let imaginary = &self.sources[term].imaginary;
        let own = self.rows[term][number].weight_energy;
        let usual = match own > 0.0 {
            true => self.moved[term][number] / own,
            false => imaginary.iter().sum::<f64>() / imaginary.len().max(1) as f64,
        };
        usual * self.noise.terms[term].shared_by(number)
    }
}

/// Records the mean square of every result over all samples, and of every number of what is multiplied.
#[derive(Clone)]
struct MeanSquares<'a> {
    program: &'a CheckedProgram,
    means: BTreeMap<usize, f64>,
    /// Layout and numbers of the results that are multiplied, or are products with constants.
    numbers: BTreeMap<usize, (LayoutId, Vec<f64>)>,
    /// The instructions whose results maps read, by the instruction of the map.
    read_by_maps: BTreeMap<usize, (MapId, Vec<usize>)>,
    n_samples: usize,
}

impl<'a> MeanSquares<'a> {
    fn new(program: &'a CheckedProgram, n_samples: usize) -> Self {
        let mut held: BTreeMap<CtId, usize> = BTreeMap::new();
        let (mut numbers, mut read_by_maps) = (BTreeMap::new(), BTreeMap::new());
        let zeros = |id: LayoutId| {
            let layout = program.layout(id);
            (id, vec![0.0; layout.shape().len() * layout.members()])
        };
        for step in program.steps() {
            let (op, kind) = (&step.instruction.op, step.instruction.op.kind());
            if matches!(kind, Kind::Map(_) | Kind::Product | Kind::PlainProduct(_)) {
                for (range, fact) in op.sources().iter().zip(step.sources) {
                    numbers.entry(held[&range.first]).or_insert_with(|| zeros(fact.layout));
                }
            }
            if let Kind::Map(map) = kind {
                let read = op.sources().iter().map(|range| held[&range.first]).collect();
                read_by_maps.insert(step.index, (map, read));
            }
            if let (Kind::PlainProduct(_), Some(fact)) = (kind, step.result) {
                numbers.entry(step.index).or_insert_with(|| zeros(fact.layout));
            }
            held.extend(op.dst().into_iter().flat_map(|dst| dst.iter()).map(|ct| (ct, step.index)));
        }
        Self { program, means: BTreeMap::new(), numbers, read_by_maps, n_samples }
    }

    /// Those of a program on some samples, which are added up in their order.
    fn of(clear: &ClearProgram<'a>, samples: &[Vec<f64>]) -> Result<Self, InputError> {
        let nothing = Self::new(clear.program(), samples.len());
        let of_sample = |sample: &Vec<f64>| {
            let mut own = nothing.clone();
            clear.run(sample, &mut own).map(|_| own)
        };
        let all: Vec<Self> = samples.par_iter().map(of_sample).collect::<Result<_, _>>()?;
        Ok(all.into_iter().reduce(Self::plus).unwrap_or(nothing))
    }

    fn plus(mut self, other: Self) -> Self {
        for (index, mean) in other.means {
            *self.means.entry(index).or_default() += mean;
        }
        for ((_, sums), (_, own)) in self.numbers.values_mut().zip(other.numbers.into_values()) {
            sums.iter_mut().zip(own).for_each(|(sum, own)| *sum += own);
        }
        self
    }

    fn numbers(&self, index: usize) -> &[f64] {
        &self.numbers[&index].1
    }
}

impl Hook for MeanSquares<'_> {
    fn result(&mut self, event: Event<'_>, cts: &mut [Vec<f64>]) {
        let n: usize = cts.iter().map(Vec::len).sum();
        let sum: f64 = cts.iter().flatten().map(|x| x * x).sum();
        *self.means.entry(event.instruction).or_default() += sum / (n * self.n_samples).max(1) as f64;
        if let Some((layout, numbers)) = self.numbers.get_mut(&event.instruction) {
            let share = (self.n_samples.max(1) as f64).recip();
            let found = self.program.layout(*layout).gather(cts);
            numbers.iter_mut().zip(found).for_each(|(sum, x)| *sum += x * x * share);
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
        // Lanes are all alike.
        for (slots, deviations) in cts.iter_mut().zip(by_slot.iter().cycle()) {
            normal::disturb(slots, deviations.iter().copied(), &mut self.stream);
        }
    }
}
