//! A client with keys of its own, over the wire.

use std::sync::Arc;

use fhe_bytecode::CheckedProgram;
use fhe_bytecode::clear::ClearProgram;
use fhe_bytecode::codec::{DEFAULT_LIMIT, decode};
use fhe_ckks::{Context, key_request};
use fhe_files::{
    Ciphertexts, Expected, Stored, decode_ciphertexts, encode_ciphertexts, encode_evaluation_keys,
};
use fhe_fixed_seeds::fixed_seeds;
use fhe_secret::SecretKey;

use crate::fixture::{Running, program_path};
use crate::wire::Answer;

pub(crate) struct TestClient {
    pub(crate) program: CheckedProgram,
    pub(crate) context: Arc<Context>,
    pub(crate) key: SecretKey,
    /// The file of evaluation keys.
    pub(crate) keys: Vec<u8>,
    /// A header with the client's token, if it has one.
    pub(crate) token: Option<String>,
}

impl TestClient {
    pub(crate) fn new(seed: u64, token: Option<&str>) -> Self {
        let bytes = std::fs::read(program_path()).unwrap();
        let program = decode(&bytes, DEFAULT_LIMIT).unwrap();
        let context = Context::new(program.params().clone()).unwrap();
        let mut seeds = fixed_seeds(seed);
        let key = SecretKey::generate(&context, &mut seeds).unwrap();
        let evaluation = key.evaluation_keys(&context, &key_request(&context, &program), &mut seeds).unwrap();
        let mut keys = Vec::new();
        encode_evaluation_keys(&mut keys, &context, &evaluation).unwrap();
        Self { program, context, key, keys, token: token.map(|token| format!("Bearer {token}")) }
    }

    /// The hash of the program, as it stands in paths.
    pub(crate) fn program_id(&self) -> String {
        hex(&self.program.interface().program().0)
    }

    pub(crate) fn key_id(&self) -> String {
        hex(&self.key.id().0)
    }

    pub(crate) fn keys_path(&self) -> String {
        format!("/v1/programs/{}/keys/{}", self.program_id(), self.key_id())
    }

    pub(crate) fn jobs_path(&self) -> String {
        format!("/v1/programs/{}/jobs?key={}", self.program_id(), self.key_id())
    }

    pub(crate) fn send(
        &self,
        server: &Running,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Answer {
        let mut all = headers.to_vec();
        all.extend(self.token.as_deref().map(|token| ("Authorization", token)));
        server.send(method, path, &all, body)
    }

    pub(crate) fn get(&self, server: &Running, path: &str) -> Answer {
        self.send(server, "GET", path, &[], b"")
    }

    /// Sends the evaluation keys and waits until they are ready.
    pub(crate) fn upload(&self, server: &Running) {
        let answer = self.send(server, "PUT", &format!("{}?wait=60", self.keys_path()), &[], &self.keys);
        assert_eq!(answer.expect(200, "").json()["state"], "ready");
    }

    /// An input of the program; numbers within its range.
    pub(crate) fn tensor(&self, number: u64) -> Vec<f64> {
        let len = self.program.input_layout().shape().len() as u64;
        (0..len).map(|i| ((i * 37 + number * 101) % 97) as f64 / 97.0 - 0.5).collect()
    }

    /// An encrypted input file; different for every seed.
    pub(crate) fn encrypt(&self, tensor: &[f64], seed: u64) -> Vec<u8> {
        let mut seeds = fixed_seeds(seed);
        let layout = self.program.input_layout();
        let input = &self.program.spec().input;
        let slots = layout.scatter(&tensor.repeat(layout.members()));
        let sample = slots.iter().map(|slots| {
            let plain = self.context.encoder().encode(slots, input.scale, input.level).unwrap();
            Stored::Seeded(self.key.encrypt(&self.context, &plain, &mut seeds).unwrap())
        });
        let all = Ciphertexts::new(self.key.id(), vec![sample.collect()]);
        let mut bytes = Vec::new();
        encode_ciphertexts(&mut bytes, &self.context, &Expected::input(&self.program.interface()), &all)
            .unwrap();
        bytes
    }

    /// The largest difference between a result and what the program gives in the clear.
    pub(crate) fn error(&self, result: &[u8], tensor: &[f64]) -> f64 {
        let read = decode_ciphertexts(
            result,
            result.len() as u64,
            &self.context,
            &Expected::result(&self.program.interface()),
        )
        .unwrap();
        assert_eq!(read.key_id, self.key.id());
        let slots: Vec<Vec<f64>> = (read.samples[0].iter())
            .map(|stored| self.key.decrypt(&self.context, &stored.clone().expand(&self.context)).unwrap())
            .collect();
        let found = self.program.output_layout().gather(&slots);
        let clear = ClearProgram::new(&self.program).run(tensor, &mut ()).unwrap();
        found.iter().zip(clear).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
