//! Hand-made programs under encryption against direct evaluation, at a ring size that protects nothing.

#[path = "common/toy.rs"]
mod toy;

use std::sync::Arc;

use fhe_bytecode::{CheckedProgram, Level, Packing, Pairing, TensorData};
use toy::{expected, paired_toy_program, toy_program, value};

use fhe_ckks::{Context, EvaluationKeys, KeyRequest, key_request};
use fhe_client::{Client, ClientError};
use fhe_machine::{Machine, Options, Silent, VmError};
use fhe_secret::{SecretKey, SeedSource};

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
    let keys = key.evaluation_keys(&context, &request, &mut seeds).unwrap();
    Run { context, key, keys }
}

fn options(memory: u64) -> Options {
    Options { memory, n_evaluations: 2 }
}

/// Encrypted evaluation of a packing agrees with direct evaluation under any memory budget, also the second time.
fn check(program: &CheckedProgram) {
    let Run { context, key, keys } = setup(program);
    let input: Vec<f64> = (0..32).map(|i| value(i + 500)).collect();
    let client = Client::new(program, context.clone(), key).unwrap();
    let fresh = client.encrypt(&input, &mut SeedSource::deterministic(5)).unwrap();
    let fresh: Vec<_> = fresh.iter().map(|ct| ct.expand(&context)).collect();
    let mut results = Vec::new();
    let plenty = Machine::new(program, context.clone(), keys.clone(), options(1 << 40)).unwrap();
    let least = plenty.memory().key_bytes + plenty.memory().working_bytes;
    for memory in [1 << 40, least, least * 17 / 16 + plenty.memory().plaintext_bytes / 20] {
        let machine = Machine::new(program, context.clone(), keys.clone(), options(memory)).unwrap();
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
    check(&toy_program(Packing::Packed));
}

#[test]
fn hw_program_agrees_with_direct_evaluation() {
    check(&toy_program(Packing::Hw));
}

#[test]
fn complex_diagonals_agree_with_direct_evaluation() {
    for pairings in [[Pairing::Halves; 2], [Pairing::None, Pairing::Halves]] {
        check(&paired_toy_program(Packing::Packed, pairings));
    }
    check(&paired_toy_program(Packing::Hw, [Pairing::Outputs; 2]));
    check(&paired_toy_program(Packing::Hw, [Pairing::Halves, Pairing::None]));
}

/// Plaintexts encoded by each of two evaluations on one thread: two may encode the same one at the same time.
fn n_encoded(program: &CheckedProgram) -> [u64; 2] {
    let Run { context, key, keys } = setup(program);
    let client = Client::new(program, context.clone(), key).unwrap();
    let fresh = client.encrypt(&[0.25; 32], &mut SeedSource::deterministic(5)).unwrap();
    let machine = Machine::new(program, context.clone(), keys, options(1 << 40)).unwrap();
    let run = || {
        let input = fresh.iter().map(|ct| ct.expand(&context)).collect();
        machine.run(input, &Silent).unwrap().1.n_encoded
    };
    rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap().install(|| {
        let first = run();
        [first, run() - first]
    })
}

#[test]
fn second_evaluation_encodes_nothing() {
    let [first, second] = n_encoded(&toy_program(Packing::Packed));
    assert!(first > 0);
    assert_eq!(second, 0);
}

#[test]
fn equal_weights_are_encoded_once_per_mask() {
    let program = toy_program(Packing::Hw);
    let mut spec = program.spec().clone();
    let TensorData::Dense(weights) = &mut spec.constants.tensors[0].data else { unreachable!() };
    weights.iter_mut().for_each(|w| *w = w.signum());
    let clustered = CheckedProgram::new(spec).unwrap();
    // Six pairs of channels with nine kernel positions each, but only two values.
    assert_eq!(n_encoded(&program)[0] - n_encoded(&clustered)[0], 6 * 9 - 2 * 9);
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
    let keys = key.evaluation_keys(&context, &KeyRequest::default(), &mut seeds).unwrap();
    let error = Machine::new(&program, context, keys, options(1 << 40)).unwrap_err();
    assert_eq!(error.to_string(), "the evaluation keys have none for relinearization up to L1");
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
        Err(ClientError::TensorLength { found: 31, expected: 32 })
    ));
    let machine = Machine::new(&program, context.clone(), keys, options(1 << 40)).unwrap();
    assert!(matches!(machine.run(Vec::new(), &Silent), Err(VmError::InputCount { found: 0, .. })));
    let fresh = client.encrypt(&[0.0; 32], &mut seeds).unwrap()[0].expand(&context);
    let lower = fhe_ckks::Evaluator::new(&context).drop_to(&fresh, Level(1)).unwrap();
    assert!(matches!(machine.run(vec![lower], &Silent), Err(VmError::InputForm { .. })));
}
