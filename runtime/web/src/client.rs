//! A program's input and output under one secret key: files in, files out.

use std::collections::VecDeque;
use std::sync::Arc;

use fhe_bytecode::codec::{INTERFACE_LIMIT, read_interface};
use fhe_bytecode::{Interface, Raw};
use fhe_ckks::Context;
use fhe_client::{Answer, decode_secret_key, encode_secret_key, insecurity, prepare};
use fhe_files::{Ciphertexts, Expected, Request, Stored, decode_ciphertexts, encode_ciphertexts};
use fhe_secret::{SecretKey, SeedSource};
use zeroize::Zeroizing;

use super::error::Refusal;
use super::facts::{Facts, hex};
use super::keys::KeyStream;

/// Requests whose results are still taken; older ones are forgotten.
const MAX_REQUESTS: usize = 64;

/// A client of one program.
pub struct Client {
    inner: Arc<fhe_client::Client>,
    requests: VecDeque<Request>,
}

impl Client {
    /// A client of the program of an interface, with the secret key of a file or a new one. Parameters below the bar of
    /// security are refused unless they are asked for.
    ///
    /// # Errors
    /// If the interface is damaged, ill formed or insecure, or the key is for another program.
    pub fn new(interface: &[u8], key: Option<&[u8]>, insecure: bool) -> Result<Self, Refusal> {
        let interface = read_interface(interface, INTERFACE_LIMIT)
            .map_err(|error| Refusal::of("interface", "the program's interface")(&error))?;
        if let Some(reason) = insecurity(interface.params()).filter(|_| !insecure) {
            return Err(Refusal::new("insecure", reason));
        }
        let wrong = Refusal::of("parameters", "the program's parameters:");
        let context = Context::new(interface.params().clone()).map_err(|error| wrong(&error))?;
        let key = match key {
            Some(file) => read_key(file, &context, &interface)?,
            None => SecretKey::generate(&context, &mut SeedSource::os())
                .map_err(|error| Refusal::of("randomness", "a key cannot be made:")(&error))?,
        };
        let client = fhe_client::Client::new(Arc::new(interface), context, key);
        let inner = Arc::new(client.map_err(|error| wrong(&error))?);
        Ok(Self { inner, requests: VecDeque::new() })
    }

    /// What there is to know of the program.
    pub fn facts(&self) -> Facts {
        Facts::of(&self.inner)
    }

    /// The secret key as a file; erased when dropped.
    ///
    /// # Errors
    /// Never in practice: memory is written.
    pub fn key_file(&self) -> Result<Zeroizing<Vec<u8>>, Refusal> {
        let (client, program) = (&self.inner, self.inner.interface().program());
        let file = encode_secret_key(client.context(), client.key(), program);
        file.map_err(|error| Refusal::of("key", "the secret key")(&error))
    }

    /// The evaluation keys, to be sent as they are made.
    ///
    /// # Errors
    /// Never in practice: memory is written.
    pub fn evaluation_keys(&self) -> Result<KeyStream, Refusal> {
        KeyStream::new(Arc::clone(&self.inner))
    }

    /// A file of one encrypted input, whose result this client will take.
    ///
    /// # Errors
    /// If there are not as many numbers as the program takes, or one is out of range.
    pub fn encrypt(&mut self, raw: Raw<'_>) -> Result<Vec<u8>, Refusal> {
        let wrong = Refusal::of("input", "the input cannot be encrypted:");
        let (client, mut file) = (&self.inner, Vec::new());
        let tensor = Zeroizing::new(prepare(client.interface(), raw).map_err(|error| wrong(&error))?);
        let fresh = client.encrypt(&tensor, &mut SeedSource::os()).map_err(|error| wrong(&error))?;
        let sample = fresh.into_iter().map(Stored::Seeded).collect();
        let ciphertexts = Ciphertexts::new(client.key().id(), vec![sample]);
        let expected = Expected::input(client.interface());
        let request = encode_ciphertexts(&mut file, client.context(), &expected, &ciphertexts)
            .map_err(|error| wrong(&error))?;
        self.requests.truncate(MAX_REQUESTS - 1);
        self.requests.push_front(request);
        Ok(file)
    }

    /// What a result says that answers one of the latest requests, and none that was answered before.
    ///
    /// # Errors
    /// If the file is damaged, or answers something else.
    pub fn decrypt(&mut self, file: &[u8]) -> Result<Answer, Refusal> {
        let wrong = Refusal::of("result", "the result");
        let (client, context) = (&self.inner, self.inner.context());
        let expected = Expected::result(client.interface());
        let result =
            decode_ciphertexts(file, file.len() as u64, context, &expected).map_err(|error| wrong(&error))?;
        if result.key_id != client.key().id() {
            return Err(Refusal::new("result", "the result is encrypted under another key"));
        }
        let latest = self.requests.iter().map(|request| result.check_answers(request));
        let answered = latest.enumerate().find_map(|(at, answers)| answers.is_ok().then_some(at));
        let (Some(at), [sample]) = (answered, &result.samples[..]) else {
            let message = "the result answers no request of this client, or one that was answered before";
            return Err(Refusal::new("result", message));
        };
        let sample: Vec<_> = sample.iter().map(|stored| stored.clone().expand(context)).collect();
        let answer = client.decrypt(&sample).map_err(|error| wrong(&error))?;
        self.requests.remove(at);
        Ok(answer)
    }
}

/// The secret key of a file that was made for this program.
fn read_key(file: &[u8], context: &Context, interface: &Interface) -> Result<SecretKey, Refusal> {
    let wrong = Refusal::of("key", "the secret key");
    let (key, program) = decode_secret_key(file, context).map_err(|error| wrong(&error))?;
    match program {
        Some(program) if program == interface.program() => Ok(key),
        Some(program) => {
            let (is, wanted) = (hex(&program.0[..8]), hex(&interface.program().0[..8]));
            Err(Refusal::new("key", format!("the secret key is for program {is}…, not for {wanted}…")))
        }
        None => Err(Refusal::new("key", "the secret key does not say which program it was made for")),
    }
}
