//! Slow and obvious oracles for the tests of this crate.

use crate::constants::Constants;
use crate::layout::Layout;
use crate::linear::{Diagonals, LinearOp, Pairing};
use crate::plan::{ExpandedPlan, Plan};
use crate::rotation::Rotation;
use std::collections::BTreeMap;

/// A small seeded generator (splitmix64).
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x1234_5678_9ABC_DEF0)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        (self.next() % u64::from(bound)) as u32
    }

    /// Uniform in [-1, 1).
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
}

/// `rot(x, r)[s] = x[s + r]`.
pub(crate) fn rotate(x: &[f64], r: Rotation) -> Vec<f64> {
    (0..x.len()).map(|s| x[(s + r.left(x.len())) % x.len()]).collect()
}

/// Σ d·rot(x, r), taken apart and folded.
pub(crate) fn apply_diagonals(diagonals: &Diagonals, inputs: &[Vec<f64>]) -> Vec<Vec<f64>> {
    apply_plan(&Plan::trivial(diagonals).expand(diagonals).unwrap(), diagonals, inputs)
}

/// Executes an expanded plan on slot vectors.
pub(crate) fn apply_plan(plan: &ExpandedPlan, diagonals: &Diagonals, inputs: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let slots = diagonals.slots();
    let nothing = || [vec![0.0; slots], vec![0.0; slots]];
    let mut at: BTreeMap<(u32, Rotation), [Vec<f64>; 2]> = BTreeMap::new();
    let add = |total: &mut [Vec<f64>; 2], part: [Vec<f64>; 2]| {
        let both = total.iter_mut().flatten().zip(part.into_iter().flatten());
        both.for_each(|(y, x)| *y += x);
    };
    let (mut re, mut im) = (vec![0.0; diagonals.period()], vec![0.0; diagonals.period()]);
    for group in &plan.groups {
        let mut inner = [vec![0.0; slots], vec![0.0; slots]];
        for term in &group.terms {
            diagonals.write(term.diagonal, group.giant, &mut re, &mut im);
            let rotated = rotate(&inputs[term.input as usize], plan.babies[term.baby as usize]);
            for (part, vector) in inner.iter_mut().zip([&re, &im]) {
                part.iter_mut().enumerate().for_each(|(s, y)| *y += vector[s % vector.len()] * rotated[s]);
            }
        }
        add(at.entry((group.sum, group.giant)).or_insert_with(nothing), inner);
    }
    for sum in 0..diagonals.n_sums() as u32 {
        for hop in &plan.hops {
            if let Some(part) = at.remove(&(sum, hop.from)) {
                let rotated = part.map(|half| rotate(&half, hop.by));
                add(at.entry((sum, hop.to)).or_insert_with(nothing), rotated);
            }
        }
    }
    assert!(at.keys().all(|(_, giant)| giant.is_zero()), "sums that never come to their end");
    let mut outputs = Vec::new();
    for sum in 0..diagonals.n_sums() as u32 {
        let [re, im] = at.remove(&(sum, Rotation::ZERO)).unwrap_or_else(nothing);
        match plan.pairing {
            Pairing::None => outputs.push(re),
            Pairing::Halves => {
                let far = rotate(&im, plan.half.unwrap());
                outputs.push(re.iter().zip(far).map(|(a, b)| a + b).collect());
            }
            Pairing::Outputs => outputs.extend([re, im]),
        }
    }
    outputs.truncate(plan.n_outputs);
    for y in &mut outputs {
        for &fold in &plan.folds {
            let rotated = rotate(y, fold);
            y.iter_mut().zip(rotated).for_each(|(a, b)| *a += b);
        }
    }
    outputs
}

/// Direct evaluation of an operation, straight from its definition.
pub(crate) fn naive(
    op: &LinearOp,
    input: &Layout,
    output: &Layout,
    constants: &Constants,
    tensor: &[f64],
) -> Vec<f64> {
    let (from, to) = (input.shape(), output.shape());
    let most = input.members().max(output.members());
    let mut result = vec![0.0; output.members() * to.len()];
    let read = |m: usize, c: i64, y: i64, x: i64| {
        let inside = c >= 0
            && c < i64::from(from.channels)
            && y >= 0
            && y < i64::from(from.height)
            && x >= 0
            && x < i64::from(from.width);
        let at = || {
            ((m as i64 * i64::from(from.channels) + c) * i64::from(from.height) + y) * i64::from(from.width)
                + x
        };
        if inside { tensor[at() as usize] } else { 0.0 }
    };
    for m in 0..most {
        let (m_in, m_out) = (m.min(input.members() - 1), m.min(output.members() - 1));
        for c in 0..to.channels as usize {
            for y in 0..to.height as usize {
                for x in 0..to.width as usize {
                    let value = element(op, constants, from, m, (c, y as i64, x as i64), &|c, y, x| {
                        read(m_in, c, y, x)
                    });
                    let at =
                        ((m_out * to.channels as usize + c) * to.height as usize + y) * to.width as usize + x;
                    result[at] += value;
                }
            }
        }
    }
    result
}

fn element(
    op: &LinearOp,
    constants: &Constants,
    from: crate::layout::Shape,
    m: usize,
    (c, y, x): (usize, i64, i64),
    read: &dyn Fn(i64, i64, i64) -> f64,
) -> f64 {
    let mut sum = 0.0;
    match op {
        LinearOp::Conv2d { weight, stride, pads, dilation, groups } => {
            let w = constants.values(*weight).unwrap();
            let [out, in_group, rows, columns] = w.shape[..] else { unreachable!() };
            let group = c / (out / *groups as usize);
            for i in 0..in_group {
                for ky in 0..rows {
                    for kx in 0..columns {
                        let at = ((c * in_group + i) * rows + ky) * columns + kx;
                        let iy = y * i64::from(stride[0]) + ky as i64 * i64::from(dilation[0])
                            - i64::from(pads[0]);
                        let ix = x * i64::from(stride[1]) + kx as i64 * i64::from(dilation[1])
                            - i64::from(pads[1]);
                        sum += w.data[m * w.member_step() + at] * read((group * in_group + i) as i64, iy, ix);
                    }
                }
            }
        }
        LinearOp::Dense { weight } => {
            let w = constants.values(*weight).unwrap();
            let mut at = m * w.member_step() + c * from.len();
            for i in 0..i64::from(from.channels) {
                for iy in 0..i64::from(from.height) {
                    for ix in 0..i64::from(from.width) {
                        sum += w.data[at] * read(i, iy, ix);
                        at += 1;
                    }
                }
            }
        }
        LinearOp::SumPool { kernel, stride, pads, factor } => {
            for ky in 0..i64::from(kernel[0]) {
                for kx in 0..i64::from(kernel[1]) {
                    let iy = y * i64::from(stride[0]) + ky - i64::from(pads[0]);
                    sum += factor * read(c as i64, iy, x * i64::from(stride[1]) + kx - i64::from(pads[1]));
                }
            }
        }
        LinearOp::Pick { factors, channel_offset, stride, pads } => {
            let iy = y * i64::from(stride[0]) - i64::from(pads[0]);
            let ix = x * i64::from(stride[1]) - i64::from(pads[1]);
            let factor = factors.map_or(1.0, |id| {
                let w = constants.values(id).unwrap();
                w.data[m * w.member_step() + if w.len() == 1 { 0 } else { c }]
            });
            sum = factor * read(c as i64 - i64::from(*channel_offset), iy, ix);
        }
    }
    sum
}

/// A small network with every kind of scheduling step: convolution, square, residual join, dense layer.
pub(crate) fn sample_program() -> crate::program::ProgramSpec {
    use crate::constants::{Codebook, Tensor, TensorData};
    use crate::ids::{CodebookId, CtRange, LayerId, LayoutId, MapId};
    use crate::layout::{Packing, Shape};
    use crate::linear::{LinearTerm, Operand};
    use crate::params::{Level, ParamsSpec, ntt_primes_near};
    use crate::plan::{CostModel, plan};
    use crate::program::*;
    use crate::scale::Scale;

    let log_n = 9;
    let mut towers = Vec::new();
    for bits in [45.0, 36.0, 38.0, 20.0] {
        towers.extend(ntt_primes_near(f64::exp2(bits), log_n, 1, &towers).unwrap());
    }
    let special_primes = ntt_primes_near(f64::exp2(46.0), log_n, 1, &towers).unwrap();
    let params = ParamsSpec {
        log_n,
        towers,
        special_primes,
        digit_size: 1,
        pool: None,
        lower: Vec::new(),
        insecure: false,
        toy: true,
    };

    let mut rng = Rng::new(42);
    let mut random = |n: usize| (0..n).map(|_| 0.5 * rng.unit() as f32).collect::<Vec<_>>();
    let mut constants = Constants::default();
    let first = constants.push(Tensor::dense(vec![4, 2, 3, 3], random(72)));
    constants.codebooks.push(Codebook { members: 1, values: random(5) });
    let indices = (0..144).map(|i| (i * i % 5) as u16).collect();
    let data = TensorData::Clustered { codebooks: vec![CodebookId(0)], indices };
    let second = constants.push(Tensor { members: 1, shape: vec![4, 4, 3, 3], data });
    let dense = constants.push(Tensor::dense(vec![5, 256], random(1280)));
    let bias = constants.push(Tensor::dense(vec![4], random(4)));
    let logit_bias = constants.push(Tensor::dense(vec![5], random(5)));

    let image = Layout::fresh(Packing::Packed, Shape::new(2, 8, 8), 1, 256).unwrap();
    let hidden = Layout::fresh(Packing::Packed, Shape::new(4, 8, 8), 1, 256).unwrap();
    let logits = Layout::vector(Packing::Packed, 5, 1, 256).unwrap();
    let layouts = [image, hidden, logits];
    let conv =
        |weight| LinearOp::Conv2d { weight, stride: [1; 2], pads: [1; 2], dilation: [1; 2], groups: 1 };
    let checked = crate::params::Params::new(params.clone()).unwrap();
    let costs = CostModel::default().at(&checked, Level(2));
    let map = |op: LinearOp, input: u32, output: u32, pairing: Pairing| {
        let operand = Operand { op: &op, input: &layouts[input as usize] };
        let diagonals = Diagonals::build(&[operand], &layouts[output as usize], pairing, &constants).unwrap();
        let plan = plan(&diagonals, &costs, &Default::default());
        let terms = vec![LinearTerm { op, input: LayoutId(input) }];
        LinearMap { terms, output: LayoutId(output), pairing, plan }
    };
    let maps = vec![
        map(conv(first), 0, 1, Pairing::None),
        map(conv(second), 1, 1, Pairing::Halves),
        map(LinearOp::Dense { weight: dense }, 1, 2, Pairing::None),
    ];

    let scale = Scale::from_log2(22.0);
    let before_rescale = |tower: usize| scale.times(Scale::new(params.towers[tower] as f64).unwrap());
    let ct = |register: u32| CtRange::new(register, 1);
    let linear = |dst, src, map, tower| Op::Linear {
        dst: ct(dst),
        src: vec![ct(src)],
        map: MapId(map),
        scale: before_rescale(tower),
    };
    let code = [
        (0, Op::Input { dst: ct(0) }),
        (0, linear(1, 0, 0, 3)),
        (0, Op::Free { src: ct(0) }),
        (0, Op::Rescale { dst: ct(0), src: ct(1) }),
        (0, Op::Free { src: ct(1) }),
        (0, Op::AddPlain { dst: ct(1), src: ct(0), tensor: bias }),
        (0, Op::Free { src: ct(0) }),
        (1, Op::Square { dst: ct(2), src: ct(1) }),
        (1, linear(3, 2, 1, 2)),
        (1, Op::Free { src: ct(2) }),
        (1, Op::MulScalar { dst: ct(4), src: ct(1), value: 0.5, scale: before_rescale(2) }),
        (1, Op::Free { src: ct(1) }),
        (1, Op::Add { dst: ct(5), a: ct(3), b: ct(4) }),
        (1, Op::Free { src: ct(3) }),
        (1, Op::Free { src: ct(4) }),
        (1, Op::Rescale { dst: ct(6), src: ct(5) }),
        (1, Op::Free { src: ct(5) }),
        (2, linear(7, 6, 2, 1)),
        (2, Op::Free { src: ct(6) }),
        (2, Op::Rescale { dst: ct(8), src: ct(7) }),
        (2, Op::Free { src: ct(7) }),
        (2, Op::AddPlain { dst: ct(9), src: ct(8), tensor: logit_bias }),
        (2, Op::Free { src: ct(8) }),
        (2, Op::Output { src: ct(9) }),
    ];
    let layer = |name: &str| LayerSpec { name: name.to_owned(), seconds: 0.25, error: 0.0, peak: 4.0 };
    let mut program = ProgramSpec {
        params,
        origin: Origin { model: "sample".into(), producer: "test".into(), packing: "packed".into() },
        input: InputSpec {
            name: "image".into(),
            layout: LayoutId(0),
            level: Level(3),
            scale,
            preprocessing: Preprocessing { mean: vec![0.5, 0.25], std: vec![0.5, 2.0] },
            range: Some(Interval { low: -1.0, high: 1.5 }),
            ports: vec![Port {
                name: "image".into(),
                dims: vec![1, 8, 8, 2],
                channels_last: true,
                offset: 0,
            }],
        },
        output: OutputSpec {
            name: "logits".into(),
            layout: LayoutId(2),
            labels: vec![],
            range: None,
            ports: vec![Port { name: "logits".into(), dims: vec![1, 5], channels_last: false, offset: 0 }],
            tails: vec![Tail {
                name: "label".into(),
                port: 0,
                steps: vec![
                    TailStep::Softmax { length: 5, inner: 1 },
                    TailStep::ArgMax { length: 5, inner: 1 },
                ],
                classes: ["a", "b", "c", "d", "e"].map(str::to_owned).to_vec(),
            }],
        },
        layouts: layouts.iter().map(|layout| layout.spec().clone()).collect(),
        constants,
        maps,
        layers: vec![layer("conv1"), layer("block"), layer("classifier")],
        instructions: code.into_iter().map(|(y, op)| Instruction { layer: LayerId(y), op }).collect(),
        rotation_keys: vec![],
        relin_level: None,
        conjugation_level: None,
        lower_keys: vec![],
        prediction: Prediction { seconds: 1.0, max_abs_error: 1e-3, ..Prediction::default() },
    };
    let keys = crate::check::required_keys(&program).unwrap();
    program.rotation_keys = keys.rotations;
    program.relin_level = keys.relin;
    program.conjugation_level = keys.conjugation;
    program.lower_keys = keys.lower;
    program
}
