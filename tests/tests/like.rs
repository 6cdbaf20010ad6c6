//! Keys survive a retraining: a program that is built like another one is evaluated with the other's keys.

use std::sync::Arc;

use fhe_bytecode::CheckedProgram;
use fhe_ckks::{Context, key_request};
use fhe_client::Client;
use fhe_machine::{Cancel, Input, Model, Options, Session, Silent};
use fhe_runtime::clear_output;
use fhe_secret::{SecretKey, SeedSource};
use fhec::{Calibration, CompileError, Request, compile};
use fhec_tests::onnx::OnnxWriter;

const SIZE: usize = 6;
const N: usize = SIZE * SIZE;

/// A small CNN; another seed is another training of it.
fn network(seed: u32, classes: usize) -> Vec<u8> {
    let mut w = OnnxWriter::new("trained");
    let mut state = seed;
    let mut weights = |n: usize, size: f32| -> Vec<f32> {
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 23) as f32 - 1.0
        };
        (0..n).map(|_| size * next()).collect()
    };
    let (kernel, dense) = (weights(3 * 9, 0.4), weights(3 * 16 * classes, 0.3));
    let x = w.input("x", &[Some(1), Some(1), Some(SIZE as i64), Some(SIZE as i64)]);
    let kernel = w.tensor("k", &[3, 1, 3, 3], &kernel);
    let y = w.node("Conv", &[&x, &kernel]);
    let y = w.node("Mul", &[&y, &y]);
    let y = w.node("Flatten", &[&y]);
    let dense = w.tensor("w", &[48, classes], &dense);
    let y = w.node("MatMul", &[&y, &dense]);
    w.finish(&y, &[Some(1), Some(classes as i64)])
}

fn inputs(seed: usize) -> Vec<Vec<f64>> {
    (0..8).map(|i| (0..N).map(|j| ((i * 31 + j * 17 + seed) % 23) as f64 / 11.5 - 1.0).collect()).collect()
}

fn request(seed: u32, classes: usize) -> Request {
    Request {
        calibration: Calibration::Inputs(inputs(seed as usize)),
        toy: true,
        log_n: Some(9..=11),
        ..Request::new(fhec::Model::onnx("trained.onnx", network(seed, classes)))
    }
}

fn built(request: &Request) -> CheckedProgram {
    compile(request, &mut ()).unwrap().built.program
}

#[test]
fn one_key_set_serves_two_trainings_of_a_network() {
    let old = built(&request(1, 4));
    let new = built(&Request { like: Some(Box::new(old.clone())), ..request(2, 4) });
    assert_eq!(new.params().fingerprint(), old.params().fingerprint());
    assert_ne!(new.fingerprint(), old.fingerprint());

    // Keys as the client of the first program has them.
    let mut seeds = SeedSource::os();
    let context = Context::new(old.params().clone()).unwrap();
    let key = SecretKey::generate(&context, &mut seeds).unwrap();
    let keys = key.evaluation_keys(&context, &key_request(&context, &old), &mut seeds).unwrap();

    let client = Client::new(Arc::new(new.interface()), context.clone(), key).unwrap();
    let options = Options { memory: 1 << 30, n_evaluations: 1 };
    let model = Model::new(&new, context.clone(), options).unwrap();
    let session = Session::new(Arc::new(model), Arc::new(keys)).unwrap();
    let tensor = &inputs(2)[3];
    let fresh = client.encrypt(tensor, &mut seeds).unwrap();
    let fresh = fresh.iter().map(|ciphertext| ciphertext.expand(&context)).collect();
    let input = Input::new(&context, client.key().id(), fresh);
    let (result, _) = session.evaluate(input, &Cancel::default(), &Silent).unwrap();
    let found = client.decrypt_raw(&result).unwrap();
    let clear = clear_output(&new, tensor).unwrap();
    let off = found.iter().zip(&clear).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(off <= new.spec().prediction.max_abs_error, "{off}");
}

#[test]
fn the_same_training_again_is_the_same_program() {
    let old = built(&request(1, 4));
    let new = built(&Request { like: Some(Box::new(old.clone())), ..request(1, 4) });
    assert_eq!(new.spec().rotation_keys, old.spec().rotation_keys);
    assert_eq!(new.spec().layouts, old.spec().layouts);
}

#[test]
fn another_architecture_is_refused() {
    let old = built(&request(1, 4));
    let mut deeper = request(2, 4);
    deeper.models = vec![fhec::Model::onnx("deeper.onnx", deep())];
    let error = compile(&Request { like: Some(Box::new(old)), ..deeper }, &mut ()).unwrap_err();
    assert!(matches!(error, CompileError::Unlike { .. }), "{error}");
}

/// A file of keys holds exactly those of its program, so fewer keys are other keys.
#[test]
fn a_program_that_is_built_asks_for_the_very_keys_of_the_other() {
    let old = built(&request(1, 4));
    for classes in [2, 3, 4] {
        let like = Some(Box::new(old.clone()));
        match compile(&Request { like, ..request(2, classes) }, &mut ()) {
            Ok(new) => assert_eq!(new.built.program.spec().rotation_keys, old.spec().rotation_keys),
            Err(error) => assert!(classes != 4 && matches!(error, CompileError::Unlike { .. }), "{error}"),
        }
    }
}

/// One square more.
fn deep() -> Vec<u8> {
    let mut w = OnnxWriter::new("deeper");
    let x = w.input("x", &[Some(1), Some(1), Some(SIZE as i64), Some(SIZE as i64)]);
    let kernel = w.tensor("k", &[3, 1, 3, 3], &[0.1; 27]);
    let y = w.node("Conv", &[&x, &kernel]);
    let y = w.node("Mul", &[&y, &y]);
    let y = w.node("Flatten", &[&y]);
    let dense = w.tensor("w", &[48, 8], &[0.05; 48 * 8]);
    let y = w.node("MatMul", &[&y, &dense]);
    let y = w.node("Mul", &[&y, &y]);
    let y = w.node("Mul", &[&y, &y]);
    let last = w.tensor("v", &[8, 2], &[0.1; 16]);
    let y = w.node("MatMul", &[&y, &last]);
    w.finish(&y, &[Some(1), Some(2)])
}
