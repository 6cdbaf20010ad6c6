//! What a page wants to know of a program, all of it computed here from the interface.

use fhe_bytecode::text::harmless;
use fhe_client::{Client, label};
use fhe_files::{Expected, Form, ciphertexts_len, evaluation_keys_len};

/// Facts of a program and of the client's key for it.
#[derive(Clone, Debug)]
pub struct Facts {
    /// Hash of the program, in hexadecimal digits.
    pub program: String,
    /// Id of the secret key, in hexadecimal digits.
    pub key: String,
    /// Name of the model, as its author wrote it.
    pub model: String,
    /// Channels of the input.
    pub channels: u32,
    /// Rows of the input.
    pub height: u32,
    /// Columns of the input.
    pub width: u32,
    /// Number of scores.
    pub n_scores: u32,
    /// Labels of the classes, where the program has them.
    pub labels: Vec<String>,
    /// log2 of the ring degree.
    pub log_n: u32,
    /// Bits of the modulus, with the special primes.
    pub modulus_bits: f64,
    /// Number of evaluation keys.
    pub n_keys: u32,
    /// Bytes of the file of evaluation keys.
    pub key_file_bytes: u64,
    /// Bytes of an encrypted input.
    pub input_bytes: u64,
    /// Bytes of an encrypted result.
    pub result_bytes: u64,
    /// What scores are rounded to.
    pub unit: f64,
    /// Seconds of an evaluation, as the author of the program expects them.
    pub predicted_seconds: f64,
    /// What computes the transforms here, for those who measure.
    pub engine: String,
}

/// Bytes as lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Facts {
    pub(crate) fn of(client: &Client) -> Self {
        let (interface, context) = (client.interface(), client.context());
        let (params, shape) = (interface.params(), interface.input_layout().shape());
        let len = |expected, form| ciphertexts_len(context, &expected, 1, form);
        let request = fhe_ckks::key_request(context, &**interface);
        Self {
            program: hex(&interface.program().0),
            key: hex(&client.key().id().0),
            model: harmless(&interface.spec().origin.model),
            channels: shape.channels,
            height: shape.height,
            width: shape.width,
            // No list of as many names as there are scores: a few bytes of a file can ask for 2^28 of them.
            n_scores: u32::try_from(interface.output_layout().shape().len()).unwrap_or(u32::MAX),
            labels: (0..interface.output().labels.len()).map(|i| label(interface, i)).collect(),
            log_n: params.log_n(),
            modulus_bits: params.log2_pq(),
            n_keys: request.len() as u32,
            key_file_bytes: evaluation_keys_len(params, request.places()),
            input_bytes: len(Expected::input(interface), Form::Seeded),
            result_bytes: len(Expected::result(interface), Form::Full),
            unit: fhe_client::Resolution::of(interface).unit(),
            predicted_seconds: interface.spec().prediction.seconds,
            engine: context.ring().towers()[0].ntt.engine_name().to_owned(),
        }
    }
}
