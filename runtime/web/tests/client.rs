//! What needs no browser: the whole way of a client, and what it refuses.

#[path = "../../machine/tests/common/toy.rs"]
#[allow(dead_code)]
mod toy;

use std::sync::Arc;

use fhe_bytecode::codec::encode_interface;
use fhe_bytecode::{CheckedProgram, Packing, Raw};
use fhe_ckks::{Context, key_request};
use fhe_files::{Ciphertexts, Expected, Stored, decode_request, decode_requested_keys, encode_ciphertexts};
use fhe_machine::{Cancel, Input, Model, Options, Session, Silent};

use fhec_web::Client;

fn program() -> CheckedProgram {
    toy::toy_program(Packing::Packed)
}

fn client(key: Option<&[u8]>) -> Client {
    Client::new(&encode_interface(&program().interface()), key, true).unwrap()
}

fn key_file(client: &Client) -> Vec<u8> {
    client.key_file().unwrap().to_vec()
}

fn keys(client: &Client) -> Vec<u8> {
    let mut stream = client.evaluation_keys().unwrap();
    std::iter::from_fn(|| stream.next_bytes().unwrap()).flatten().collect()
}

/// What a server makes of an encrypted input.
fn evaluate(keys: &[u8], input: &[u8]) -> Vec<u8> {
    let program = program();
    let interface = program.interface();
    let context = Context::new(program.params().clone()).unwrap();
    let request = key_request(&context, &program);
    let keys = decode_requested_keys(keys, keys.len() as u64, &context, &request).unwrap();
    let id = keys.id();
    let (inputs, asked) =
        decode_request(input, input.len() as u64, &context, &Expected::input(&interface)).unwrap();
    let sample = inputs.samples[0].iter().map(|stored| stored.clone().expand(&context)).collect();
    let model =
        Model::new(&program, Arc::clone(&context), Options { memory: 1 << 30, n_evaluations: 1 }).unwrap();
    let session = Session::new(Arc::new(model), Arc::new(keys)).unwrap();
    let (result, _) =
        session.evaluate(Input::new(&context, id, sample), &Cancel::default(), &Silent).unwrap();
    let mut results = Ciphertexts::new(id, vec![result.into_iter().map(Stored::Full).collect()]);
    results.request = Some(asked.hash);
    let mut file = Vec::new();
    encode_ciphertexts(&mut file, &context, &Expected::result(&interface), &results).unwrap();
    file
}

fn numbers() -> Vec<f64> {
    (0..32).map(|i| toy::value(i + 500)).collect()
}

#[test]
fn a_question_is_answered_once() {
    let mut client = client(None);
    let keys = keys(&client);
    let input = client.encrypt(Raw::Numbers(&numbers())).unwrap();
    let result = evaluate(&keys, &input);
    let answer = client.decrypt(&result).unwrap();
    let expected = toy::expected(&numbers());
    let best = (0..5).max_by(|&a, &b| expected[a].total_cmp(&expected[b])).unwrap();
    assert_eq!((answer.class, answer.label.as_str()), (best, ["ant", "bee", "cat", "dog", "eel"][best]));
    assert!(answer.scores.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 0.01 + answer.unit));
    let again = client.decrypt(&result).unwrap_err();
    assert_eq!(again.code, "result");
}

#[test]
fn the_facts_are_those_of_the_files() {
    let mut client = client(None);
    let facts = client.facts();
    let input = client.encrypt(Raw::Numbers(&numbers())).unwrap();
    assert_eq!((facts.channels, facts.height, facts.width), (2, 4, 4));
    assert_eq!(facts.input_bytes as usize, input.len());
    assert_eq!(facts.key_file_bytes as usize, keys(&client).len());
    assert_eq!(facts.result_bytes as usize, evaluate(&keys(&client), &input).len());
    assert_eq!(
        (facts.n_scores, &facts.labels[..]),
        (5, &["ant", "bee", "cat", "dog", "eel"].map(str::to_owned)[..])
    );
}

#[test]
fn the_same_secret_key_has_the_same_evaluation_keys() {
    let first = client(None);
    let again = client(Some(&key_file(&first)));
    assert!(keys(&first) == keys(&again));
    assert!(keys(&first) != keys(&client(None)));
}

#[test]
fn what_is_hostile_is_refused() {
    let good = encode_interface(&program().interface());
    let code = |interface: &[u8], key: Option<&[u8]>, insecure| {
        Client::new(interface, key, insecure).err().map(|refusal| refusal.code)
    };
    assert_eq!(code(&good, None, true), None);
    assert_eq!(code(&good, None, false), Some("insecure"));
    assert_eq!(code(&[], None, true), Some("interface"));
    assert_eq!(code(&good[..good.len() - 1], None, true), Some("interface"));
    for at in (0..good.len()).step_by(7) {
        let mut bad = good.clone();
        bad[at] ^= 0x10;
        assert_eq!(code(&bad, None, true), Some("interface"), "byte {at}");
    }
    let mut key = key_file(&client(None));
    assert_eq!(code(&good, Some(&key), true), None);
    key[100] ^= 1;
    assert_eq!(code(&good, Some(&key), true), Some("key"));
    assert_eq!(code(&good, Some(&key[..50]), true), Some("key"));
}

/// 2^20 scores without names in some hundred bytes: what there is to know of them is as short.
#[test]
fn facts_are_no_longer_than_the_interface() {
    let mut spec = program().interface().spec().clone();
    spec.layouts[spec.output.layout.index()].shape = fhe_bytecode::Shape::new(1 << 20, 1, 1);
    spec.output.labels.clear();
    let wide = fhe_bytecode::Interface::new(spec);
    let facts = Client::new(&encode_interface(&wide.unwrap()), None, true).unwrap().facts();
    assert_eq!((facts.n_scores, facts.labels.len()), (1 << 20, 0));
}

#[test]
fn inputs_and_results_that_do_not_fit_are_refused() {
    let (mut client, mut stranger) = (client(None), client(None));
    assert_eq!(client.encrypt(Raw::Numbers(&[1.0; 31])).unwrap_err().code, "input");
    assert_eq!(client.encrypt(Raw::Numbers(&[f64::NAN; 32])).unwrap_err().code, "input");
    let input = client.encrypt(Raw::Numbers(&numbers())).unwrap();
    let result = evaluate(&keys(&client), &input);
    assert_eq!(stranger.decrypt(&result).unwrap_err().code, "result");
    assert_eq!(client.decrypt(&input).unwrap_err().code, "result");
    for at in (0..result.len()).step_by(1 + result.len() / 40) {
        let mut bad = result.clone();
        bad[at] ^= 1;
        assert_eq!(client.decrypt(&bad).unwrap_err().code, "result", "byte {at}");
    }
    assert!(client.decrypt(&result).is_ok());
}
