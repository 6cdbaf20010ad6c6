//! `kill -9` at any moment of an upload: keys are whole or not there, and the next server goes on.
#![cfg(unix)]

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::client::TestClient;
use crate::fixture::program_path;
use crate::wire::{connect, raw, read, request};

/// The real command, and where it listens.
pub(crate) struct Process(Child, pub(crate) SocketAddr);

impl Process {
    pub(crate) fn start(store: &Path) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_fhe-serve"))
            .args([
                "run",
                "--insecure",
                "--listen",
                "127.0.0.1:0",
                "--memory",
                "256MiB",
                "--log",
                "json",
                "--store",
            ])
            .arg(store)
            .arg(program_path())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap());
        let address = loop {
            let mut line = String::new();
            log.read_line(&mut line).unwrap();
            let entry: serde_json::Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line}"));
            if let Some(address) = entry["fields"]["address"].as_str() {
                break address.to_owned();
            }
        };
        let address = address.trim_start_matches("Some(").trim_end_matches(')').parse().unwrap();
        // Nobody reads the log, and nobody should wait for it.
        std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
        Self(child, address)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Kills a server `n_times` at different moments of an upload, and finishes the upload with the last one.
fn kill(n_times: usize) {
    let folder = tempfile::tempdir().unwrap();
    let client = TestClient::new(1, None);
    let total = client.keys.len();
    let published = folder.path().join(format!("keys/anonymous/{}/{}", client.program_id(), client.key_id()));
    for round in 0..n_times {
        let server = Process::start(folder.path());
        let Some(answer) = raw(server.1, &request("GET", &client.keys_path(), &[], b"")) else {
            panic!("no answer")
        };
        let state =
            if answer.status == 200 { answer.json() } else { serde_json::json!({ "received_bytes": 0 }) };
        let first = match state["state"].as_str() {
            Some("ready" | "checking") => {
                // A round that was not killed in time: begin anew.
                raw(server.1, &request("GET", &format!("{}?wait=60", client.keys_path()), &[], b""))
                    .unwrap()
                    .expect(200, "");
                assert_eq!(std::fs::read(&published).unwrap(), client.keys);
                raw(server.1, &request("DELETE", &client.keys_path(), &[], b"")).unwrap().expect(204, "");
                0
            }
            _ => state["received_bytes"].as_u64().unwrap() as usize,
        };
        assert!(!published.exists(), "nothing is visible before it is checked");
        let range = format!("bytes {first}-{}/{total}", total - 1);
        let bytes = request("PUT", &client.keys_path(), &[("Content-Range", &*range)], &client.keys[first..]);
        let mut stream = connect(server.1);
        // A part of what is left, another one every time; in the last rounds all of it, so that the check is hit, too.
        let part = if round % 4 == 3 { bytes.len() } else { bytes.len() * (round % 7 + 1) / 16 };
        stream.write_all(&bytes[..part]).unwrap();
        std::thread::sleep(Duration::from_millis((round as u64 * 7) % 23));
        drop(server);
        if published.exists() {
            assert_eq!(std::fs::read(&published).unwrap(), client.keys, "what is visible is whole");
        }
    }
    let server = Process::start(folder.path());
    let state = raw(server.1, &request("GET", &format!("{}?wait=60", client.keys_path()), &[], b"")).unwrap();
    let first =
        if state.status == 200 { state.json()["received_bytes"].as_u64().unwrap() as usize } else { 0 };
    if first < total {
        let range = format!("bytes {first}-{}/{total}", total - 1);
        let path = format!("{}?wait=60", client.keys_path());
        let bytes = request("PUT", &path, &[("Content-Range", &*range)], &client.keys[first..]);
        raw(server.1, &bytes).unwrap().expect(200, "");
    }
    assert_eq!(std::fs::read(&published).unwrap(), client.keys);
    let tensor = client.tensor(1);
    let path = format!("{}&wait=60", client.jobs_path());
    let job = raw(server.1, &request("POST", &path, &[], &client.encrypt(&tensor, 1)))
        .unwrap()
        .expect(200, "")
        .json();
    let result = format!("/v1/jobs/{}/result", job["id"].as_str().unwrap());
    let result = raw(server.1, &request("GET", &result, &[], b"")).unwrap().expect(200, "");
    assert!(client.error(&result.body, &tensor) < 1e-2);
}

#[test]
fn a_killed_server_publishes_no_half_of_a_key() {
    kill(4);
}

#[test]
#[ignore = "fifty restarts; cargo xtask slow killed_fifty_times"]
fn a_server_killed_fifty_times_publishes_no_half_of_a_key() {
    kill(50);
}

#[test]
fn sigterm_ends_the_process_in_good_order() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Process::start(folder.path());
    let mut idle = connect(server.1);
    let status = Command::new("kill").arg(server.0.id().to_string()).status().unwrap();
    assert!(status.success());
    assert!(server.0.wait().unwrap().success());
    assert!(read(&mut idle).is_none());
}
