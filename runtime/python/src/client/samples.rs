//! Samples to ciphertexts, and back.

use std::io::Cursor;

use fhe_bytecode::Port;
use fhe_client::{Answer, Client, ClientError, Outside, Told, prepare, prepare_part, prepare_unchecked};
use fhe_files::{Ciphertexts as Stored, Expected, decode_ciphertexts, encode_ciphertexts, read_request};
use fhe_secret::SeedSource;

use crate::ciphertexts::Ciphertexts;
use crate::fault::{Class, Fault};
use crate::long::Watch;
use crate::samples::Given;

/// Every sample, normalized, checked and encrypted; and what is to be said of numbers that the model was not calibrated on.
/// With `part` they are samples of that one of several inputs.
pub(super) fn encrypted(
    client: &Client,
    given: &Given,
    part: Option<(u32, &Port)>,
    any_range: bool,
    watch: &Watch,
) -> Result<(Ciphertexts, Option<String>), Fault> {
    one_at_a_time(client)?;
    let prepared = |raw| match (any_range, part) {
        (true, _) => prepare_unchecked(client.interface(), raw),
        (false, None) => prepare(client.interface(), raw),
        (false, Some((_, port))) => prepare_part(client.interface(), port, raw),
    };
    let (mut seeds, n) = (SeedSource::os(), given.len());
    let mut outside: Option<(String, usize)> = None;
    let samples = (0..n)
        .map(|i| {
            watch.tell(Some(i as f64 / n as f64), format!("sample {} of {n}", i + 1));
            let tensor = prepared(given.raw(i)?)
                .map_err(|error| Fault::from(error).about(&given.name(i)).with_fact("sample", i))?;
            let judged = part.map_or(Some(0..tensor.len()), |(_, port)| port.range(tensor.len()));
            let worst = judged.and_then(|positions| Outside::among(client.interface(), &tensor, positions));
            if let Some(worst) = worst {
                outside.get_or_insert_with(|| (format!("{}: {worst}", given.name(i)), 0)).1 += 1;
            }
            Ok(client.encrypt(&tensor, &mut seeds)?.into_iter().map(fhe_files::Stored::Seeded).collect())
        })
        .collect::<Result<_, Fault>>()?;
    let stored = Stored::new(client.key().id(), samples);
    let mut bytes = Vec::new();
    let expected = match part {
        None => Expected::input(client.interface()),
        Some((index, _)) => Expected::part(client.interface(), index),
    };
    encode_ciphertexts(&mut bytes, client.context(), &expected, &stored)
        .map_err(|error| Fault::format("request", error))?;
    let outside = outside.map(|(first, count)| {
        format!(
            "{count} of {n} samples have numbers that the model was not calibrated on, so the error bound is not for them; {first}"
        )
    });
    Ok((Ciphertexts::new(bytes, "request")?, outside))
}

/// Refuses programs that were built for batches.
fn one_at_a_time(client: &Client) -> Result<(), ClientError> {
    match client.interface().batch() {
        1 => Ok(()),
        batch => Err(ClientError::Batch { batch }),
    }
}

/// Which digits of scores are asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Digits {
    None,
    Rounded,
    All,
}

/// What every result says, after its key and the request that it answers were checked.
pub(super) fn decrypted(
    client: &Client,
    bytes: &[u8],
    request: Option<&[u8]>,
    digits: Digits,
    watch: &Watch,
) -> Result<Vec<Told>, Fault> {
    one_at_a_time(client)?;
    let (context, wanted) = (client.context(), Expected::result(client.interface()));
    let results = decode_ciphertexts(Cursor::new(bytes), bytes.len() as u64, context, &wanted)
        .map_err(|error| Fault::format("result", error))?;
    let (found, expected) = (results.key_id, client.key().id());
    if found != expected {
        let kind = fhe_files::FormatError::WrongKey { found, expected };
        return Err(Fault::format("result", kind));
    }
    if let Some(request) = request {
        let asked = Expected::input(client.interface());
        let request = read_request(Cursor::new(request), request.len() as u64, context, &asked)
            .map_err(|error| Fault::format("request", error))?;
        results.check_answers(&request).map_err(|error| Fault::format("result", error))?;
    }
    let n = results.samples.len();
    let one = |(i, sample): (usize, Vec<fhe_files::Stored>)| {
        watch.tell(Some(i as f64 / n as f64), format!("sample {} of {n}", i + 1));
        let sample: Vec<_> = sample.into_iter().map(|stored| stored.expand(context)).collect();
        let every_digit = client.decrypt_raw(&sample)?;
        let mut told = Answer::new(client.interface(), &every_digit).told(digits != Digits::None);
        if digits == Digits::All {
            told.scores = Some(every_digit.to_vec());
        }
        Ok(told)
    };
    results.samples.into_iter().enumerate().map(one).collect()
}

impl From<ClientError> for Fault {
    fn from(error: ClientError) -> Self {
        let (class, code, remedy) = match &error {
            ClientError::WrongParameters { .. } => {
                (Class::Mismatch, "other-parameters", "make keys for this very program")
            }
            ClientError::TensorLength { .. } | ClientError::ResultCount { .. } => {
                (Class::Mismatch, "other-program", "encrypt the input for this very program")
            }
            ClientError::Batch { .. } => {
                (Class::Mismatch, "for-batches", "use fhe-run, or a program that was built without a batch")
            }
            ClientError::OutOfRange { .. } => (
                Class::Data,
                "out-of-range",
                "give uint8 from 0 to 255 for pictures, or numbers as the model takes them; any_range=True insists",
            ),
            _ => (Class::Data, "not-encodable", "encrypt values that the model was trained on"),
        };
        let fault = Self::new(class, code, error.to_string()).with_remedy(remedy);
        match error {
            ClientError::OutOfRange { index, value, range } => fault
                .with_fact("index", index)
                .with_fact("value", value)
                .with_fact("wanted", vec![range.low, range.high]),
            _ => fault,
        }
    }
}
