//! A hand-made program at a ring size that protects nothing, and what it computes.

use fhe_bytecode::params::ntt_primes_near;
use fhe_bytecode::*;

const IN: Shape = Shape { channels: 2, height: 4, width: 4 };
const MID: Shape = Shape { channels: 3, height: 4, width: 4 };
const N_OUT: u32 = 5;

/// A small deterministic value for every index.
pub(crate) fn value(index: usize) -> f64 {
    ((index * 7919 + 13) % 101) as f64 / 101.0 - 0.5
}

fn values(n: usize, offset: usize) -> Vec<f32> {
    (0..n).map(|i| value(i + offset) as f32).collect()
}

/// Convolution, bias, square and a dense layer over two levels of rescaling.
pub(crate) fn toy_program(packing: Packing) -> CheckedProgram {
    paired_toy_program(packing, [Pairing::None; 2])
}

/// The same program with the diagonals of its two linear maps paired.
pub(crate) fn paired_toy_program(packing: Packing, pairings: [Pairing; 2]) -> CheckedProgram {
    let log_n = 10;
    let mut towers = Vec::new();
    for bits in [40, 45, 30] {
        towers.extend(ntt_primes_near(2f64.powi(bits), log_n, 1, &towers).unwrap());
    }
    let special_primes = ntt_primes_near(2f64.powi(50), log_n, 1, &towers).unwrap();
    let (q1, q2) = (towers[1], towers[2]);
    let slots = 1 << (log_n - 1);
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

    let mut constants = Constants::default();
    let conv = constants.push(Tensor::dense(vec![3, 2, 3, 3], values(54, 0)));
    let bias = constants.push(Tensor::dense(vec![3], values(3, 60)));
    let dense = constants.push(Tensor::dense(vec![N_OUT, 48], values(48 * N_OUT as usize, 70)));
    let input = Layout::fresh(packing, IN, 1, slots).unwrap();
    let middle = input.after(packing, MID, [1, 1]).unwrap().0;
    let output = Layout::vector(packing, N_OUT, 1, slots).unwrap();
    let ops = [
        LinearOp::Conv2d { weight: conv, stride: [1, 1], pads: [1, 1], dilation: [1, 1], groups: 1 },
        LinearOp::Dense { weight: dense },
    ];
    let map = |index: usize, from: (&Layout, u32), to: (&Layout, u32)| {
        let (op, pairing) = (&ops[index], pairings[index]);
        let terms = [Operand { op, input: from.0 }];
        let diagonals = Diagonals::build(&terms, to.0, pairing, &constants).unwrap();
        let terms = vec![LinearTerm { op: op.clone(), input: LayoutId(from.1) }];
        LinearMap { terms, output: LayoutId(to.1), pairing, plan: Plan::trivial(&diagonals) }
    };
    let maps = vec![map(0, (&input, 0), (&middle, 1)), map(1, (&middle, 1), (&output, 2))];
    let (n_in, n_mid, n_out) = (input.n_cts() as u32, middle.n_cts() as u32, output.n_cts() as u32);
    let run = |first: u32, len: u32| CtRange::new(first, len);
    let (a, b, c, d, e, f) =
        (run(0, n_in), run(100, n_mid), run(200, n_mid), run(300, n_mid), run(400, n_mid), run(500, n_out));
    let g = run(600, n_out);
    let scale = Scale::from_log2(25.0);
    let up = |q: u64| scale.times(Scale::new(q as f64).unwrap());
    let ops = [
        (0, Op::Input { dst: a }),
        (0, Op::Linear { dst: b, src: vec![a], map: MapId(0), scale: up(q2) }),
        (0, Op::Free { src: a }),
        (0, Op::Rescale { dst: c, src: b }),
        (0, Op::Free { src: b }),
        (0, Op::AddPlain { dst: d, src: c, tensor: bias }),
        (0, Op::Free { src: c }),
        (1, Op::Square { dst: e, src: d }),
        (1, Op::Free { src: d }),
        (2, Op::Linear { dst: f, src: vec![e], map: MapId(1), scale: up(q1) }),
        (2, Op::Free { src: e }),
        (2, Op::Rescale { dst: g, src: f }),
        (2, Op::Free { src: f }),
        (2, Op::Output { src: g }),
    ];
    let layer = |name: &str| LayerSpec { name: name.to_owned(), ..LayerSpec::default() };
    let mut spec = ProgramSpec {
        params,
        origin: Origin::default(),
        input: InputSpec::new("x", LayoutId(0), Level(2), scale),
        output: OutputSpec {
            name: "y".to_owned(),
            layout: LayoutId(2),
            labels: ["ant", "bee", "cat", "dog", "eel"].map(str::to_owned).to_vec(),
            range: None,
            ports: Vec::new(),
            tails: Vec::new(),
        },
        layouts: [&input, &middle, &output].map(|layout| layout.spec().clone()).to_vec(),
        constants,
        maps,
        layers: vec![layer("conv"), layer("act"), layer("fc")],
        instructions: ops.map(|(layer, op)| Instruction { layer: LayerId(layer), op }).to_vec(),
        rotation_keys: Vec::new(),
        relin_level: None,
        conjugation_level: None,
        lower_keys: Vec::new(),
        prediction: Prediction::default(),
    };
    let keys = required_keys(&spec).unwrap();
    spec.rotation_keys = keys.rotations;
    spec.relin_level = keys.relin;
    spec.conjugation_level = keys.conjugation;
    spec.lower_keys = keys.lower;
    CheckedProgram::new(spec).unwrap()
}

/// What the program computes, written down directly.
pub(crate) fn expected(input: &[f64]) -> Vec<f64> {
    let at = |c: usize, y: i64, x: i64| match (0..4).contains(&y) && (0..4).contains(&x) {
        true => input[c * 16 + (y * 4 + x) as usize],
        false => 0.0,
    };
    let weight = |i: usize, offset: usize| f64::from(value(i + offset) as f32);
    let mut middle = Vec::new();
    for out in 0..3 {
        for (y, x) in (0..4).flat_map(|y| (0..4).map(move |x| (y, x))) {
            let mut sum = weight(out, 60);
            for c in 0..2 {
                for (ky, kx) in (0..3).flat_map(|ky| (0..3).map(move |kx| (ky, kx))) {
                    let w = weight(((out * 2 + c) * 3 + ky as usize) * 3 + kx as usize, 0);
                    sum += w * at(c, y + ky - 1, x + kx - 1);
                }
            }
            middle.push(sum * sum);
        }
    }
    (0..N_OUT as usize).map(|o| (0..48).map(|i| weight(o * 48 + i, 70) * middle[i]).sum()).collect()
}
