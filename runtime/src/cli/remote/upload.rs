//! Evaluation keys to the server: made once, sent once, and gone on with where a connection broke.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use fhe_bytecode::text::harmless;
use fhe_ckks::key_request;
use fhe_client::Client;
use fhe_files::evaluation_keys_len;
use fhe_host::show_bytes;
use fhe_secret::SeedSource;

use super::super::error::CliError;
use super::super::progress::Bar;
use super::RemoteError;
use super::home::Home;
use super::server::{Keys, Problem, Program, Server, hex};
use crate::store;

/// Bytes of one request.
const PART: u64 = 16 << 20;
/// Times in a row that a part may break.
const N_BREAKS: u32 = 8;
/// Requests for one file: parts, and waits of a minute for its check.
const MAX_LOOKS: u32 = 100_000;

/// Makes sure that the server has the client's keys, checked and ready.
pub(super) fn ensure(
    server: &Server,
    home: &Home,
    program: &Program,
    client: &Client,
    max_key_bytes: Option<u64>,
    quiet: bool,
) -> Result<(), CliError> {
    let key = hex(&client.key().id().0);
    let path = home.evaluation_keys(client.interface().program())?;
    if server.keys(program, &key, true)?.is_some_and(|keys| keys.state == "ready") {
        return Ok(Home::remove(&path)?);
    }
    let request = key_request(client.context(), &**client.interface());
    let total = evaluation_keys_len(client.interface().params(), request.places());
    if total != program.key_file_bytes {
        let said = program.key_file_bytes;
        return Err(RemoteError::Sizes { what: "the file of evaluation keys", said, computed: total }.into());
    }
    if std::fs::metadata(&path).map_or(0, |file| file.len()) != total {
        Home::remove(&path)?;
        check_room(&path, total, max_key_bytes)?;
        if !quiet {
            eprintln!("{} evaluation keys, {}, are made and sent once", request.len(), show_bytes(total));
        }
        let bar = Bar::new("making keys", quiet);
        let mut progress = |part| bar.set(part, format!("of {} keys", request.len()));
        let (context, seeds) = (client.context(), &mut SeedSource::os());
        store::generate_evaluation_keys(&path, context, client.key(), &request, seeds, &mut progress)?;
    }
    send(server, program, &key, &path, total, quiet)?;
    // They can be made again from the secret key; the server has them.
    Ok(Home::remove(&path)?)
}

/// Refuses keys that take too much, before they are made: it is the server's program that asks for them.
fn check_room(path: &Path, needed: u64, max_key_bytes: Option<u64>) -> Result<(), CliError> {
    if let Some(allowed) = max_key_bytes.filter(|allowed| *allowed < needed) {
        return Err(CliError::KeyBytes { needed, allowed, why: "--max-key-bytes allows" });
    }
    match fhe_host::free_disk_bytes(path).filter(|free| *free < needed) {
        Some(allowed) => Err(CliError::KeyBytes { needed, allowed, why: "the disk has" }),
        None => Ok(()),
    }
}

/// Sends what the server does not have yet.
fn send(
    server: &Server,
    program: &Program,
    key: &str,
    path: &Path,
    total: u64,
    quiet: bool,
) -> Result<(), RemoteError> {
    let local = |cause| RemoteError::Home { path: path.to_path_buf(), cause };
    let mut file = File::open(path).map_err(local)?;
    let bar = Bar::new("sending keys", quiet);
    let (mut n_breaks, mut n_looks, mut is_sent) = (0, 0, false);
    loop {
        n_looks += 1;
        if n_looks > MAX_LOOKS {
            return Err(RemoteError::Answer("the server does not finish with the keys".to_owned()));
        }
        let offset = match server.keys(program, key, true)? {
            Some(keys) if keys.state == "ready" => return Ok(()),
            Some(keys) if keys.state == "checking" => continue,
            Some(keys) if keys.state == "uploading" => keys.received_bytes,
            // A refusal of an earlier file says nothing about this one.
            Some(Keys { error, .. }) if is_sent => {
                let Problem { code, message } = error.unwrap_or_default();
                return Err(RemoteError::Refused {
                    status: 422,
                    code: harmless(&code),
                    message: harmless(&message),
                });
            }
            _ => 0,
        };
        if offset >= total {
            return Err(RemoteError::Answer(format!("{offset} bytes of keys came, of {total}")));
        }
        bar.set(offset as f64 / total as f64, format!("of {}", show_bytes(total)));
        let mut part = vec![0; PART.min(total - offset) as usize];
        file.seek(SeekFrom::Start(offset)).map_err(local)?;
        file.read_exact(&mut part).map_err(local)?;
        let range = format!("bytes {offset}-{}/{total}", offset + part.len() as u64 - 1);
        match server.put_keys(program, key, &range, &part) {
            Ok(keys) => (n_breaks, is_sent) = (0, is_sent || keys.state != "uploading"),
            // Another request of ours may still be on its way, or the line broke: see what the server has.
            Err(
                RemoteError::Connection { .. } | RemoteError::Refused { status: 408 | 409 | 429 | 503, .. },
            ) if n_breaks < N_BREAKS => {
                n_breaks += 1;
                std::thread::sleep(std::time::Duration::from_millis(250 << n_breaks.min(6)));
            }
            Err(error) => return Err(error),
        }
    }
}
