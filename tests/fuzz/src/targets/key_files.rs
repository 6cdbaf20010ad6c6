//! Key and ciphertext files in a ring of degree 32, and now and then in one of degree 4096, or of one whose lower levels have a
//! smaller ring.
//!
//! What is accepted is used: a secret key encrypts and decrypts, evaluation keys evaluate a program, ciphertexts are
//! decrypted. Keys with changed residues are other keys; a result is noise then, but comes as a result or an error.

use std::sync::Arc;

use fhe_bytecode::{CheckedProgram, Fingerprint, Level, Scale};
use fhe_ckks::{Context, EvaluationKeys, SeededCiphertext, key_request};
use fhe_client::{Client, decode_secret_key, encode_secret_key};
use fhe_files::{
    Ciphertexts, Expected, FormatError, Role, Stored, decode_ciphertexts, decode_evaluation_keys,
    encode_ciphertexts, encode_evaluation_keys,
};
use fhe_fixed_seeds::fixed_seeds;
use fhe_machine::{Cancel, Input, Model, Options, Session, Silent};
use fhe_secret::SecretKey;
use fhec::pipeline::LayoutChoice;
use fhec_tests::models::random::Random;

use super::specimen::{DENSE, program, rings};
use crate::mutate;
use crate::run::Target;

/// Bytes of the length and the hash at the end.
const HASH_BYTES: usize = 32;
const LENGTH_BYTES: usize = 8;
/// Where the header has the fingerprint of the parameters.
const FINGERPRINT: std::ops::Range<usize> = 12..44;
/// One in so many accepted keys is used.
const USED: usize = 4;

/// Secret keys.
pub(super) struct SecretKeys(Seed);
/// Evaluation keys.
pub(super) struct EvaluationKeyFiles(Seed);
/// Ciphertexts.
pub(super) struct CiphertextFiles(Seed);

/// One in so many files is of the largest ring,
const LARGE: usize = 64;
/// and one in so many of two rings.
const TWO: usize = 8;

/// Which parameters a file is for.
#[derive(Clone, Copy)]
pub(super) enum Rings {
    Small,
    Large,
    Two,
}

/// Sound files for parameters of several kinds.
struct Seed {
    small: Sound,
    large: Sound,
    two: Sound,
}

/// A program with its context, and a sound file for it.
struct Sound {
    program: CheckedProgram,
    context: Arc<Context>,
    data: Vec<u8>,
}

impl Sound {
    /// Makes a key and has `write` make a file with it.
    fn new(
        program: CheckedProgram,
        write: impl Fn(&mut Vec<u8>, &CheckedProgram, &Context, &SecretKey),
    ) -> Self {
        let context = Context::new(program.params().clone()).expect("parameters of a program");
        let key = SecretKey::generate(&context, &mut fixed_seeds(1)).expect("a key");
        let mut data = Vec::new();
        write(&mut data, &program, &context, &key);
        Self { data, program, context }
    }

    /// The secret key that a client uses; any will do.
    fn client(&self, key: SecretKey) -> Result<Client, String> {
        Client::new(Arc::new(self.program.interface()), Arc::clone(&self.context), key)
            .map_err(|e| e.to_string())
    }

    fn input(&self) -> Vec<f64> {
        vec![0.25; self.program.input_layout().shape().len()]
    }
}

impl Seed {
    fn new(write: impl Fn(&mut Vec<u8>, &CheckedProgram, &Context, &SecretKey)) -> Self {
        let dense = |log_n| program(DENSE, LayoutChoice::Packed, log_n);
        Self {
            small: Sound::new(dense(5), &write),
            large: Sound::new(dense(12), &write),
            two: Sound::new(rings(), &write),
        }
    }

    /// A file, changed; in half of the cases its length and hash are right.
    fn changed(&self, random: &mut Random) -> Vec<u8> {
        let rings = match (random.below(LARGE), random.below(TWO)) {
            (0, _) => Rings::Large,
            (_, 0) => Rings::Two,
            _ => Rings::Small,
        };
        let sound = self.sound(rings);
        let mut data = mutate::bytes(&sound.data, &self.small.data, random);
        let has_trailer = data.len() > HASH_BYTES + LENGTH_BYTES;
        if has_trailer && random.below(2) == 0 {
            let (hash_at, length_at) = (data.len() - HASH_BYTES, data.len() - HASH_BYTES - LENGTH_BYTES);
            data[length_at..hash_at].copy_from_slice(&(length_at as u64).to_le_bytes());
            let hash = blake3::hash(&data[..hash_at]);
            data[hash_at..].copy_from_slice(hash.as_bytes());
        }
        data
    }

    /// The parameters that a file says it is for; for others than these, any will do.
    fn rings_of(&self, input: &[u8]) -> Rings {
        let says = |rings: &Rings| input.get(FINGERPRINT) == self.sound(*rings).data.get(FINGERPRINT);
        [Rings::Large, Rings::Two].into_iter().find(says).unwrap_or(Rings::Small)
    }

    fn sound(&self, rings: Rings) -> &Sound {
        match rings {
            Rings::Small => &self.small,
            Rings::Large => &self.large,
            Rings::Two => &self.two,
        }
    }
}

fn outcome<T>(read: Result<T, FormatError>) -> Option<T> {
    // Every error must be printable.
    read.inspect_err(|e| assert!(!e.to_string().is_empty())).ok()
}

fn memory_bound(len: usize) -> usize {
    // Packed residues of twenty bits become words, beside the packed ones and the seeds' halves.
    32 * len + (256 << 10)
}

impl SecretKeys {
    pub(super) fn new() -> Self {
        Self(Seed::new(|data, _, context, key| {
            data.extend_from_slice(&encode_secret_key(context, key, Fingerprint([7; 32])).expect("a file"));
        }))
    }
}

impl Target for SecretKeys {
    type Read = (SecretKey, Rings);
    const NAME: &'static str = "secret-key";

    fn input(&self, random: &mut Random) -> Vec<u8> {
        self.0.changed(random)
    }

    fn read(&self, input: &[u8]) -> Option<(SecretKey, Rings)> {
        let rings = self.0.rings_of(input);
        let read = decode_secret_key(input, &self.0.sound(rings).context);
        Some((outcome(read)?.0, rings))
    }

    fn memory_bound(&self, len: usize) -> usize {
        memory_bound(len)
    }

    fn exercise(&self, (key, rings): (SecretKey, Rings), random: &mut Random) -> Result<(), String> {
        if random.below(USED) != 0 {
            return Ok(());
        }
        let sound = self.0.sound(rings);
        let mut seeds = fixed_seeds(4);
        let client = sound.client(key)?;
        // An error is an answer; a panic is not.
        let Ok(fresh) = client.encrypt(&sound.input(), &mut seeds) else { return Ok(()) };
        let full: Vec<_> = fresh.iter().map(|c| c.expand(&sound.context)).collect();
        let _ = client.decrypt_raw(&full);
        Ok(())
    }
}

impl EvaluationKeyFiles {
    pub(super) fn new() -> Self {
        Self(Seed::new(|data, program, context, key| {
            let request = key_request(context, program);
            let seeds = &mut fixed_seeds(2);
            let keys = key.evaluation_keys(context, &request, seeds).expect("keys");
            encode_evaluation_keys(data, context, &keys).expect("a file");
        }))
    }
}

impl Target for EvaluationKeyFiles {
    type Read = (EvaluationKeys, Rings);
    const NAME: &'static str = "evaluation-keys";

    fn input(&self, random: &mut Random) -> Vec<u8> {
        self.0.changed(random)
    }

    fn read(&self, input: &[u8]) -> Option<(EvaluationKeys, Rings)> {
        let rings = self.0.rings_of(input);
        let read = decode_evaluation_keys(input, input.len() as u64, &self.0.sound(rings).context);
        Some((outcome(read)?, rings))
    }

    fn memory_bound(&self, len: usize) -> usize {
        memory_bound(len)
    }

    fn exercise(&self, (keys, rings): (EvaluationKeys, Rings), random: &mut Random) -> Result<(), String> {
        let sound = self.0.sound(rings);
        if random.below(USED) != 0 || sound.context.params().n() > 1 << 10 {
            return Ok(());
        }
        let options = Options { memory: 1 << 28, n_evaluations: 1 };
        let context = Arc::clone(&sound.context);
        let id = keys.id();
        let model = Model::new(&sound.program, context, options).map_err(|e| e.to_string())?;
        let Ok(session) = Session::new(Arc::new(model), Arc::new(keys)) else { return Ok(()) };
        let mut seeds = fixed_seeds(1);
        let secret = SecretKey::generate(&sound.context, &mut seeds).map_err(|e| e.to_string())?;
        let client = sound.client(secret)?;
        let fresh = client.encrypt(&sound.input(), &mut seeds).map_err(|e| e.to_string())?;
        let ciphertexts = fresh.iter().map(|c| c.expand(&sound.context)).collect();
        let ciphertexts = Input::new(&sound.context, id, ciphertexts);
        let evaluated = session.evaluate(ciphertexts, &Cancel::default(), &Silent);
        let (result, _) = evaluated.map_err(|e| format!("evaluation: {e}"))?;
        client.decrypt_raw(&result).map(drop).map_err(|e| e.to_string())
    }
}

/// What the ciphertexts of the sound file look like.
fn expected() -> Expected {
    let (program, scale) = (Fingerprint([7; 32]), Scale::from_log2(20.0));
    Expected { program, role: Role::Input, n_ciphertexts: 2, level: Level(1), scale }
}

impl CiphertextFiles {
    pub(super) fn new() -> Self {
        Self(Seed::new(|data, _, context, key| {
            let expected = expected();
            let mut seeds = fixed_seeds(3);
            // Of two rings the smaller one: it is where results are.
            let (own, key) = key.at(context, expected.level);
            let values = vec![0.5; own.slots()];
            let plain = own.encoder().encode(&values, expected.scale, expected.level).expect("a plaintext");
            let mut fresh =
                || -> SeededCiphertext { key.encrypt(own, &plain, &mut seeds).expect("a ciphertext") };
            let sample = |fresh: &mut dyn FnMut() -> SeededCiphertext| -> Vec<Stored> {
                let first = fresh();
                let first = match context.lower() {
                    [] => Stored::Seeded(first),
                    _ => Stored::Full(first.expand(own)),
                };
                vec![first, Stored::Full(fresh().expand(own))]
            };
            let samples = vec![sample(&mut fresh), sample(&mut fresh)];
            let names = vec!["one".to_owned(), "two".to_owned()];
            let ciphertexts = Ciphertexts { names, ..Ciphertexts::new(key.id(), samples) };
            encode_ciphertexts(data, context, &expected, &ciphertexts).expect("a file");
        }))
    }
}

impl Target for CiphertextFiles {
    type Read = (Ciphertexts, Rings);
    const NAME: &'static str = "ciphertexts";

    fn input(&self, random: &mut Random) -> Vec<u8> {
        self.0.changed(random)
    }

    fn read(&self, input: &[u8]) -> Option<(Ciphertexts, Rings)> {
        let rings = self.0.rings_of(input);
        let context = &self.0.sound(rings).context;
        Some((outcome(decode_ciphertexts(input, input.len() as u64, context, &expected()))?, rings))
    }

    fn memory_bound(&self, len: usize) -> usize {
        memory_bound(len)
    }

    fn exercise(&self, (read, rings): (Ciphertexts, Rings), _random: &mut Random) -> Result<(), String> {
        let context = &self.0.sound(rings).context;
        let looks_right = |stored: Stored| {
            let ciphertext = stored.expand(context);
            ciphertext.level() == expected().level && ciphertext.scale().agrees(expected().scale)
        };
        match read.samples.into_iter().flatten().all(looks_right) {
            true => Ok(()),
            false => Err("a ciphertext of another level or scale was accepted".to_owned()),
        }
    }
}
