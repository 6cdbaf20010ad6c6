//! Values without their mean: what rounds in the weights of a map is multiplied by what the map reads.
//!
//! A square is never negative, so most of its energy is its mean, which says nothing about the input. A map that reads
//! x − m instead of x, for a constant m per channel, gives the same with W·m in its bias, and what its weights round moves the
//! result by (x − m) only. A sum has a bias that m goes into; a product gets one, an addition that costs no level.
//!
//! Before: a circuit, and inputs like those it will meet. After: the same results.

use fhec_ir::{MemberIdx, Shape, Tensor};
use rayon::prelude::*;

use crate::lower::{Affine, Circuit, CircuitOp, Constant, Map, Term, Value, ValueId, eval};

/// Energy left without the mean beyond which a value keeps it: an addition should bring something.
const WORTH: f64 = 0.87;

/// Inputs that means are taken over.
const MOST_SAMPLES: usize = 8;

/// The circuit with values that maps read centered around the mean that every channel has over some inputs.
pub(crate) fn centered(circuit: Circuit, samples: &[Vec<f64>]) -> Circuit {
    let means = means(&circuit, samples);
    let mut values = circuit.values;
    let mut centered = Circuit { values: Vec::with_capacity(values.len()), ..circuit };
    let mut renamed: Vec<ValueId> = Vec::with_capacity(values.len());
    for (i, value) in values.iter_mut().enumerate() {
        if let CircuitOp::Affine(affine) = &mut value.op {
            // A sum over members has one bias, for what all of them read.
            let is_merged = centered.merged && centered.outputs.contains(&ValueId(i as u32));
            for term in &affine.terms {
                if let Some(mean) = &means[term.source.index()] {
                    let shift = image(&term.map, value.shape, mean);
                    let shift = if is_merged { summed(&shift, centered.n_members) } else { shift };
                    add(&mut affine.bias, shift, value.shape);
                }
            }
        }
        let mut value = value.clone();
        value.op.rename(|source| renamed[source.index()]);
        let Some(mean) = &means[i] else {
            renamed.push(centered.push(value));
            continue;
        };
        let shift = mean.map(mean.dims(), |t| t.iter().map(|m| -m).collect());
        if let CircuitOp::Affine(affine) = &mut value.op {
            add(&mut affine.bias, shift, value.shape);
            renamed.push(centered.push(value));
        } else {
            let source = centered.push(value.clone());
            let terms = vec![Term { source, map: Map::Identity }];
            let op = CircuitOp::Affine(Affine { terms, bias: Some(shift) });
            renamed.push(centered.push(Value { op, ..value }));
        }
    }
    centered.outputs.iter_mut().for_each(|output| *output = renamed[output.index()]);
    centered
}

fn add(bias: &mut Option<Constant>, constant: Constant, shape: Shape) {
    *bias = Some(match bias.take() {
        None => constant,
        Some(bias) => bias.plus(&constant, shape),
    });
}

/// The sum over so many members of a constant that each has, or that all share.
fn summed(constant: &Constant, n_members: usize) -> Constant {
    let members = (0..n_members as u32).map(|member| constant.of(MemberIdx(member)));
    let mut sum = vec![0.0; constant.of(MemberIdx::FIRST).len()];
    members.for_each(|t| sum.iter_mut().zip(t.iter()).for_each(|(sum, x)| *sum += x));
    let sum = Tensor::from_f64(constant.dims().to_vec(), sum).expect("as many numbers as a member has");
    Constant::new(vec![sum])
}

/// What is subtracted from every value: nothing where it would change a product or a result, or bring little.
fn means(circuit: &Circuit, samples: &[Vec<f64>]) -> Vec<Option<Constant>> {
    let every = samples.len().div_ceil(MOST_SAMPLES).max(1);
    let samples: Vec<&Vec<f64>> = samples.iter().step_by(every).collect();
    let members: Vec<MemberIdx> = (0..circuit.n_members as u32).map(MemberIdx).collect();
    let sums: Vec<Vec<Sums>> = members
        .iter()
        .map(|&member| {
            let traces = samples.par_iter().map(|sample| of_channels(circuit, sample, member));
            // In the order of the samples, so that the result is the same for any number of threads.
            let traces: Vec<Vec<Sums>> = traces.collect();
            traces.into_iter().reduce(|a, b| a.into_iter().zip(b).map(|(a, b)| a.plus(b)).collect())
        })
        .map(Option::unwrap_or_default)
        .collect();
    if sums.iter().any(Vec::is_empty) {
        return vec![None; circuit.values.len()];
    }
    let mean = |id: ValueId| {
        let (shape, index) = (circuit.value(id).shape, id.index());
        let n = (samples.len() * shape.area()).max(1) as f64;
        // What is kept in single precision is what was subtracted.
        let of_member = |sums: &Vec<Sums>| -> Vec<f64> {
            sums[index].channels.iter().map(|sum| f64::from((sum / n) as f32)).collect()
        };
        let means: Vec<Vec<f64>> = sums.iter().map(of_member).collect();
        let constant: f64 = means.iter().flatten().map(|m| m * m * n).sum();
        let energy: f64 = sums.iter().map(|sums| sums[index].energy).sum();
        let is_worth = energy.is_finite() && energy - constant < WORTH * energy;
        is_worth.then(|| Constant::new(means.into_iter().map(Tensor::vector).collect()))
    };
    let may_move = may_move(circuit);
    circuit.ids().map(|id| may_move[id.index()].then(|| mean(id)).flatten()).collect()
}

/// Sums over the numbers of a value.
struct Sums {
    channels: Vec<f64>,
    /// Of their squares, over all channels.
    energy: f64,
}

impl Sums {
    fn plus(mut self, other: Self) -> Self {
        self.channels.iter_mut().zip(other.channels).for_each(|(a, b)| *a += b);
        Self { energy: self.energy + other.energy, ..self }
    }
}

fn of_channels(circuit: &Circuit, sample: &[f64], member: MemberIdx) -> Vec<Sums> {
    let trace = eval::trace(circuit, &[sample], member);
    let sums = |(value, numbers): (&Value, &Vec<f64>)| Sums {
        channels: numbers.chunks(value.shape.area().max(1)).map(|channel| channel.iter().sum()).collect(),
        energy: numbers.iter().map(|x| x * x).sum(),
    };
    circuit.values.iter().zip(&trace.values).map(sums).collect()
}

/// Values whose mean may be left out: maps with weights read them, and nothing that multiplies them with each other.
fn may_move(circuit: &Circuit) -> Vec<bool> {
    let mut is_read = vec![false; circuit.values.len()];
    let mut stays = vec![false; circuit.values.len()];
    circuit.outputs.iter().for_each(|output| stays[output.index()] = true);
    for id in circuit.ids() {
        match &circuit.value(id).op {
            CircuitOp::Input => stays[id.index()] = true,
            CircuitOp::Product(factors) => factors.iter().for_each(|f| stays[f.index()] = true),
            CircuitOp::Affine(affine) => {
                for term in &affine.terms {
                    is_read[term.source.index()] |= matches!(term.map, Map::Conv(_));
                }
            }
        }
    }
    is_read.into_iter().zip(stays).map(|(is_read, stays)| is_read && !stays).collect()
}

/// What a map makes of a constant per channel.
fn image(map: &Map, shape: Shape, mean: &Constant) -> Constant {
    let dims = [shape.c, shape.h, shape.w];
    let per_channel = |factor: &Constant| {
        factor.zip(mean, &[shape.c], |f, m| (0..shape.c).map(|c| f.get(c) * m.get(c)).collect())
    };
    match map {
        Map::Identity => mean.clone(),
        Map::Diagonal(factor) if factor.dims().len() == 1 && factor.dims()[0] == shape.c => {
            per_channel(factor)
        }
        Map::Diagonal(factor) => {
            let product = |member, i| factor.at(member, shape, i) * mean.at(member, shape, i);
            numbers(&dims, factor.members().len().max(mean.members().len()), |member| {
                (0..shape.len()).map(|i| product(member, i)).collect()
            })
        }
        Map::Conv(conv) => {
            let n_members = conv.weight.members().len().max(mean.members().len());
            numbers(&dims, n_members, |member| {
                let mut image = vec![0.0; shape.len()];
                conv.apply(member, &mean.over(member, conv.input), &mut image);
                image
            })
        }
    }
}

/// A constant from the numbers of its members; one per channel where that says all.
fn numbers(dims: &[usize; 3], n_members: usize, of: impl Fn(MemberIdx) -> Vec<f64>) -> Constant {
    let all: Vec<Vec<f64>> = (0..n_members as u32).map(|member| of(MemberIdx(member))).collect();
    let area = (dims[1] * dims[2]).max(1);
    let is_flat =
        all.iter().flat_map(|t| t.chunks(area)).all(|channel| channel.iter().all(|x| *x == channel[0]));
    let tensor = |numbers: Vec<f64>| match is_flat {
        true => Tensor::vector(numbers.into_iter().step_by(area).collect::<Vec<_>>()),
        false => Tensor::from_f64(dims.to_vec(), numbers).expect("an image has its shape"),
    };
    Constant::new(all.into_iter().map(tensor).collect())
}

#[cfg(test)]
mod tests {
    use fhec_ir::spec::{GraphSpec, Uniform};
    use fhec_ir::{ensemble, verify};

    use super::*;
    use crate::lower::lower;

    /// Padding and a stride, a sum of two ways, and a polynomial whose power is read twice.
    fn network(seed: u32) -> fhec_ir::Graph {
        let weight = |dims: &str, k: u32| format!("Between({dims}, {}, -0.4, 0.5)", 10 * seed + k);
        let pads = "pads: (top: 1, left: 1, bottom: 1, right: 1)";
        let text = format!(
            r#"(nodes: [
                (name: "x", op: Input(2, 6, 6)),
                (name: "c", of: ["x"], op: Conv2d(weight: {}, {pads})),
                (name: "q", of: ["c"], op: Poly(Values([3, 1], [0.0, 0.0, 1.0]))),
                (name: "d", of: ["q"], op: Conv2d(weight: {}, {pads})),
                (name: "s", of: ["d", "q"], op: Add),
                (name: "r", of: ["s"], op: Poly(Values([5, 1], [0.1, 0.5, 0.2, 0.1, 1.0]))),
                (name: "e", of: ["r"], op: Conv2d(weight: {}, stride: (2, 2))),
                (name: "f", of: ["e"], op: Flatten),
                (name: "g", of: ["f"], op: Linear(weight: {})),
                (name: "o", of: ["g"], op: Output),
            ])"#,
            weight("[3, 2, 3, 3]", 1),
            weight("[3, 3, 3, 3]", 2),
            weight("[4, 3, 3, 3]", 3),
            weight("[5, 16]", 4),
        );
        ron::from_str::<GraphSpec>(&text).unwrap().build().unwrap()
    }

    fn inputs(n: u64) -> Vec<Vec<f64>> {
        let input = |seed: u64| {
            let mut stream = Uniform::new(seed);
            (0..72).map(|_| stream.between(-0.5, 1.0)).collect()
        };
        (1..=n).map(input).collect()
    }

    fn check(graph: &fhec_ir::Graph) -> (Circuit, Circuit) {
        let circuit = lower(verify(graph).unwrap());
        let samples = inputs(5);
        let centered = centered(circuit.clone(), &samples);
        centered.judge().unwrap();
        for input in &inputs(8) {
            let [before, after] = [&circuit, &centered].map(|circuit| eval::scores(circuit, &[input]));
            for (a, b) in before.iter().zip(&after) {
                assert!((a - b).abs() < 1e-9 * (1.0 + a.abs()), "{before:?} became {after:?}");
            }
        }
        (circuit, centered)
    }

    #[test]
    fn what_maps_read_has_no_mean_and_scores_stay() {
        let (before, after) = check(&network(1));
        let energies = |circuit: &Circuit| -> f64 {
            let of_input = |input: &Vec<f64>| {
                let trace = eval::trace(circuit, &[input], MemberIdx::FIRST);
                let energy =
                    |term: &Term| -> f64 { trace.values[term.source.index()].iter().map(|x| x * x).sum() };
                let of_value = |value: &Value| -> f64 {
                    let CircuitOp::Affine(affine) = &value.op else { return 0.0 };
                    let read = affine.terms.iter().filter(|term| matches!(term.map, Map::Conv(_)));
                    read.map(energy).sum()
                };
                circuit.values.iter().map(of_value).sum::<f64>()
            };
            inputs(5).iter().map(of_input).sum()
        };
        let [before_all, after_all] = [&before, &after].map(energies);
        assert!(after_all < 0.95 * before_all, "{after_all} of {before_all}");
        // A mean that products or results would miss stays.
        assert!(after.values.len() > before.values.len());
    }

    #[test]
    fn members_have_means_of_their_own() {
        let (_, after) = check(&ensemble(&[network(1), network(2), network(3)]).unwrap());
        assert_eq!(after.n_members, 3);
    }
}
