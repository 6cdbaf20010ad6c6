//! Clients that send what is not theirs.

use std::io::Write;

use fhe_client::encode_secret_key;
use fhe_serve::server::Options;
use fhe_serve::tokens::Quota;

use crate::client::TestClient;
use crate::fixture::{QUOTA, options, program_path, start, token};
use crate::wire::{connect, read, request};

#[test]
fn a_key_of_another_token_is_not_there() {
    let folder = tempfile::tempdir().unwrap();
    let (a, b) = (token(folder.path(), "a", QUOTA), token(folder.path(), "b", QUOTA));
    let server = start(&options(folder.path()));
    let (a, b) = (TestClient::new(1, Some(&a)), TestClient::new(2, Some(&b)));
    a.upload(&server);
    let input = a.encrypt(&a.tensor(1), 1);
    b.get(&server, &a.keys_path()).expect(404, "no-such-keys");
    b.send(&server, "POST", &a.jobs_path(), &[], &input).expect(404, "no-such-keys");
    b.send(&server, "DELETE", &a.keys_path(), &[], b"").expect(404, "no-such-keys");
    let job =
        a.send(&server, "POST", &format!("{}&wait=60", a.jobs_path()), &[], &input).expect(200, "").json();
    let job = format!("/v1/jobs/{}", job["id"].as_str().unwrap());
    for (method, path) in [
        ("GET", job.clone()),
        ("GET", job.clone() + "/result"),
        ("GET", job.clone() + "/events"),
        ("DELETE", job.clone()),
    ] {
        b.send(&server, method, &path, &[], b"").expect(404, "no-such-job");
    }
    b.send(&server, "POST", &(job.clone() + "/cancel"), &[], b"").expect(404, "no-such-job");
    assert_eq!(b.get(&server, "/v1/jobs").json(), serde_json::json!([]));
    assert_eq!(b.get(&server, "/v1/keys").json(), serde_json::json!([]));
    a.get(&server, &(job + "/result")).expect(200, "");
    for headers in [&[][..], &[("Authorization", "Bearer fhe_00")], &[("Authorization", "Basic YTpi")]] {
        let answer = server.send("GET", "/v1/programs", headers, b"");
        assert_eq!((answer.status, answer.header("www-authenticate")), (401, Some("Bearer")), "{headers:?}");
    }
}

#[test]
fn swapped_keys_and_inputs_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(&options(folder.path()));
    let (a, b) = (TestClient::new(1, None), TestClient::new(2, None));
    // Keys of one client under the name of another's: found out at the head, and nothing stays.
    server.send("PUT", &a.keys_path(), &[], &b.keys).expect(422, "bad-keys");
    assert_eq!(server.get(&a.keys_path()).json()["state"], "refused");
    a.upload(&server);
    b.upload(&server);
    // An input of one client with the keys of another.
    let input = a.encrypt(&a.tensor(1), 1);
    server.send("POST", &b.jobs_path(), &[], &input).expect(422, "bad-input");
    assert_eq!(server.get("/v1/jobs").json(), serde_json::json!([]));
}

#[test]
fn a_replayed_request_is_not_evaluated_again_and_no_one_elses() {
    let folder = tempfile::tempdir().unwrap();
    let (ta, tb) = (token(folder.path(), "a", QUOTA), token(folder.path(), "b", QUOTA));
    let server = start(&options(folder.path()));
    let a = TestClient::new(1, Some(&ta));
    a.upload(&server);
    let input = a.encrypt(&a.tensor(1), 1);
    let path = format!("{}&wait=60", a.jobs_path());
    let first = a.send(&server, "POST", &path, &[], &input).expect(200, "").json();
    let second = a.send(&server, "POST", &path, &[], &input).expect(200, "").json();
    assert_eq!((&first, &first["attempts"]), (&second, &1.into()));
    // Who replays it with another token has neither the keys nor the job.
    let thief = TestClient::new(1, Some(&tb));
    thief.send(&server, "POST", &path, &[], &input).expect(404, "no-such-keys");
    assert_eq!(server.metric("fhe_jobs_total{state=\"done\"}"), 1);
}

#[test]
fn a_program_that_was_replaced_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let client = TestClient::new(1, None);
    let input = client.encrypt(&client.tensor(1), 1);
    let before = start(&options(folder.path()));
    client.upload(&before);
    let path = format!("{}&wait=60", client.jobs_path());
    let job = before.send("POST", &path, &[], &input).expect(200, "").json();
    drop(before);
    let other = program_path().with_file_name("v3.fhebc");
    let server = start(&Options { programs: vec![other], ..options(folder.path()) });
    let now = server.get("/v1/programs").json()[0]["id"].as_str().unwrap().to_owned();
    assert_ne!(now, client.program_id());
    server.send("POST", &client.jobs_path(), &[], &input).expect(404, "no-such-program");
    server.get(&client.keys_path()).expect(404, "no-such-program");
    // Keys of the old program are none of the new one.
    let path = client.jobs_path().replace(&client.program_id(), &now);
    server.send("POST", &path, &[], &input).expect(404, "no-such-keys");
    // What was computed before stays computed.
    server.get(&format!("/v1/jobs/{}/result", job["id"].as_str().unwrap())).expect(200, "");
}

#[test]
fn a_secret_key_is_thrown_away_on_every_route_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(&options(folder.path()));
    let client = TestClient::new(1, None);
    let secret = encode_secret_key(&client.context, &client.key, client.program.fingerprint()).unwrap();
    // As long as a file of evaluation keys, too.
    let mut padded = secret.to_vec();
    padded.resize(client.keys.len(), 0);
    server.send("PUT", &client.keys_path(), &[], &padded).expect(422, "secret-key");
    server.send("PUT", &client.keys_path(), &[], &secret).expect(422, "secret-key");
    server.send("POST", &client.jobs_path(), &[], &secret).expect(422, "secret-key");
    server.send("DELETE", &client.keys_path(), &[], &secret).expect(422, "secret-key");
    server.get(&client.keys_path()).expect(404, "no-such-keys");
    // Its first bytes may come late, too.
    let bytes = request("PUT", &client.keys_path(), &[], &padded);
    let mut stream = connect(server.address);
    let at = bytes.len() - padded.len() + 4;
    stream.write_all(&bytes[..at]).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(600));
    // The server need not read all of it.
    let _ = stream.write_all(&bytes[at..]);
    read(&mut stream).unwrap().expect(422, "secret-key");
    assert_eq!(server.get(&client.keys_path()).json()["state"], "refused");
    assert_eq!(server.metric("fhe_refusals_total{reason=\"secret-key\"}"), 5);
    let mut found = Vec::new();
    walk(folder.path(), &mut found);
    for path in found {
        let bytes = std::fs::read(&path).unwrap();
        assert!(!bytes.starts_with(b"fhe-sec"), "{}", path.display());
    }
}

fn walk(folder: &std::path::Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { walk(&path, found) } else { found.push(path) }
    }
}

#[test]
fn quotas_of_keys_jobs_and_requests_hold() {
    let folder = tempfile::tempdir().unwrap();
    let keys_len = TestClient::new(1, None).keys.len() as u64;
    let small = Quota { key_bytes: keys_len * 3 / 2, queued_jobs: 0, requests_per_minute: 6 };
    let secret = token(folder.path(), "small", small);
    let server = start(&options(folder.path()));
    let (first, second) = (TestClient::new(1, Some(&secret)), TestClient::new(2, Some(&secret)));
    first.upload(&server);
    second.send(&server, "PUT", &second.keys_path(), &[], &second.keys).expect(429, "quota-key-bytes");
    let input = first.encrypt(&first.tensor(1), 1);
    let refused = first.send(&server, "POST", &first.jobs_path(), &[], &input).expect(429, "quota-jobs");
    assert!(refused.header("retry-after").is_some());
    for _ in 0..3 {
        first.get(&server, "/v1/programs").expect(200, "");
    }
    let refused = first.get(&server, "/v1/programs").expect(429, "too-many-requests");
    assert!(refused.header("retry-after").unwrap().parse::<u64>().unwrap() >= 1);
}
