//! Mean and variance of every channel, propagated through the graph.

use fhec_ir::op::{bivar_degree, monomials};
use fhec_ir::{Channels, Divisor, Graph, MemberIdx, NodeId, Op, Pool, Shape, Tensor, ValueRange};

/// Deviations between the mean and the end of a range.
const DEVIATIONS: f64 = 4.0;

/// Mean and variance of one channel.
#[derive(Clone, Copy, Debug, Default)]
struct Moments {
    mean: f64,
    var: f64,
}

/// Numbers beyond this say that the estimate has lost touch: polynomials without normalizations between them.
const LARGEST: f64 = 1e9;

/// Records a range on every node that has none. A range that is there counts as the mean ± 4 deviations. Where the
/// estimate has lost touch, nothing is recorded until the next range that is there.
pub(super) fn estimate(graph: &mut Graph) {
    let mut table: Vec<Option<Vec<Moments>>> = vec![None; graph.bound()];
    for id in graph.topo_order() {
        let known = graph.node(id).range.is_some();
        let moments = match &graph.node(id).range {
            Some(range) => Some(from_range(range)),
            None => of_node(graph, id, &table).filter(|m| m.iter().all(Moments::is_plausible)),
        };
        if let Some(moments) = moments.as_ref().filter(|_| !known) {
            graph.node_mut(id).range = Some(to_range(moments));
        }
        table[id.index()] = moments;
    }
}

impl Moments {
    fn is_plausible(&self) -> bool {
        self.mean.abs() < LARGEST && self.var < LARGEST * LARGEST
    }
}

fn from_range(range: &ValueRange) -> Vec<Moments> {
    let moments = |(lo, hi): (&f64, &f64)| {
        let deviation = (hi - lo) / (2.0 * DEVIATIONS);
        Moments { mean: (lo + hi) / 2.0, var: deviation * deviation }
    };
    range.lo.iter().zip(&range.hi).map(moments).collect()
}

fn to_range(moments: &[Moments]) -> ValueRange {
    let end = |m: &Moments, sign: f64| m.mean + sign * DEVIATIONS * m.var.sqrt();
    ValueRange {
        lo: moments.iter().map(|m| end(m, -1.0)).collect(),
        hi: moments.iter().map(|m| end(m, 1.0)).collect(),
    }
}

fn of_node(graph: &Graph, id: NodeId, table: &[Option<Vec<Moments>>]) -> Option<Vec<Moments>> {
    let operands: Vec<NodeId> = graph.operands(id);
    let known: Vec<&Vec<Moments>> =
        operands.iter().map(|o| table[o.index()].as_ref()).collect::<Option<_>>()?;
    let x = |slot: usize| known[slot];
    let shape = graph.shape(id);
    let tensor = |id| graph.weights().member(id, MemberIdx::FIRST);
    let per_channel = |t: &Tensor, c: usize| t.get(if t.len() == 1 { 0 } else { c * t.len() / shape.c });
    let affine = |m: Moments, s: f64, t: f64| Moments { mean: s * m.mean + t, var: s * s * m.var };
    let channels = 0..shape.c;
    Some(match graph.op(id) {
        Op::Input { .. } => vec![Moments { mean: 0.0, var: 1.0 }; shape.c],
        Op::Conv2d(conv) => {
            let sums = weighted(tensor(conv.weight), x(0), conv.groups, 1);
            with_bias(sums, conv.bias.map(tensor), shape)
        }
        Op::Linear(linear) => {
            let area = graph.shape(operands[0]).area();
            let sums = weighted(tensor(linear.weight), x(0), 1, area);
            with_bias(sums, linear.bias.map(tensor), shape)
        }
        Op::BatchNorm { scale, shift } => channels
            .map(|c| affine(x(0)[c], per_channel(tensor(*scale), c), per_channel(tensor(*shift), c)))
            .collect(),
        Op::Scale { factor } => {
            channels.map(|c| affine(x(0)[c], per_channel(tensor(*factor), c), 0.0)).collect()
        }
        Op::AddConst { value } => {
            channels.map(|c| affine(x(0)[c], 1.0, per_channel(tensor(*value), c))).collect()
        }
        Op::Pool(pool) => channels.map(|c| affine(x(0)[c], pool_factor(pool), 0.0)).collect(),
        Op::Poly { coeffs } => {
            let table = tensor(*coeffs);
            let row = |r: usize, c: usize| {
                table.get(r * table.dims()[1] + if table.dims()[1] == 1 { 0 } else { c })
            };
            let value = |c: usize, z: f64| (0..table.dims()[0]).rev().fold(0.0, |acc, r| acc * z + row(r, c));
            channels.map(|c| expect(x(0)[c], Moments::default(), |z, _| value(c, z))).collect()
        }
        Op::Bivar { coeffs } => {
            let table = tensor(*coeffs);
            let powers: Vec<_> = monomials(bivar_degree(table.dims()[0]).unwrap_or(0)).collect();
            let row = |r: usize, c: usize| {
                table.get(r * table.dims()[1] + if table.dims()[1] == 1 { 0 } else { c })
            };
            let value = |c: usize, a: f64, b: f64| {
                powers
                    .iter()
                    .enumerate()
                    .map(|(r, &(i, j))| row(r, c) * a.powi(i as i32) * b.powi(j as i32))
                    .sum()
            };
            channels.map(|c| expect(x(0)[c], x(1)[c], |a, b| value(c, a, b))).collect()
        }
        Op::Add => channels
            .map(|c| Moments { mean: x(0)[c].mean + x(1)[c].mean, var: x(0)[c].var + x(1)[c].var })
            .collect(),
        Op::Mul => channels.map(|c| expect(x(0)[c], x(1)[c], |a, b| a * b)).collect(),
        Op::Concat | Op::Slice(_) | Op::Pad(_) | Op::Flatten | Op::Output => {
            let Channels::Moved(from) = fhec_ir::channels(graph, id) else { return None };
            from.into_iter().map(|from| from.map_or(Moments::default(), |(slot, c)| x(slot)[c])).collect()
        }
    })
}

/// What pooling multiplies a mean by, windows at borders aside; neighbors count as fully correlated.
fn pool_factor(pool: &Pool) -> f64 {
    match pool.divisor {
        Divisor::Constant(k) => (pool.kernel[0] * pool.kernel[1]) as f64 / k,
        Divisor::ExcludePad => 1.0,
    }
}

/// Sums of weights times independent channels; each channel stands for `area` consecutive inputs.
fn weighted(weight: &Tensor, x: &[Moments], groups: usize, area: usize) -> Vec<Moments> {
    let dims = weight.dims();
    let taps: usize = dims[2..].iter().product();
    let values = weight.to_f64();
    let row = |o: usize| {
        let first = o / (dims[0] / groups) * dims[1];
        let terms = values[o * dims[1] * taps..(o + 1) * dims[1] * taps].iter().enumerate();
        terms.fold(Moments::default(), |sum, (i, w)| {
            let m = x[(first + i / taps) / area];
            Moments { mean: sum.mean + w * m.mean, var: sum.var + w * w * m.var }
        })
    };
    (0..dims[0]).map(row).collect()
}

fn with_bias(mut moments: Vec<Moments>, bias: Option<&Tensor>, shape: Shape) -> Vec<Moments> {
    if let Some(bias) = bias {
        let per_channel = bias.len() / shape.c;
        for (c, m) in moments.iter_mut().enumerate() {
            m.mean += bias.get(c * per_channel);
        }
    }
    moments
}

/// Mean and variance of a function of two independent normal numbers, exact for polynomials of degree 6.
fn expect(x: Moments, y: Moments, f: impl Fn(f64, f64) -> f64) -> Moments {
    // Nodes and weights of the seven-point Gauss-Hermite rule for the standard normal density.
    const RULE: [(f64, f64); 7] = [
        (-3.750_439_717_725_742, 5.482_688_559_722_184e-4),
        (-2.366_759_410_734_541, 3.075_712_396_758_65e-2),
        (-1.154_405_394_739_968, 2.401_231_786_050_126e-1),
        (0.0, 4.571_428_571_428_573e-1),
        (1.154_405_394_739_968, 2.401_231_786_050_126e-1),
        (2.366_759_410_734_541, 3.075_712_396_758_65e-2),
        (3.750_439_717_725_742, 5.482_688_559_722_184e-4),
    ];
    let (dx, dy) = (x.var.sqrt(), y.var.sqrt());
    let (mut mean, mut square) = (0.0, 0.0);
    for (a, wa) in RULE {
        for (b, wb) in RULE {
            let value = f(x.mean + dx * a, y.mean + dy * b);
            mean += wa * wb * value;
            square += wa * wb * value * value;
        }
    }
    Moments { mean, var: (square - mean * mean).max(0.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn square_of_a_standard_normal_has_mean_one_and_variance_two() {
        let m = expect(Moments { mean: 0.0, var: 1.0 }, Moments::default(), |x, _| x * x);
        assert!((m.mean - 1.0).abs() < 1e-12 && (m.var - 2.0).abs() < 1e-10, "{m:?}");
    }

    #[test]
    fn range_and_moments_are_inverse() {
        let range = ValueRange { lo: vec![-1.0], hi: vec![7.0] };
        assert_eq!(to_range(&from_range(&range)), range);
    }
}
