//! Hand-made programs under encryption against direct evaluation, at a ring size that protects nothing.

#[path = "common/toy.rs"]
mod toy;

use std::sync::Arc;

use fhe_bytecode::{CheckedProgram, Level, Packing, Pairing, TensorData};
use fhe_fixed_seeds::fixed_seeds;
use toy::{expected, paired_toy_program, toy_program, value};

use fhe_ckks::{Ciphertext, Context, EvaluationKeys, KeyRequest, SeededCiphertext, key_request};
use fhe_client::{Client, ClientError};
use fhe_machine::{Cancel, Input, Model, Observer, Options, Progress, Session, Silent, VmError};
use fhe_secret::SecretKey;

struct Run {
    context: Arc<Context>,
    key: SecretKey,
    keys: Arc<EvaluationKeys>,
}

fn setup(program: &CheckedProgram) -> Run {
    setup_with(program, 1)
}

fn setup_with(program: &CheckedProgram, seed: u64) -> Run {
    let context = Context::new(program.params().clone()).unwrap();
    let mut seeds = fixed_seeds(seed);
    let key = SecretKey::generate(&context, &mut seeds).unwrap();
    let request = key_request(&context, program);
    let keys = Arc::new(key.evaluation_keys(&context, &request, &mut seeds).unwrap());
    Run { context, key, keys }
}

/// A session on a model of its own.
fn session(program: &CheckedProgram, run: &Run, memory: u64) -> Session {
    let model = Model::new(program, run.context.clone(), options(memory)).unwrap();
    Session::new(Arc::new(model), run.keys.clone()).unwrap()
}

fn input(run: &Run, fresh: &[SeededCiphertext]) -> Input {
    Input::new(&run.context, run.keys.id(), fresh.iter().map(|ct| ct.expand(&run.context)).collect())
}

fn evaluate(session: &Session, input: Input) -> Result<Vec<Ciphertext>, VmError> {
    session.evaluate(input, &Cancel::default(), &Silent).map(|(result, _)| result)
}

fn options(memory: u64) -> Options {
    Options { memory, n_evaluations: 2 }
}

/// Encrypted evaluation of a packing agrees with direct evaluation under any memory budget, also the second time.
fn check(program: &CheckedProgram) {
    let run = setup(program);
    let values: Vec<f64> = (0..32).map(|i| value(i + 500)).collect();
    let client = Client::new(Arc::new(program.interface()), run.context.clone(), setup(program).key).unwrap();
    let fresh = client.encrypt(&values, &mut fixed_seeds(5)).unwrap();
    let mut results = Vec::new();
    let plenty = session(program, &run, 1 << 40).memory();
    let least = plenty.key_bytes + plenty.working_bytes;
    for memory in [1 << 40, least, least * 17 / 16 + plenty.plaintext_bytes / 20] {
        let session = session(program, &run, memory);
        assert!(session.memory().total() <= memory);
        for _ in 0..2 {
            let (result, profile) =
                session.evaluate(input(&run, &fresh), &Cancel::default(), &Silent).unwrap();
            assert_eq!(profile.events.len(), program.spec().instructions.len());
            results.push(result);
        }
    }
    // Cached or not, the bits are the same.
    assert!(results.windows(2).all(|pair| pair[0] == pair[1]));
    check_batch(&session(program, &run, 1 << 40), &run, &client);
    let found = client.decrypt_raw(&results[0]).unwrap();
    for (found, expected) in found.iter().zip(expected(&values)) {
        assert!((found - expected).abs() < 1e-3, "{found} instead of {expected}");
    }
}

/// Inputs that are evaluated at once get the bits that each gets alone.
fn check_batch(session: &Session, run: &Run, client: &Client) {
    let tensors = [0, 7, 90].map(|first| (0..32).map(|i| value(i + first)).collect::<Vec<f64>>());
    let fresh = tensors.map(|tensor| client.encrypt(&tensor, &mut fixed_seeds(6)).unwrap());
    let inputs = fresh.iter().map(|fresh| input(run, fresh)).collect();
    let (together, _) = session.evaluate_batch(inputs, &Cancel::default(), &Silent).unwrap();
    let alone: Vec<_> = fresh.iter().map(|fresh| evaluate(session, input(run, fresh)).unwrap()).collect();
    assert!(together == alone, "inputs at once get other bits");
    assert_eq!(session.evaluate_batch(Vec::new(), &Cancel::default(), &Silent).unwrap().0.len(), 0);
}

#[test]
fn a_batch_takes_the_memory_of_its_inputs() {
    let program = toy_program(Packing::Packed);
    let run = setup(&program);
    let session = session(&program, &run, 1 << 40);
    let plan = session.memory();
    assert_eq!(session.batch(1 << 40), 4);
    assert_eq!(session.batch(plan.total()), 1);
    let room = |n: u64| {
        let working = n * plan.working_bytes;
        (plan.key_bytes + plan.plaintext_bytes + working + (2 * working).min(1 << 30)) * 16 / 15 + 16
    };
    assert_eq!([2, 3, 4].map(|n| session.batch(room(n))), [2, 3, 4]);
    assert_eq!(session.batch(room(2) - plan.working_bytes), 1);
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
    let run = setup(program);
    let client = Client::new(Arc::new(program.interface()), run.context.clone(), setup(program).key).unwrap();
    let fresh = client.encrypt(&[0.25; 32], &mut fixed_seeds(5)).unwrap();
    let session = session(program, &run, 1 << 40);
    let run = || session.evaluate(input(&run, &fresh), &Cancel::default(), &Silent).unwrap().1.n_encoded;
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
    let run = setup(&program);
    let client =
        Client::new(Arc::new(program.interface()), run.context.clone(), setup(&program).key).unwrap();
    let fresh = client.encrypt(&[0.25; 32], &mut fixed_seeds(5)).unwrap();
    let with = |n_threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
        pool.install(|| evaluate(&session(&program, &run, 1 << 40), input(&run, &fresh)).unwrap())
    };
    assert!(with(1) == with(3));
}

#[test]
fn missing_key_is_named_before_the_work() {
    let program = toy_program(Packing::Packed);
    let Run { context, key, .. } = setup(&program);
    let mut seeds = fixed_seeds(1);
    let keys = key.evaluation_keys(&context, &KeyRequest::default(), &mut seeds).unwrap();
    let model = Model::new(&program, context, options(1 << 40)).unwrap();
    let error = Session::new(Arc::new(model), Arc::new(keys)).unwrap_err();
    assert_eq!(error.to_string(), "the evaluation keys have none for relinearization up to L1");
}

#[test]
fn too_little_memory_is_said_before_the_work() {
    let program = toy_program(Packing::Packed);
    let Run { context, .. } = setup(&program);
    let error = Model::new(&program, context, options(1000)).unwrap_err();
    assert!(matches!(error, VmError::TooLittleMemory { budget: 1000, .. }));
}

#[test]
fn input_at_another_level_or_of_another_size_is_refused() {
    let program = toy_program(Packing::Packed);
    let run = setup(&program);
    let client =
        Client::new(Arc::new(program.interface()), run.context.clone(), setup(&program).key).unwrap();
    let mut seeds = fixed_seeds(5);
    assert!(matches!(
        client.encrypt(&[0.0; 31], &mut seeds),
        Err(ClientError::TensorLength { found: 31, expected: 32 })
    ));
    let session = session(&program, &run, 1 << 40);
    assert!(matches!(evaluate(&session, input(&run, &[])), Err(VmError::InputCount { found: 0, .. })));
    let fresh = client.encrypt(&[0.0; 32], &mut seeds).unwrap()[0].expand(&run.context);
    let lower = fhe_ckks::Evaluator::new(&run.context).drop_to(&fresh, Level(1)).unwrap();
    let lower = Input::new(&run.context, run.keys.id(), vec![lower]);
    assert!(matches!(evaluate(&session, lower), Err(VmError::InputForm { .. })));
}

#[test]
fn two_clients_share_every_plaintext_and_get_the_bits_they_would_get_alone() {
    let program = toy_program(Packing::Packed);
    let runs = [setup_with(&program, 1), setup_with(&program, 2)];
    let fresh: Vec<_> = [1, 2]
        .map(|seed| {
            let Run { context, key, .. } = setup_with(&program, seed);
            let client = Client::new(Arc::new(program.interface()), context, key).unwrap();
            client.encrypt(&[0.25; 32], &mut fixed_seeds(5 + seed)).unwrap()
        })
        .into();
    let alone: Vec<_> = runs
        .iter()
        .zip(&fresh)
        .map(|(run, fresh)| evaluate(&session(&program, run, 1 << 40), input(run, fresh)).unwrap())
        .collect();
    let model = Arc::new(Model::new(&program, runs[0].context.clone(), options(1 << 40)).unwrap());
    let sessions = [0, 1].map(|i| Session::new(model.clone(), runs[i].keys.clone()).unwrap());
    let mut kept = Vec::new();
    for i in [0, 1, 0, 1] {
        assert!(evaluate(&sessions[i], input(&runs[i], &fresh[i])).unwrap() == alone[i]);
        kept.push(model.kept_bytes());
    }
    // What the first evaluation encoded is all there ever is: a second client costs its keys only.
    // The plan is for integers of any size.
    assert!(kept[0] > 0 && kept[0] <= model.plaintext_bytes() && kept[0] >= model.plaintext_bytes() / 2);
    assert!(kept.iter().all(|&bytes| bytes == kept[0]), "{kept:?}");
    let bytes = |session: &Session| session.memory().total();
    assert_eq!(
        bytes(&sessions[1]) - sessions[1].memory().key_bytes,
        bytes(&sessions[0]) - sessions[0].memory().key_bytes
    );
}

#[test]
fn keys_ciphertexts_and_programs_that_do_not_belong_together_are_refused() {
    let program = toy_program(Packing::Packed);
    let (mine, other) = (setup_with(&program, 1), setup_with(&program, 2));
    let session = session(&program, &mine, 1 << 40);
    let client =
        Client::new(Arc::new(program.interface()), mine.context.clone(), setup(&program).key).unwrap();
    let fresh = client.encrypt(&[0.0; 32], &mut fixed_seeds(5)).unwrap();
    assert!(matches!(evaluate(&session, input(&other, &fresh)), Err(VmError::WrongKey { .. })));
    let mut spec = program.spec().clone();
    spec.params.digit_size = if spec.params.digit_size == 1 { 2 } else { 1 };
    let foreign = CheckedProgram::new(spec).unwrap();
    let run = setup(&foreign);
    let model = Arc::new(Model::new(&foreign, run.context.clone(), options(1 << 40)).unwrap());
    assert!(matches!(Session::new(model, mine.keys.clone()), Err(VmError::WrongParameters { .. })));
    let foreign =
        Input::new(&run.context, mine.keys.id(), fresh.iter().map(|ct| ct.expand(&run.context)).collect());
    assert!(matches!(evaluate(&session, foreign), Err(VmError::WrongParameters { .. })));
    assert!(matches!(
        Model::new(&program, run.context, options(1 << 40)),
        Err(VmError::WrongParameters { .. })
    ));
}

#[test]
fn cancelled_evaluation_ends_before_the_next_layer() {
    /// Cancels at the first word of the layer that comes second.
    struct Stop(Cancel, std::sync::Mutex<Vec<String>>);
    impl Observer for Stop {
        fn progress(&self, progress: Progress<'_>) {
            let mut layers = self.1.lock().unwrap();
            if layers.last().is_none_or(|last| last != progress.layer) {
                layers.push(progress.layer.to_owned());
            }
            if layers.len() == 2 {
                self.0.cancel();
            }
        }
    }
    let program = toy_program(Packing::Packed);
    let run = setup(&program);
    let client =
        Client::new(Arc::new(program.interface()), run.context.clone(), setup(&program).key).unwrap();
    let fresh = client.encrypt(&[0.0; 32], &mut fixed_seeds(5)).unwrap();
    let session = session(&program, &run, 1 << 40);
    let cancel = Cancel::default();
    let stop = Stop(cancel.clone(), Default::default());
    let result = session.evaluate(input(&run, &fresh), &cancel, &stop);
    assert!(matches!(result, Err(VmError::Cancelled)), "{result:?}");
    assert_eq!(stop.1.into_inner().unwrap().len(), 2);
    // The session is as good as new.
    evaluate(&session, input(&run, &fresh)).unwrap();
}
