//! Golden files of keys, inputs and results: of every version that was ever written, the reader of today makes the scores
//! of that day.
//!
//! `tests/golden/files-vN` belongs to the program `tests/golden/vN.fhebc`, `files-pool` to `pool.fhebc`, whose levels are sets of
//! towers, and `files-rings` to `rings.fhebc` with its interface `rings.fhei`, whose lower levels have a smaller ring. Files of
//! older versions are never written again, and neither is `pool.fhebc`, a program of version 3.

#[path = "common/toy.rs"]
#[allow(dead_code, reason = "other tests compare with what it computes")]
mod toy;

use std::path::PathBuf;
use std::sync::Arc;

use fhe_bytecode::codec::{DEFAULT_LIMIT, decode, encode, encode_interface, read_interface};
use fhe_bytecode::params::primes::ntt_primes_below;
use fhe_bytecode::{
    CheckedProgram, Gait, Level, Packing, Pairing, Pool, Rotation as ProgramRotation, SegmentSpec, TowerIdx,
    required_keys,
};
use fhe_ckks::{
    Context, EvaluationKeys, Evaluator, Galois, KeyRequest, KeyUse, Rotation, descend, key_request,
};
use fhe_client::{Client, decode_secret_key, encode_secret_key};
use fhe_files::{
    Ciphertexts, Expected, Stored, VERSION, decode_evaluation_keys, decode_request, encode_ciphertexts,
    encode_evaluation_keys,
};
use fhe_fixed_seeds::fixed_seeds;
use fhe_machine::{Cancel, Input, Model, Options, Session, Silent};
use fhe_secret::SecretKey;
use toy::paired_toy_program;

const N_SAMPLES: usize = 2;

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden").join(name)
}

fn read(name: &str) -> Vec<u8> {
    std::fs::read(path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// A program and the version of the files that belong to it.
struct Golden {
    name: String,
    version: u16,
    program: CheckedProgram,
}

impl Golden {
    fn new(name: &str, version: u16) -> Self {
        let program = decode(&read(&format!("{name}.fhebc")), DEFAULT_LIMIT).unwrap();
        Self { name: name.to_owned(), version, program }
    }

    fn file(&self, name: &str) -> String {
        format!("files-{}/{name}.bin", self.name)
    }

    fn all() -> impl Iterator<Item = Self> {
        let versions = (1..=VERSION).map(|version| Self::new(&format!("v{version}"), version));
        versions.chain(["pool", "rings"].map(|name| Self::new(name, VERSION)))
    }
}

/// The golden program of version 2 with digits of two towers, and with a tower that only level 1 has: the rescale to it
/// exchanges two towers for that one.
fn pooled() -> CheckedProgram {
    let mut spec = Golden::new("v2", 2).program.spec().clone();
    let params = &mut spec.params;
    params.towers.extend(ntt_primes_below(36, 9, 1, &params.towers).unwrap());
    params.special_primes.extend(ntt_primes_below(46, 9, 1, &params.special_primes).unwrap());
    let levels = [&[0][..], &[0, 4], &[0, 1, 2], &[0, 1, 2, 3]];
    let levels = levels.map(|set| set.iter().copied().map(TowerIdx).collect()).to_vec();
    params.digit_size = 2;
    params.pool = Some(Pool { levels, digits: vec![2, 2, 1] });
    CheckedProgram::new(spec).unwrap()
}

/// The toy program with a quarter of the ring, two special primes and one digit from level 1 on, and with giant steps alone,
/// which are taken together.
fn ringed() -> CheckedProgram {
    let mut spec = paired_toy_program(Packing::Packed, [Pairing::Halves, Pairing::None]).spec().clone();
    for (map, gait) in spec.maps.iter_mut().zip([Gait::Inward, Gait::Down]) {
        map.plan.gait = gait;
        map.plan.splits.iter_mut().for_each(|split| split.baby = ProgramRotation::ZERO);
    }
    let (log_n, level, digits) = (spec.params.log_n - 2, LOWER, vec![2]);
    let taken = [&spec.params.towers[..], &spec.params.special_primes].concat();
    let special_primes = ntt_primes_below(47, spec.params.log_n, 2, &taken).unwrap();
    spec.params.lower = vec![SegmentSpec { log_n, level, special_primes, digits }];
    let keys = required_keys(&spec).unwrap();
    spec.rotation_keys = keys.rotations;
    (spec.relin_level, spec.conjugation_level) = (keys.relin, keys.conjugation);
    spec.lower_keys = keys.lower;
    CheckedProgram::new(spec).unwrap()
}

/// The highest level in the smaller ring of the golden program that has one.
const LOWER: Level = Level(1);

#[test]
fn golden_program_of_a_pool_is_what_it_was() {
    assert_eq!(*Golden::new("pool", VERSION).program.spec(), *pooled().spec());
}

#[test]
fn golden_program_and_interface_of_two_rings_have_their_bytes() {
    let (program, interface) = (ringed(), read("rings.fhei"));
    assert_eq!(read("rings.fhebc"), encode(&program));
    assert_eq!(interface, encode_interface(&program.interface()));
    assert_eq!(read_interface(&interface[..], DEFAULT_LIMIT).unwrap(), program.interface());
}

fn tensor(program: &CheckedProgram, sample: usize) -> Vec<f64> {
    (0..program.input_layout().shape().len())
        .map(|i| ((i * 37 + 11 * sample) % 101) as f64 / 101.0 - 0.5)
        .collect()
}

/// Keys that are enough to be used, not to evaluate: a golden file is small.
fn few_keys(context: &Context) -> KeyRequest {
    let mut request = KeyRequest::default();
    if !context.lower().is_empty() {
        request.add_in(1, KeyUse::rotation(3, context.at(LOWER)), LOWER);
        request.add_in(1, KeyUse::Move(Galois::Conjugation), LOWER);
        request.add_in(1, KeyUse::Enter, LOWER);
        return request;
    }
    request.add(KeyUse::Relinearize, Level(0));
    request.add(KeyUse::rotation(3, context), Level(1));
    request.add(KeyUse::Move(Galois::Conjugation), Level(0));
    request
}

#[test]
#[ignore = "rewrites golden files: cargo xtask golden"]
fn write_files() {
    assert!(std::env::var_os("FHEC_WRITE_GOLDEN").is_some());
    std::fs::write(path("rings.fhebc"), encode(&ringed())).unwrap();
    std::fs::write(path("rings.fhei"), encode_interface(&ringed().interface())).unwrap();
    write(&Golden::new("rings", VERSION));
}

fn write(golden: &Golden) {
    let program = &golden.program;
    let interface = Arc::new(program.interface());
    let context = Context::new(program.params().clone()).unwrap();
    let mut seeds = fixed_seeds(u64::from(VERSION));
    let key = SecretKey::generate(&context, &mut seeds).unwrap();
    std::fs::create_dir_all(path(&format!("files-{}", golden.name))).unwrap();
    let write = |name: &str, data: &[u8]| std::fs::write(path(&golden.file(name)), data).unwrap();
    write("secret-key", &encode_secret_key(&context, &key, interface.program()).unwrap());
    let mut data = Vec::new();
    let few = key.evaluation_keys(&context, &few_keys(&context), &mut seeds).unwrap();
    encode_evaluation_keys(&mut data, &context, &few).unwrap();
    write("evaluation-keys", &data);
    let all = key.evaluation_keys(&context, &key_request(&context, program), &mut seeds).unwrap();
    let client = Client::new(interface.clone(), context.clone(), key).unwrap();
    let fresh: Vec<Vec<_>> =
        (0..N_SAMPLES).map(|i| client.encrypt(&tensor(program, i), &mut seeds).unwrap()).collect();
    let model = Model::new(program, context.clone(), Options { memory: 1 << 40, n_evaluations: 1 }).unwrap();
    let session = Session::new(Arc::new(model), Arc::new(all)).unwrap();
    let evaluate = |fresh: &Vec<fhe_ckks::SeededCiphertext>| {
        let input = fresh.iter().map(|ct| ct.expand(&context)).collect();
        let input = Input::new(&context, client.key().id(), input);
        session.evaluate(input, &Cancel::default(), &Silent).unwrap().0
    };
    let results = fresh.iter().map(|s| evaluate(s).into_iter().map(Stored::Full).collect()).collect();
    let inputs = fresh.into_iter().map(|s| s.into_iter().map(Stored::Seeded).collect()).collect();
    let file = |name: &str, samples, request, expected: Expected| {
        let names = (0..N_SAMPLES).map(|i| format!("sample {i}")).collect();
        let file = Ciphertexts { names, request, ..Ciphertexts::new(client.key().id(), samples) };
        let mut data = Vec::new();
        let request = encode_ciphertexts(&mut data, &context, &expected, &file).unwrap();
        write(name, &data);
        Some(request.hash)
    };
    let request = file("inputs", inputs, None, Expected::input(&interface));
    file("results", results, request, Expected::result(&interface));
}

fn keys(golden: &Golden, context: &Context) -> EvaluationKeys {
    let data = read(&golden.file("evaluation-keys"));
    decode_evaluation_keys(&data[..], data.len() as u64, context).unwrap()
}

#[test]
fn golden_files_of_every_version_decrypt() {
    for golden in Golden::all() {
        let Golden { name, version, program } = &golden;
        let interface = Arc::new(program.interface());
        let context = Context::new(program.params().clone()).unwrap();
        let data = read(&golden.file("secret-key"));
        let (key, made_for) = decode_secret_key(&data, &context).unwrap();
        assert_eq!(made_for, (*version > 1).then(|| interface.program()));
        let client = Client::new(interface.clone(), context.clone(), key).unwrap();
        let open = |name: &str, expected: &Expected| {
            let data = read(&golden.file(name));
            let (file, request) = decode_request(&data[..], data.len() as u64, &context, expected).unwrap();
            assert_eq!((file.key_id, file.samples.len()), (client.key().id(), N_SAMPLES));
            assert_eq!(file.names.len(), if *version > 1 { N_SAMPLES } else { 0 });
            (file, request)
        };
        let (inputs, request) = open("inputs", &Expected::input(&interface));
        let (results, _) = open("results", &Expected::result(&interface));
        assert_eq!(results.check_answers(&request).is_ok(), *version > 1);
        let [inputs, results] = [inputs, results].map(|file| -> Vec<Vec<_>> {
            let sample = |s: Vec<Stored>| s.into_iter().map(|ct| ct.expand(&context)).collect();
            file.samples.into_iter().map(sample).collect()
        });
        let clear = fhe_bytecode::ClearProgram::new(program);
        for (i, (input, result)) in inputs.iter().zip(&results).enumerate() {
            let slots = [client.key().decrypt(&context, &input[0]).unwrap()];
            let found = interface.input_layout().gather(&slots);
            assert!(tensor(program, i).iter().zip(&found).all(|(a, b)| (a - b).abs() < 1e-4), "input {i}");
            let expected = clear.run(&tensor(program, i), &mut ()).unwrap();
            let found = client.decrypt_raw(result).unwrap();
            let worst = expected.iter().zip(found.iter()).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(worst < 1e-2, "{name}, result {i}: off by {worst}");
        }
        rotated(&context, &keys(&golden, &context), &client);
    }
}

/// Every key of the golden file does what it is for.
fn rotated(context: &Arc<Context>, keys: &EvaluationKeys, client: &Client) {
    let few = few_keys(context);
    assert_eq!(keys.missing(&few), None);
    assert_eq!(keys.id(), client.key().id());
    let scale = client.interface().input().scale;
    assert_eq!(few.len(), 3);
    // From the highest level down, through a smaller ring if there is one.
    let (top, level) = (context.params().max_level(), LOWER);
    let own = context.at(level);
    let values: Vec<f64> = (0..context.slots()).map(|i| (i % own.slots() % 17) as f64 / 17.0).collect();
    let plain = context.encoder().encode(&values, scale, top).unwrap();
    let fresh = client.key().encrypt(context, &plain, &mut fixed_seeds(9)).unwrap();
    let dropped = Evaluator::new(context).drop_to(&fresh.expand(context), level).unwrap();
    let lower = descend(context, top, dropped, keys).unwrap();
    let segment = keys.segment(context.params().segment(level)).unwrap();
    let turned = Evaluator::new(own).rotate(&lower, Rotation::new(3, own), segment.galois()).unwrap();
    let found = client.key().decrypt(context, &turned).unwrap();
    let n = own.slots();
    assert!((0..n).all(|i| (found[i] - values[(i + 3) % n]).abs() < 1e-2));
}
