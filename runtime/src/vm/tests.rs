//! Hand-made programs under encryption against direct evaluation, at a ring size that protects nothing.

use std::sync::Arc;

use fhe_bytecode::params::ntt_primes_near;
use fhe_bytecode::*;

use super::*;
use crate::ckks::{Context, SecretKey, SeedSource};

const IN: Shape = Shape { channels: 2, height: 4, width: 4 };
const MID: Shape = Shape { channels: 3, height: 4, width: 4 };
const N_OUT: u32 = 5;

/// A small deterministic value for every index.
fn value(index: usize) -> f64 {
    ((index * 7919 + 13) % 101) as f64 / 101.0 - 0.5
}

fn values(n: usize, offset: usize) -> Vec<f32> {
    (0..n).map(|i| value(i + offset) as f32).collect()
}

/// Convolution, bias, square and a dense layer over two levels of rescaling.
fn toy_program(packing: Packing) -> CheckedProgram {
    let log_n = 10;
    let mut towers = Vec::new();
    for bits in [40, 45, 30] {
        towers.extend(ntt_primes_near(2f64.powi(bits), log_n, 1, &towers).unwrap());
    }
    let special_primes = ntt_primes_near(2f64.powi(50), log_n, 1, &towers).unwrap();
    let (q1, q2) = (towers[1], towers[2]);
    let slots = 1 << (log_n - 1);
    let params = ParamsSpec { log_n, towers, special_primes, digit_size: 1, insecure: false, toy: true };

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
    let map = |op: &LinearOp, from: (&Layout, u32), to: (&Layout, u32)| {
        let diagonals = Diagonals::build(&[Operand { op, input: from.0 }], to.0, &constants).unwrap();
        let terms = vec![LinearTerm { op: op.clone(), input: LayoutId(from.1) }];
        LinearMap { terms, output: LayoutId(to.1), plan: Plan::trivial(&diagonals) }
    };
    let maps = vec![map(&ops[0], (&input, 0), (&middle, 1)), map(&ops[1], (&middle, 1), (&output, 2))];
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
        input: InputSpec {
            name: "x".to_owned(),
            layout: LayoutId(0),
            level: Level(2),
            scale,
            preprocessing: Preprocessing::default(),
        },
        output: OutputSpec { name: "y".to_owned(), layout: LayoutId(2), labels: Vec::new() },
        layouts: [&input, &middle, &output].map(|layout| layout.spec().clone()).to_vec(),
        constants,
        maps,
        layers: vec![layer("conv"), layer("act"), layer("fc")],
        instructions: ops.map(|(layer, op)| Instruction { layer: LayerId(layer), op }).to_vec(),
        rotation_keys: Vec::new(),
        relin_level: None,
        prediction: Prediction::default(),
    };
    let keys = required_keys(&spec).unwrap();
    spec.rotation_keys = keys.rotations;
    spec.relin_level = keys.relin;
    CheckedProgram::new(spec).unwrap()
}

/// What the program computes, written down directly.
fn expected(input: &[f64]) -> Vec<f64> {
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

struct Run {
    context: Arc<Context>,
    key: SecretKey,
    keys: EvaluationKeys,
}

fn setup(program: &CheckedProgram) -> Run {
    let context = Context::new(program.params().clone()).unwrap();
    let mut seeds = SeedSource::deterministic(1);
    let key = SecretKey::generate(&context, &mut seeds).unwrap();
    let request = key_request(&context, program);
    let keys = EvaluationKeys::generate(&context, &key, &request, &mut seeds).unwrap();
    Run { context, key, keys }
}

fn options(memory: u64) -> Options {
    Options { memory, n_evaluations: 2 }
}

/// Encrypted evaluation of a packing agrees with direct evaluation under any memory budget, also the second time.
fn check(packing: Packing) {
    let program = toy_program(packing);
    let Run { context, key, keys } = setup(&program);
    let input: Vec<f64> = (0..32).map(|i| value(i + 500)).collect();
    let client = Client::new(&program, context.clone(), key).unwrap();
    let fresh = client.encrypt(&input, &mut SeedSource::deterministic(5)).unwrap();
    let fresh: Vec<_> = fresh.iter().map(|ct| ct.expand(&context)).collect();
    let mut results = Vec::new();
    let plenty = Machine::new(&program, context.clone(), keys.clone(), options(1 << 40)).unwrap();
    let least = plenty.memory().key_bytes + plenty.memory().working_bytes;
    for memory in [1 << 40, least, least + plenty.memory().plaintext_bytes / 20] {
        let machine = Machine::new(&program, context.clone(), keys.clone(), options(memory)).unwrap();
        assert!(machine.memory().total() <= memory);
        for _ in 0..2 {
            let (result, profile) = machine.run(fresh.clone(), &Silent).unwrap();
            assert_eq!(profile.events.len(), program.spec().instructions.len());
            results.push(result);
        }
    }
    // Cached or not, the bits are the same.
    assert!(results.windows(2).all(|pair| pair[0] == pair[1]));
    let found = client.decrypt(&results[0]).unwrap();
    for (found, expected) in found.iter().zip(expected(&input)) {
        assert!((found - expected).abs() < 1e-3, "{found} instead of {expected}");
    }
}

#[test]
fn packed_program_agrees_with_direct_evaluation() {
    check(Packing::Packed);
}

#[test]
fn hw_program_agrees_with_direct_evaluation() {
    check(Packing::Hw);
}

#[test]
fn one_and_many_threads_give_the_same_bits() {
    let program = toy_program(Packing::Packed);
    let Run { context, key, keys } = setup(&program);
    let client = Client::new(&program, context.clone(), key).unwrap();
    let fresh = client.encrypt(&[0.25; 32], &mut SeedSource::deterministic(5)).unwrap();
    let run = |n_threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
        pool.install(|| {
            let machine = Machine::new(&program, context.clone(), keys.clone(), options(1 << 40)).unwrap();
            let input = fresh.iter().map(|ct| ct.expand(&context)).collect();
            machine.run(input, &Silent).unwrap().0
        })
    };
    assert!(run(1) == run(3));
}

#[test]
fn missing_key_is_named_before_the_work() {
    let program = toy_program(Packing::Packed);
    let Run { context, key, .. } = setup(&program);
    let mut seeds = SeedSource::deterministic(1);
    let keys = EvaluationKeys::generate(&context, &key, &KeyRequest::default(), &mut seeds).unwrap();
    let error = Machine::new(&program, context, keys, options(1 << 40)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the evaluation keys have none for relinearization up to L1: make keys for this program"
    );
}

#[test]
fn too_little_memory_is_said_before_the_work() {
    let program = toy_program(Packing::Packed);
    let Run { context, keys, .. } = setup(&program);
    let error = Machine::new(&program, context, keys, options(1000)).unwrap_err();
    assert!(matches!(error, VmError::TooLittleMemory { budget: 1000, .. }));
}

#[test]
fn input_at_another_level_or_of_another_size_is_refused() {
    let program = toy_program(Packing::Packed);
    let Run { context, key, keys } = setup(&program);
    let client = Client::new(&program, context.clone(), key).unwrap();
    let mut seeds = SeedSource::deterministic(5);
    assert!(matches!(
        client.encrypt(&[0.0; 31], &mut seeds),
        Err(VmError::TensorLength { found: 31, expected: 32 })
    ));
    let machine = Machine::new(&program, context.clone(), keys, options(1 << 40)).unwrap();
    assert!(matches!(machine.run(Vec::new(), &Silent), Err(VmError::InputCount { found: 0, .. })));
    let fresh = client.encrypt(&[0.0; 32], &mut seeds).unwrap()[0].expand(&context);
    let lower = crate::ckks::Evaluator::new(&context).drop_to(&fresh, Level(1)).unwrap();
    assert!(matches!(machine.run(vec![lower], &Silent), Err(VmError::InputForm { .. })));
}
