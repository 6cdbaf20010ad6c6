//! Evaluation keys as a stream of bytes, one key at a time.
//!
//! Their randomness grows from the secret key and from what is asked for, so the same stream can be begun again and gone on with
//! at any byte: the server says how many it has.

use std::sync::Arc;

use fhe_ckks::key_request;
use fhe_client::Client;
use fhe_files::EvaluationKeysWriter;
use fhe_secret::SeedSource;

use super::error::Refusal;

/// The file of evaluation keys, in pieces of about one key. No more than one is in memory.
pub struct KeyStream {
    client: Arc<Client>,
    seeds: SeedSource,
    /// None after the end.
    writer: Option<EvaluationKeysWriter<Vec<u8>>>,
}

impl KeyStream {
    pub(crate) fn new(client: Arc<Client>) -> Result<Self, Refusal> {
        let context = client.context();
        let request = key_request(context, &**client.interface());
        let seeds = SeedSource::of_keys(context, client.key(), &request);
        let writer = EvaluationKeysWriter::new(Vec::new(), context, client.key().id(), &request)
            .map_err(|error| Refusal::of("keys", "the file of evaluation keys")(&error))?;
        Ok(Self { client, seeds, writer: Some(writer) })
    }

    /// The bytes of the next key, with what comes before the first one; after the last one the end of the file; then none.
    ///
    /// # Errors
    /// Never in practice: memory is written.
    pub fn next_bytes(&mut self) -> Result<Option<Vec<u8>>, Refusal> {
        let wrong = Refusal::of("keys", "the file of evaluation keys");
        let Some(writer) = &mut self.writer else { return Ok(None) };
        let Some(wanted) = writer.next_key() else {
            let end = self.writer.take().map(EvaluationKeysWriter::finish);
            return end.transpose().map_err(|error| wrong(&error));
        };
        let (context, key) = (self.client.context(), self.client.key());
        let digits = key.key_digits(context, wanted, &mut self.seeds).map_err(|error| wrong(&error))?;
        writer.write(context, wanted, digits.seed(), digits).map_err(|error| wrong(&error))?;
        Ok(Some(std::mem::take(writer.inner_mut())))
    }
}
