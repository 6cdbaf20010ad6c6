//! What a circuit computes, and how its results depend on every value: the clear evaluator and its reverse sweep.

use fhec_ir::MemberIdx;

use super::circuit::{Circuit, CircuitOp, Map};

/// All values of a circuit for one member.
#[derive(Clone, Debug)]
pub struct Trace {
    /// Numbers of every value, in channel, row, column order.
    pub values: Vec<Vec<f64>>,
    /// Largest absolute number of every value, of what it is before its constant is added, and of its partial sums.
    pub peaks: Vec<f64>,
}

/// Evaluates a circuit for inputs given in order.
///
/// # Panics
/// When the inputs do not have the sizes of the circuit's; callers read them against its shapes.
#[must_use]
pub fn trace(circuit: &Circuit, inputs: &[&[f64]], member: MemberIdx) -> Trace {
    let mut values: Vec<Vec<f64>> = Vec::with_capacity(circuit.values.len());
    let mut peaks: Vec<f64> = Vec::with_capacity(circuit.values.len());
    let mut remaining = inputs.iter();
    for value in &circuit.values {
        let n = value.shape.len();
        let mut peak = 0.0;
        let numbers = match &value.op {
            CircuitOp::Input => {
                let given = remaining.next().expect("one input per input value");
                assert_eq!(given.len(), n, "an input has the size of its value");
                given.to_vec()
            }
            CircuitOp::Affine(affine) => {
                let mut sum = vec![0.0; n];
                // Values that are added as they are come last, as in a program.
                let (same, other): (Vec<_>, Vec<_>) =
                    affine.terms.iter().partition(|term| matches!(term.map, Map::Identity));
                for term in other.into_iter().chain(same) {
                    let x = &values[term.source.index()];
                    match &term.map {
                        Map::Identity => sum.iter_mut().zip(x).for_each(|(y, x)| *y += x),
                        Map::Diagonal(factor) => {
                            let factors = factor.over(member, value.shape);
                            sum.iter_mut().zip(factors).zip(x).for_each(|((y, factor), x)| *y += factor * x);
                        }
                        Map::Conv(conv) => conv.apply(member, x, &mut sum),
                    }
                    peak = largest(&sum).max(peak);
                }
                if let Some(bias) = &affine.bias {
                    sum.iter_mut().zip(bias.over(member, value.shape)).for_each(|(y, bias)| *y += bias);
                }
                sum
            }
            CircuitOp::Product([a, b]) => {
                values[a.index()].iter().zip(&values[b.index()]).map(|(x, y)| x * y).collect()
            }
        };
        peaks.push(largest(&numbers).max(peak));
        values.push(numbers);
    }
    Trace { values, peaks }
}

/// The largest absolute number; infinite where one is none.
fn largest(numbers: &[f64]) -> f64 {
    let size = |x: &f64| if x.is_nan() { f64::INFINITY } else { x.abs() };
    numbers.iter().map(size).fold(0.0, f64::max)
}

/// The first result of a circuit, averaged over its members.
///
/// # Panics
/// As [`trace`].
#[must_use]
pub fn scores(circuit: &Circuit, inputs: &[&[f64]]) -> Vec<f64> {
    let output = circuit.outputs[0].index();
    let members = (0..circuit.n_members as u32).map(MemberIdx);
    let result = |member| trace(circuit, inputs, member).values.swap_remove(output);
    combined(circuit, &members.map(result).collect::<Vec<_>>())
}

/// The average over the members, from what each of them gives as the first result.
pub(crate) fn combined(circuit: &Circuit, results: &[Vec<f64>]) -> Vec<f64> {
    let value = circuit.value(circuit.outputs[0]);
    let members = circuit.n_members as u32;
    let sum = |i: usize| results.iter().map(|r| r[i]).sum::<f64>();
    match &value.op {
        // The weights of a merged last layer are divided by the number of members; each member adds the mean of the biases.
        CircuitOp::Affine(last) if circuit.merged => {
            let bias = |i: usize| last.bias.as_ref().map_or(0.0, |b| b.at(MemberIdx::FIRST, value.shape, i));
            (0..value.shape.len()).map(|i| sum(i) - f64::from(members - 1) * bias(i)).collect()
        }
        _ => (0..value.shape.len()).map(|i| sum(i) / f64::from(members)).collect(),
    }
}

/// The gradients of the sum of every seed times the first result with respect to every value: by value, then by seed.
#[must_use]
pub fn gradients(
    circuit: &Circuit,
    trace: &Trace,
    seeds: &[Vec<f64>],
    member: MemberIdx,
) -> Vec<Vec<Vec<f64>>> {
    let zeros = |n: usize| vec![vec![0.0; n]; seeds.len()];
    let mut grads: Vec<Vec<Vec<f64>>> = circuit.values.iter().map(|v| zeros(v.shape.len())).collect();
    if let Some(output) = circuit.outputs.first() {
        grads[output.index()] = seeds.to_vec();
    }
    for id in circuit.ids().rev() {
        let value = circuit.value(id);
        let own = std::mem::take(&mut grads[id.index()]);
        match &value.op {
            CircuitOp::Input => {}
            CircuitOp::Affine(affine) => {
                for term in &affine.terms {
                    let to = &mut grads[term.source.index()];
                    match &term.map {
                        Map::Identity => {
                            let both = to.iter_mut().zip(&own);
                            both.for_each(|(to, own)| to.iter_mut().zip(own).for_each(|(x, g)| *x += g));
                        }
                        Map::Diagonal(factor) => {
                            for (to, own) in to.iter_mut().zip(&own) {
                                let factors = factor.over(member, value.shape);
                                to.iter_mut()
                                    .zip(factors)
                                    .zip(own)
                                    .for_each(|((x, factor), g)| *x += factor * g);
                            }
                        }
                        Map::Conv(conv) => {
                            let own: Vec<&[f64]> = own.iter().map(Vec::as_slice).collect();
                            conv.apply_transposed(member, &own, to);
                        }
                    }
                }
            }
            CircuitOp::Product([a, b]) => {
                for (to, other) in [(a, b), (b, a)] {
                    let other = &trace.values[other.index()];
                    for (to, own) in grads[to.index()].iter_mut().zip(&own) {
                        to.iter_mut().zip(other).zip(own).for_each(|((x, other), g)| *x += other * g);
                    }
                }
            }
        }
        grads[id.index()] = own;
    }
    grads
}
