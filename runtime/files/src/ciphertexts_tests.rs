//! Ciphertext files survive, and what does not fit is refused.

use super::super::testing::{check_damage, toy_context, toy_key};
use super::*;
use fhe_fixed_seeds::fixed_seeds;

const PROGRAM: Fingerprint = Fingerprint([7; 32]);

fn expected() -> Expected {
    let scale = Scale::from_log2(20.0);
    Expected { program: PROGRAM, role: Role::Input, n_ciphertexts: 2, level: Level(2), scale }
}

fn ciphertexts(context: &Context) -> Ciphertexts {
    let key = toy_key(context, 1);
    let mut seeds = fixed_seeds(2);
    let values = vec![0.5; context.slots()];
    let plain = context.encoder().encode(&values, expected().scale, expected().level).unwrap();
    let mut seeded = || key.encrypt(context, &plain, &mut seeds).unwrap();
    let full = Stored::Full(seeded().expand(context));
    let samples = vec![vec![Stored::Seeded(seeded()), full]];
    let names = vec!["one\u{1b}[1m".to_owned()];
    Ciphertexts { names, ..Ciphertexts::new(key.id(), samples) }
}

fn encoded(context: &Context) -> Vec<u8> {
    let mut data = Vec::new();
    encode_ciphertexts(&mut data, context, &expected(), &ciphertexts(context)).unwrap();
    data
}

#[test]
fn ciphertexts_survive_the_file() {
    let context = toy_context();
    let data = encoded(&context);
    let read = decode_ciphertexts(&data[..], data.len() as u64, &context, &expected()).unwrap();
    assert_eq!(read.names, ["one\\u{1b}[1m"]);
    assert_eq!(Ciphertexts { names: ciphertexts(&context).names, ..read }, ciphertexts(&context));
}

#[test]
fn lengths_are_known_before_anything_is_written() {
    let context = toy_context();
    let expected = expected();
    let [sample] = &ciphertexts(&context).samples[..] else { panic!("one sample") };
    for (stored, form) in sample.iter().zip([Form::Seeded, Form::Full]) {
        for n_samples in [0, 1, 3] {
            let samples = vec![vec![stored.clone(); expected.n_ciphertexts]; n_samples];
            let all = Ciphertexts::new(ciphertexts(&context).key_id, samples);
            let mut data = Vec::new();
            encode_ciphertexts(&mut data, &context, &expected, &all).unwrap();
            let least = ciphertexts_len(&context, &expected, n_samples, form);
            assert_eq!(data.len() as u64, least);
            let names = vec!["x".repeat(300); n_samples];
            data.clear();
            encode_ciphertexts(&mut data, &context, &expected, &Ciphertexts { names, ..all }).unwrap();
            assert_eq!(data.len() as u64, least + names_len(n_samples));
        }
    }
}

/// Reading under another expectation gives an error that says so.
fn check_refused(change: impl FnOnce(&mut Expected), message: &str) {
    let context = toy_context();
    let data = encoded(&context);
    let mut other = expected();
    change(&mut other);
    let error = decode_ciphertexts(&data[..], data.len() as u64, &context, &other).unwrap_err().to_string();
    assert!(error.contains(message), "{error}");
}

#[test]
fn ciphertexts_of_another_program_role_level_scale_or_count_are_refused() {
    check_refused(|e| e.program = Fingerprint([8; 32]), "was made for program 0707070707070707");
    check_refused(|e| e.role = Role::Result, "holds encrypted input, but encrypted result is needed");
    check_refused(|e| e.level = Level(1), "level is L2");
    check_refused(|e| e.scale = Scale::from_log2(21.0), "scale is 1048576");
    check_refused(|e| e.n_ciphertexts = 1, "number of ciphertexts is 2");
}

#[test]
fn any_change_is_refused() {
    let context = toy_context();
    check_damage(&encoded(&context), |data| {
        decode_ciphertexts(data, data.len() as u64, &context, &expected()).map(drop)
    });
}

/// A file of results that answer `request`.
fn answer(context: &Context, request: Fingerprint) -> Vec<u8> {
    let expected = Expected { role: Role::Result, ..expected() };
    let file = Ciphertexts { request: Some(request), ..ciphertexts(context) };
    let mut data = Vec::new();
    encode_ciphertexts(&mut data, context, &expected, &file).unwrap();
    data
}

#[test]
fn results_answer_one_request() {
    let context = toy_context();
    let data = encoded(&context);
    let request = read_request(&data[..], data.len() as u64, &context, &expected()).unwrap();
    let (inputs, again) = decode_request(&data[..], data.len() as u64, &context, &expected()).unwrap();
    assert_eq!((request, inputs.request), (again, None));
    let role = Expected { role: Role::Result, ..expected() };
    let read = |data: &[u8]| decode_ciphertexts(data, data.len() as u64, &context, &role).unwrap();
    let results = read(&answer(&context, request.hash));
    results.check_answers(&request).unwrap();
    let stale = read(&answer(&context, Fingerprint([1; 32])));
    assert!(matches!(stale.check_answers(&request), Err(FormatError::WrongRequest { .. })));
    let more = Request { n_samples: 2, ..request };
    let error = results.check_answers(&more).unwrap_err();
    assert!(matches!(error, FormatError::WrongSamples { found: 1, expected: 2 }));
    let old = Ciphertexts { request: None, ..results };
    assert!(matches!(old.check_answers(&request), Err(FormatError::NoRequest)));
}

#[test]
fn names_are_none_or_one_for_each_and_bounded() {
    let context = toy_context();
    let write = |names: Vec<String>| {
        let mut data = Vec::new();
        let file = Ciphertexts { names, ..ciphertexts(&context) };
        encode_ciphertexts(&mut data, &context, &expected(), &file)?;
        decode_ciphertexts(&data[..], data.len() as u64, &context, &expected()).map(|file| file.names)
    };
    assert_eq!(write(Vec::new()).unwrap(), Vec::<String>::new());
    assert_eq!(write(vec!["é".repeat(200)]).unwrap(), ["é".repeat(127)]);
    assert!(write(vec!["a".to_owned(), "b".to_owned()]).is_err());
}

#[test]
fn one_of_several_inputs_is_no_input() {
    let context = toy_context();
    let part = Expected { role: Role::Part(7), ..expected() };
    let mut data = Vec::new();
    encode_ciphertexts(&mut data, &context, &part, &ciphertexts(&context)).unwrap();
    let len = data.len() as u64;
    assert_eq!(read_role(&data[..], len).unwrap(), Role::Part(7));
    assert!(decode_ciphertexts(&data[..], len, &context, &part).is_ok());
    let error = decode_ciphertexts(&data[..], len, &context, &expected()).unwrap_err().to_string();
    assert!(
        error.contains("holds one of several encrypted inputs, but encrypted input is needed"),
        "{error}"
    );
    let other = Expected { role: Role::Part(6), ..part };
    assert!(decode_ciphertexts(&data[..], len, &context, &other).is_err());
    check_damage(&data, |data| decode_ciphertexts(data, data.len() as u64, &context, &part).map(drop));
}

/// A file with a change of its body and its hash made right.
fn changed(data: &[u8], change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut body = data[..data.len() - TRAILER as usize].to_vec();
    change(&mut body);
    let mut writer = BodyWriter::new(Vec::new());
    writer.bytes(&body).unwrap();
    writer.finish().unwrap()
}

/// Where role, counts, request and names of a file without names are.
const ROLE_AT: usize = HEADER_LEN + 32;
const SAMPLES_AT: usize = ROLE_AT + 1;
const REQUEST_AT: usize = SAMPLES_AT + 8;
const NAMES_AT: usize = REQUEST_AT + 32;

#[test]
fn the_front_is_read_without_the_rest() {
    let context = toy_context();
    let data = encoded(&context);
    let front = crate::read_contents(&data[..data.len() / 2], data.len() as u64).unwrap();
    let names = vec!["one\\u{1b}[1m".to_owned()];
    let expected = crate::Contents {
        program: PROGRAM,
        role: Role::Input,
        n_samples: 1,
        n_ciphertexts: 2,
        request: None,
        names,
    };
    assert_eq!(front, expected);
    assert_eq!(read_role(&data[..], data.len() as u64).unwrap(), Role::Input);
    let answered = answer(&context, Fingerprint([9; 32]));
    let front = crate::read_contents(&answered[..], answered.len() as u64).unwrap();
    assert_eq!((front.role, front.request), (Role::Result, Some(Fingerprint([9; 32]))));
    assert_eq!(read_role(&answered[..], answered.len() as u64).unwrap(), Role::Result);
    assert!(crate::count_evaluation_keys(&data[..], data.len() as u64).is_err());
    for code in [0, 4] {
        let data = changed(&data, |body| body[ROLE_AT] = code);
        let read = read_role(&data[..], data.len() as u64).map_err(|error| error.to_string());
        assert_eq!(read, Err(format!("is damaged: role is {code}")));
    }
    assert_eq!(
        [Role::Input, Role::Result, Role::Part(1)].map(Role::name),
        ["encrypted input", "encrypted result", "one of several encrypted inputs"]
    );
}

#[test]
fn inputs_of_version_one_have_no_names() {
    let context = toy_context();
    let nameless = Ciphertexts { names: Vec::new(), ..ciphertexts(&context) };
    let mut data = Vec::new();
    let request = encode_ciphertexts(&mut data, &context, &expected(), &nameless).unwrap();
    let old = changed(&data, |body| {
        body[8..10].copy_from_slice(&1_u16.to_le_bytes());
        body.drain(REQUEST_AT..NAMES_AT + 4);
    });
    let (read, found) = decode_request(&old[..], old.len() as u64, &context, &expected()).unwrap();
    assert_eq!(read, nameless);
    assert_ne!(found, request);
    assert_eq!(found, read_request(&old[..], old.len() as u64, &context, &expected()).unwrap());
    let front = crate::read_contents(&old[..], old.len() as u64).unwrap();
    assert_eq!((front.n_samples, front.request, front.names.len()), (1, None, 0));
}

#[test]
fn one_wrong_field_is_told_by_its_name() {
    let context = toy_context();
    let nameless = Ciphertexts { names: Vec::new(), ..ciphertexts(&context) };
    let mut data = Vec::new();
    encode_ciphertexts(&mut data, &context, &expected(), &nameless).unwrap();
    let message = |change: &dyn Fn(&mut Vec<u8>)| {
        let data = changed(&data, change);
        let read = decode_ciphertexts(&data[..], data.len() as u64, &context, &expected());
        read.err().map_or_else(|| "accepted".to_owned(), |error| error.to_string())
    };
    let first = NAMES_AT + 4;
    assert_eq!(message(&|_| ()), "accepted");
    assert_eq!(message(&|body| body[REQUEST_AT] = 1), "is damaged: request is given for inputs");
    assert_eq!(message(&|body| body[NAMES_AT] = 2), "is damaged: number of names is 2");
    assert_eq!(message(&|body| body[SAMPLES_AT + 4] = 1), "is damaged: number of ciphertexts is 1");
    assert_eq!(message(&|body| body[first] = 1), "is damaged: level is L1");
    assert!(message(&|body| body[first + 2 + 6] ^= 0x40).starts_with("is damaged: scale is"));
    for form in [0, 3] {
        let wrong = message(&|body| body[first + 10] = form);
        assert_eq!(wrong, format!("is damaged: form is {form}"));
    }
    let more = message(&|body| body.push(0));
    assert_eq!(more, "has 1 bytes after its end");
    // Samples of another number of ciphertexts are not written at all.
    let mut one = nameless.clone();
    one.samples[0].pop();
    let refused = encode_ciphertexts(Vec::new(), &context, &expected(), &one).unwrap_err().to_string();
    assert_eq!(refused, "is damaged: number of ciphertexts is 1");
}

#[test]
fn a_product_that_was_not_relinearized_is_not_written() {
    let context = toy_context();
    let mut file = ciphertexts(&context);
    let full = file.samples[0][1].clone().expand(&context);
    let first = full.polys()[0].data().to_vec();
    let three = Ciphertext::from_residues(&context, full.level(), full.scale(), &vec![first; 3]).unwrap();
    file.samples[0][1] = Stored::Full(three);
    let refused = encode_ciphertexts(Vec::new(), &context, &expected(), &file).unwrap_err().to_string();
    assert_eq!(refused, "is damaged: number of polynomials is 3");
}
