//! One input: encrypted, evaluated by the server, compared with what was asked, decrypted.

use std::io::{BufRead, BufReader};
use std::time::Duration;

use fhe_bytecode::text::harmless;
use fhe_client::Client;
use fhe_files::{
    Ciphertexts, Expected, Form, Request, Stored, ciphertexts_len, decode_ciphertexts, encode_ciphertexts,
};
use fhe_secret::SeedSource;
use zeroize::Zeroizing;

use super::super::error::CliError;
use super::super::progress::Bar;
use super::RemoteError;
use super::server::{Job, Program, Server, hex};

/// Times that a job is looked at before it is given up: a day at most.
const MAX_LOOKS: u32 = 10_000;
/// Most bytes of one event.
const EVENT_LIMIT: usize = 64 << 10;

/// An input that the server has.
pub(super) struct Asked {
    job: Job,
    request: Request,
}

/// Encrypts an input and hands it to the server, which begins when it can.
pub(super) fn ask(
    server: &Server,
    program: &Program,
    client: &Client,
    tensor: &[f64],
) -> Result<Asked, CliError> {
    let fresh = client.encrypt(tensor, &mut SeedSource::os())?;
    let sample = fresh.into_iter().map(Stored::Seeded).collect();
    let (key_id, context) = (client.key().id(), client.context());
    let mut input = Vec::new();
    // Names of samples stay here: they are none of the server's business.
    let ciphertexts = Ciphertexts::new(key_id, vec![sample]);
    let request = encode_ciphertexts(&mut input, context, &Expected::input(client.interface()), &ciphertexts)
        .map_err(|error| CliError::Output(std::io::Error::other(error)))?;
    let result = ciphertexts_len(context, &Expected::result(client.interface()), 1, Form::Full);
    // What comes back is held in memory, so its size is not the server's to say.
    let sizes = [
        ("an encrypted input", program.input_bytes, input.len() as u64),
        ("an encrypted result", program.result_bytes, result),
    ];
    if let Some((what, said, computed)) = sizes.into_iter().find(|(_, said, computed)| said != computed) {
        return Err(RemoteError::Sizes { what, said, computed }.into());
    }
    Ok(Asked { job: server.submit(program, &hex(&key_id.0), &input)?, request })
}

/// The decrypted scores of an input.
pub(super) fn answer(
    server: &Server,
    program: &Program,
    client: &Client,
    asked: Asked,
    bar: &Bar,
) -> Result<Zeroizing<Vec<f64>>, CliError> {
    let Asked { job, request } = asked;
    let id = job.id.clone();
    let job = follow(server, job, bar)?;
    if job.state != "done" {
        let message = job.error.map_or_else(String::new, |problem| problem.message);
        let message = harmless(&message);
        return Err(RemoteError::Job { state: harmless(&job.state), message }.into());
    }
    let result = server.result(&id, program.result_bytes)?;
    let (expected, context) = (Expected::result(client.interface()), client.context());
    let result = decode_ciphertexts(&result[..], result.len() as u64, context, &expected)
        .map_err(RemoteError::Result)?;
    result.check_answers(&request).map_err(RemoteError::Result)?;
    if result.key_id != client.key().id() {
        return Err(RemoteError::OtherKey.into());
    }
    let [sample] = &result.samples[..] else {
        return Err(RemoteError::Answer("a result of several samples".to_owned()).into());
    };
    let sample: Vec<_> = sample.iter().map(|stored| stored.clone().expand(context)).collect();
    Ok(client.decrypt_raw(&sample)?)
}

/// Follows a job to its end by its events; when they break off, by looking at it.
fn follow(server: &Server, mut job: Job, bar: &Bar) -> Result<Job, RemoteError> {
    let is_over = |job: &Job| matches!(job.state.as_str(), "done" | "failed" | "cancelled");
    // What a server says later is about this job, whatever else it says.
    let id = job.id.clone();
    for n_looks in 0..MAX_LOOKS {
        if is_over(&job) {
            return Ok(job);
        }
        if let Ok(events) = server.events(&id) {
            read_events(BufReader::new(events), |seen| {
                show(bar, &seen);
                job = seen;
            });
        }
        if !is_over(&job) {
            std::thread::sleep(Duration::from_millis(200 + 50 * u64::from(n_looks.min(100))));
            job = server.job(&id)?;
        }
    }
    Err(RemoteError::Answer("the job does not end".to_owned()))
}

fn show(bar: &Bar, job: &Job) {
    let layer = harmless(job.layer.as_deref().unwrap_or(&job.state));
    let left = job.eta_seconds.map_or(String::new(), |left| format!(", {left:.0} s left"));
    bar.set(job.fraction, format!("{layer}{left}"));
}

/// Reads events until they end, break off or make no sense.
fn read_events(mut events: impl BufRead, mut seen: impl FnMut(Job)) {
    let mut line = Vec::new();
    loop {
        line.clear();
        let limit = EVENT_LIMIT as u64;
        match std::io::Read::take(&mut events, limit).read_until(b'\n', &mut line) {
            Ok(1..) if line.len() < EVENT_LIMIT => {}
            _ => return,
        }
        if let Some(data) = line.strip_prefix(b"data:") {
            match serde_json::from_slice(data) {
                Ok(job) => seen(job),
                Err(_) => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_until_they_break_off() {
        let event = |fraction: f64| {
            format!("event: job\ndata: {{\"id\":\"a\",\"state\":\"running\",\"fraction\":{fraction}}}\n\n")
        };
        let check = |text: String, expected: &[f64]| {
            let mut found = Vec::new();
            read_events(text.as_bytes(), |job| found.push(job.fraction));
            assert_eq!(found, expected, "{text}");
        };
        check(event(0.25) + ": still here\n\n" + &event(0.5), &[0.25, 0.5]);
        check(event(0.25) + "data: {nonsense\n" + &event(0.5), &[0.25]);
        check(event(0.25) + "data: " + &"x".repeat(EVENT_LIMIT) + "\n" + &event(0.5), &[0.25]);
    }
}
