//! Program files: the decoder and the checker, then the clear interpreter and the machine on what they accept.
//!
//! Bytes are changed in the file, with or without the checksum made right, or in the fields of the program itself, which
//! then goes to the checker as text. Half of the programs are for rings that are used in earnest; a change of their shapes,
//! members, kernels and counts asks for the work of a large network in a file of a few kilobytes.

use std::sync::Arc;

use fhe_bytecode::clear::ClearProgram;
use fhe_bytecode::codec::{self, DEFAULT_LIMIT, DecodeError};
use fhe_bytecode::{CheckedProgram, ProgramSpec};
use fhe_ckks::{Context, key_request};
use fhe_client::Client;
use fhe_fixed_seeds::fixed_seeds;
use fhe_machine::{Cancel, Input, Model, Options, Session, Silent};
use fhe_runtime::TrialError;
use fhe_secret::SecretKey;
use fhec::pipeline::LayoutChoice;
use fhec_tests::models::random::Random;
use serde_json::Value;

use super::specimen::{BRANCHED, DENSE, ensemble_program, golden, program};
use crate::run::Target;
use crate::{mutate, tree};

const CHECKSUM_BYTES: usize = 32;
const CHECKSUM_CONTEXT: &str = "fhec 1 program file";
/// Where the header has the fingerprint of the parameters.
const FINGERPRINT: std::ops::Range<usize> = 12..44;
/// One in so many accepted programs is evaluated under encryption.
const ENCRYPTED: usize = 16;
/// Largest ring, longest program and widest tensor that are evaluated.
const MAX_N: usize = 1 << 10;
const MAX_INSTRUCTIONS: usize = 200;
const MAX_CIPHERTEXTS: usize = 64;

/// One in so many accepted programs for large rings is interpreted.
const INTERPRETED: usize = 256;

/// Programs in tiny rings and in rings of degree 2^12 to 2^15, with and without ports, tails and a pool.
pub(super) struct Program {
    seeds: Vec<(Vec<u8>, Value)>,
}

impl Program {
    pub(super) fn new() -> Self {
        let programs = [
            program(DENSE, LayoutChoice::Packed, 5),
            program(BRANCHED, LayoutChoice::Packed, 6),
            program(BRANCHED, LayoutChoice::Hw, 6),
            program(DENSE, LayoutChoice::Packed, 12),
            program(BRANCHED, LayoutChoice::Packed, 14),
            program(BRANCHED, LayoutChoice::Hw, 15),
            ensemble_program(BRANCHED, LayoutChoice::Hw, 15),
        ];
        let programs = programs.into_iter().chain(golden());
        let seed = |p: CheckedProgram| {
            (codec::encode(&p), serde_json::to_value(p.spec()).expect("a program has a textual form"))
        };
        Self { seeds: programs.map(seed).collect() }
    }
}

impl Target for Program {
    type Read = CheckedProgram;
    const NAME: &'static str = "program";

    fn input(&self, random: &mut Random) -> Vec<u8> {
        let (bytes, spec) = &self.seeds[random.below(self.seeds.len())];
        match random.below(4) {
            0 => mutate::bytes(bytes, &self.seeds[0].0, random),
            1 => sealed(mutate::bytes(bytes, &self.seeds[0].0, random)),
            _ => {
                let mut spec = spec.clone();
                match random.below(2) {
                    0 => tree::change(&mut spec, random),
                    _ => tree::resize(&mut spec, random),
                }
                spec.to_string().into_bytes()
            }
        }
    }

    fn read(&self, input: &[u8]) -> Option<CheckedProgram> {
        let read = match input.starts_with(b"{") {
            true => {
                let spec: ProgramSpec = serde_json::from_slice(input).ok()?;
                CheckedProgram::new(spec).map_err(|e| e.to_string())
            }
            false => codec::decode(input, DEFAULT_LIMIT).map_err(|e| e.to_string()),
        };
        // Every error must be printable.
        read.inspect_err(|message| assert!(!message.is_empty())).ok()
    }

    fn memory_bound(&self, len: usize) -> usize {
        // What any command may take for a file of less than a megabyte.
        256 * len + (64 << 20)
    }

    fn exercise(&self, program: CheckedProgram, random: &mut Random) -> Result<(), String> {
        let bytes = codec::encode(&program);
        let again = codec::decode(&bytes, DEFAULT_LIMIT).map_err(|e| format!("reads not back: {e}"))?;
        if codec::encode(&again) != bytes {
            return Err("an accepted program reads back as another one".to_owned());
        }
        if !is_small(&program, random) {
            return Ok(());
        }
        let n = program.input_layout().shape().len();
        let input: Vec<f64> = (0..n).map(|_| f64::from(random.uniform(-1.0, 1.0))).collect();
        ClearProgram::new(&program).run(&input, &mut ()).map_err(|e| e.to_string())?;
        if program.params().n() <= MAX_N && random.below(ENCRYPTED) == 0 {
            evaluate(&program, &input)
                .map_err(|e| format!("evaluation: {e}: {:?}", std::error::Error::source(&e)))?;
        }
        Ok(())
    }
}

fn is_small(program: &CheckedProgram, random: &mut Random) -> bool {
    let spec = program.spec();
    let (is_tiny, is_chosen) = (program.params().n() <= MAX_N, random.below(INTERPRETED) == 0);
    let most = if is_tiny { MAX_CIPHERTEXTS } else { 4 };
    let n_cts = |i: usize| program.fact(i).map_or(0, |fact| program.layout(fact.layout).n_cts());
    (is_tiny || is_chosen)
        && spec.instructions.len() <= MAX_INSTRUCTIONS
        && (0..spec.instructions.len()).all(|i| n_cts(i) <= most)
}

fn evaluate(program: &CheckedProgram, input: &[f64]) -> Result<(), TrialError> {
    let context = Context::new(program.params().clone())?;
    let mut seeds = fixed_seeds(1);
    let secret = SecretKey::generate(&context, &mut seeds)?;
    let request = key_request(&context, program);
    let keys = secret.evaluation_keys(&context, &request, &mut seeds)?;
    let client = Client::new(Arc::new(program.interface()), Arc::clone(&context), secret)?;
    let options = Options { memory: 1 << 30, n_evaluations: 1 };
    let model = Model::new(program, Arc::clone(&context), options)?;
    let session = Session::new(Arc::new(model), Arc::new(keys))?;
    let fresh = client.encrypt(input, &mut seeds)?;
    let ciphertexts = fresh.iter().map(|ciphertext| ciphertext.expand(&context)).collect();
    let ciphertexts = Input::new(&context, client.key().id(), ciphertexts);
    let (result, _) = session.evaluate(ciphertexts, &Cancel::default(), &Silent)?;
    Ok(client.decrypt_raw(&result).map(drop)?)
}

/// The same bytes with the checksum, and the fingerprint if the parameters are sound, made right.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    if bytes.len() < FINGERPRINT.end + CHECKSUM_BYTES {
        return bytes;
    }
    seal(&mut bytes);
    if let Err(DecodeError::Fingerprint { computed, .. }) = codec::decode(&bytes, DEFAULT_LIMIT) {
        bytes[FINGERPRINT].copy_from_slice(&computed.0);
        seal(&mut bytes);
    }
    bytes
}

fn seal(bytes: &mut [u8]) {
    let body = bytes.len() - CHECKSUM_BYTES;
    let checksum =
        *blake3::Hasher::new_derive_key(CHECKSUM_CONTEXT).update(&bytes[..body]).finalize().as_bytes();
    bytes[body..].copy_from_slice(&checksum);
}
