//! Key and ciphertext files in a ring of degree 32.

use std::sync::Arc;

use fhe_bytecode::{Fingerprint, Level, Params, ParamsSpec, Scale, params::ntt_primes_below};
use fhe_ckks::{Context, KeyRequest, KeyUse, Rotation};
use fhe_client::{decode_secret_key, encode_secret_key};
use fhe_files::{
    Ciphertexts, Expected, FormatError, Role, Stored, decode_ciphertexts, decode_evaluation_keys,
    encode_ciphertexts, encode_evaluation_keys,
};
use fhe_secret::{SecretKey, SeedSource};
use fhec_tests::models::random::Random;

use crate::mutate;
use crate::run::Target;

/// Bytes of the length and the hash at the end.
const HASH_BYTES: usize = 32;
const LENGTH_BYTES: usize = 8;

/// Secret keys.
pub(super) struct SecretKeys(Seed);
/// Evaluation keys.
pub(super) struct EvaluationKeyFiles(Seed);
/// Ciphertexts.
pub(super) struct CiphertextFiles(Seed);

/// A context and a sound file for it.
struct Seed {
    context: Arc<Context>,
    data: Vec<u8>,
}

impl Seed {
    /// Makes a key and has `write` make a file with it.
    fn new(write: impl FnOnce(&mut Vec<u8>, &Context, &SecretKey)) -> Self {
        let log_n = 5;
        let mut towers = ntt_primes_below(30, log_n, 2, &[]).expect("small primes");
        towers.extend(ntt_primes_below(22, log_n, 1, &towers).expect("small primes"));
        let special_primes = ntt_primes_below(33, log_n, 1, &towers).expect("small primes");
        let spec = ParamsSpec { log_n, towers, special_primes, digit_size: 1, insecure: false, toy: true };
        let context = Context::new(Params::new(spec).expect("toy parameters")).expect("a toy context");
        let key = SecretKey::generate(&context, &mut SeedSource::deterministic(1)).expect("a key");
        let mut data = Vec::new();
        write(&mut data, &context, &key);
        Self { data, context }
    }

    /// The file, changed; in half of the cases its length and hash are right.
    fn changed(&self, random: &mut Random) -> Vec<u8> {
        let mut data = mutate::bytes(&self.data, &self.data, random);
        let has_trailer = data.len() > HASH_BYTES + LENGTH_BYTES;
        if has_trailer && random.below(2) == 0 {
            let (hash_at, length_at) = (data.len() - HASH_BYTES, data.len() - HASH_BYTES - LENGTH_BYTES);
            data[length_at..hash_at].copy_from_slice(&(length_at as u64).to_le_bytes());
            let hash = blake3::hash(&data[..hash_at]);
            data[hash_at..].copy_from_slice(hash.as_bytes());
        }
        data
    }
}

fn outcome<T>(read: Result<T, FormatError>) -> Option<()> {
    // Every error must be printable.
    read.map(drop).inspect_err(|e| assert!(!e.to_string().is_empty())).ok()
}

fn memory_bound(len: usize) -> usize {
    // Packed residues of twenty bits become words, beside the packed ones and the seeds' halves.
    32 * len + (64 << 10)
}

impl SecretKeys {
    pub(super) fn new() -> Self {
        Self(Seed::new(|data, context, key| {
            data.extend_from_slice(&encode_secret_key(context, key).expect("a file"));
        }))
    }
}

impl Target for SecretKeys {
    type Read = ();
    const NAME: &'static str = "secret-key";

    fn input(&self, random: &mut Random) -> Vec<u8> {
        self.0.changed(random)
    }

    fn read(&self, input: &[u8]) -> Option<()> {
        outcome(decode_secret_key(input, &self.0.context))
    }

    fn memory_bound(&self, len: usize) -> usize {
        memory_bound(len)
    }

    fn exercise(&self, (): (), _random: &mut Random) -> Result<(), String> {
        Ok(())
    }
}

impl EvaluationKeyFiles {
    pub(super) fn new() -> Self {
        Self(Seed::new(|data, context, key| {
            let mut request = KeyRequest::default();
            request.add(KeyUse::Relinearize, Level(1));
            request.add(KeyUse::Rotate(Rotation::new(3, context)), Level(2));
            request.add(KeyUse::Rotate(Rotation::conjugation(context)), Level(0));
            let seeds = &mut SeedSource::deterministic(2);
            let keys = key.evaluation_keys(context, &request, seeds).expect("keys");
            encode_evaluation_keys(data, context, &keys).expect("a file");
        }))
    }
}

impl Target for EvaluationKeyFiles {
    type Read = ();
    const NAME: &'static str = "evaluation-keys";

    fn input(&self, random: &mut Random) -> Vec<u8> {
        self.0.changed(random)
    }

    fn read(&self, input: &[u8]) -> Option<()> {
        outcome(decode_evaluation_keys(input, input.len() as u64, &self.0.context))
    }

    fn memory_bound(&self, len: usize) -> usize {
        memory_bound(len)
    }

    fn exercise(&self, (): (), _random: &mut Random) -> Result<(), String> {
        Ok(())
    }
}

/// What the ciphertexts of the sound file look like.
fn expected() -> Expected {
    let (program, scale) = (Fingerprint([7; 32]), Scale::from_log2(20.0));
    Expected { program, role: Role::Input, n_ciphertexts: 2, level: Level(2), scale }
}

impl CiphertextFiles {
    pub(super) fn new() -> Self {
        Self(Seed::new(|data, context, key| {
            let expected = expected();
            let mut seeds = SeedSource::deterministic(3);
            let values = vec![0.5; context.slots()];
            let plain =
                context.encoder().encode(&values, expected.scale, expected.level).expect("a plaintext");
            let mut fresh = || key.encrypt(context, &plain, &mut seeds).expect("a ciphertext");
            let samples = (0..2)
                .map(|_| vec![Stored::Seeded(fresh()), Stored::Full(fresh().expand(context))])
                .collect();
            let ciphertexts = Ciphertexts { key_id: key.id(), samples };
            encode_ciphertexts(data, context, &expected, &ciphertexts).expect("a file");
        }))
    }
}

impl Target for CiphertextFiles {
    type Read = Ciphertexts;
    const NAME: &'static str = "ciphertexts";

    fn input(&self, random: &mut Random) -> Vec<u8> {
        self.0.changed(random)
    }

    fn read(&self, input: &[u8]) -> Option<Ciphertexts> {
        let read = decode_ciphertexts(input, input.len() as u64, &self.0.context, &expected());
        read.inspect_err(|e| assert!(!e.to_string().is_empty())).ok()
    }

    fn memory_bound(&self, len: usize) -> usize {
        memory_bound(len)
    }

    fn exercise(&self, read: Ciphertexts, _random: &mut Random) -> Result<(), String> {
        let context = &self.0.context;
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
