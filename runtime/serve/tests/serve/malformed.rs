//! Requests that are wrong, of many kinds; after each one a good one succeeds.

use crate::client::TestClient;
use crate::fixture::{Running, options, start};
use crate::wire::{raw, request};

/// A request that is wrong: its name, its bytes, and the status it gets; nothing where the connection may just end.
type Case = (&'static str, Vec<u8>, &'static [u16]);

fn cases(client: &TestClient) -> Vec<Case> {
    let (keys, jobs) = (client.keys_path(), client.jobs_path());
    let (program, key) = (client.program_id(), client.key_id());
    let input = client.encrypt(&client.tensor(1), 1);
    let total = client.keys.len();
    let put = |headers: &[(&str, &str)], body: &[u8]| request("PUT", &keys, headers, body);
    let post = |path: &str, body: &[u8]| request("POST", path, &[], body);
    let changed = |at: usize| {
        let mut bytes = input.clone();
        bytes[at] ^= 1;
        bytes
    };
    // What stands behind right lengths and hashes: counts, fingerprints, residues.
    let checked = format!("{keys}?wait=60");
    let keys_with = |at: usize, n: usize| request("PUT", &checked, &[], &resealed(&client.keys, at, n));
    let input_with = |at: usize, n: usize| post(&jobs, &resealed(&input, at, n));
    let text = |text: &str| text.as_bytes().to_vec();
    let head =
        |line: &str, headers: &str| text(&format!("{line}\r\nHost: a\r\nConnection: close\r\n{headers}\r\n"));
    let mut large = text("GET /healthz HTTP/1.1\r\nHost: a\r\nX: ");
    large.extend(vec![b'a'; 200_000]);
    let many = (0..300).map(|i| format!("X-{i}: a\r\n")).collect::<String>();
    let range = |value: &str| put(&[("Content-Range", value)], &client.keys[..16]);
    vec![
        ("no HTTP", text("\x16\x03\x01 hello\r\n\r\n"), &[400]),
        ("zero bytes", vec![0; 1000], &[400]),
        ("version 3", head("GET /healthz HTTP/3.7", ""), &[400, 505]),
        ("no version", head("GET /healthz", ""), &[400]),
        ("method of signs", head("G<>T /healthz HTTP/1.1", ""), &[400]),
        ("space in path", head("GET /health z HTTP/1.1", ""), &[400]),
        ("head without end", large, &[400, 431]),
        ("too many headers", head("GET /healthz HTTP/1.1", &many), &[400, 431]),
        ("header without colon", head("GET /healthz HTTP/1.1", "nothing\r\n"), &[400]),
        ("header name of signs", head("GET /healthz HTTP/1.1", "a(b): 1\r\n"), &[400]),
        (
            "two lengths",
            head(&format!("PUT {keys} HTTP/1.1"), "Content-Length: 1\r\nContent-Length: 2\r\n"),
            &[400],
        ),
        ("length of letters", head(&format!("PUT {keys} HTTP/1.1"), "Content-Length: many\r\n"), &[400]),
        ("negative length", head(&format!("PUT {keys} HTTP/1.1"), "Content-Length: -1\r\n"), &[400]),
        (
            "huge length",
            head(&format!("PUT {keys} HTTP/1.1"), "Content-Length: 99999999999999999999999\r\n"),
            &[400],
        ),
        (
            "length of terabytes",
            head(&format!("PUT {keys} HTTP/1.1"), "Content-Length: 9999999999999\r\n"),
            &[413],
        ),
        ("no length", head(&format!("PUT {keys} HTTP/1.1"), ""), &[411]),
        (
            "chunked keys",
            head(&format!("PUT {keys} HTTP/1.1"), "Transfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n0\r\n"),
            &[411],
        ),
        (
            "length and chunks",
            head(
                &format!("PUT {keys} HTTP/1.1"),
                "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
            ),
            &[400, 411],
        ),
        ("unknown route", head("GET /v2/programs HTTP/1.1", ""), &[404]),
        ("path upwards", head("GET /v1/../../etc/passwd HTTP/1.1", ""), &[404]),
        ("encoded path upwards", head("GET /v1/programs/%2e%2e%2f%2e%2e HTTP/1.1", ""), &[400]),
        ("path that is no text", head("GET /v1/programs/%ff%fe HTTP/1.1", ""), &[400]),
        ("wrong method", head("PATCH /v1/programs HTTP/1.1", ""), &[405]),
        ("program of letters", head("GET /v1/programs/lenet HTTP/1.1", ""), &[400]),
        ("program in capitals", head(&format!("GET /v1/programs/{} HTTP/1.1", "A".repeat(64)), ""), &[400]),
        ("unknown program", head(&format!("GET /v1/programs/{} HTTP/1.1", "0".repeat(64)), ""), &[404]),
        ("short key id", head(&format!("GET /v1/programs/{program}/keys/ab HTTP/1.1"), ""), &[400]),
        ("job of letters", head("GET /v1/jobs/last HTTP/1.1", ""), &[400]),
        ("unknown job", head(&format!("GET /v1/jobs/{} HTTP/1.1", "0".repeat(64)), ""), &[404]),
        ("result of no job", head(&format!("GET /v1/jobs/{}/result HTTP/1.1", "0".repeat(64)), ""), &[404]),
        ("short keys", put(&[], &client.keys[..total - 1]), &[400]),
        ("keys that go on", put(&[], &[&client.keys[..], &[0]].concat()), &[413]),
        ("keys of zeros", put(&[], &vec![0; total]), &[422]),
        ("program as keys", put(&[], &[b"fhebc\0".as_slice(), &vec![0; total - 6]].concat()), &[422]),
        ("keys of other parameters", keys_with(20, 1), &[422]),
        ("keys with a count of 2^32", keys_with(60, 4), &[422]),
        ("keys with residues beyond their towers", keys_with(total - 72, 32), &[422]),
        ("range without bytes", range("0-15/100"), &[400]),
        ("range of letters", range("bytes a-b/c"), &[400]),
        ("range backwards", range(&format!("bytes 15-0/{total}")), &[400]),
        ("range beyond the end", range(&format!("bytes 0-{total}/{total}")), &[400]),
        ("range of another total", range("bytes 0-15/17"), &[400]),
        ("range of another length", range(&format!("bytes 0-99/{total}")), &[400]),
        ("range with a gap", range(&format!("bytes 99-114/{total}")), &[409]),
        ("wait of letters", request("GET", &format!("{keys}?wait=long"), &[], b""), &[400]),
        ("unknown query", request("GET", &format!("{keys}?please=yes"), &[], b""), &[400]),
        ("job without key", post(&format!("/v1/programs/{program}/jobs"), &input), &[400]),
        ("job of a bad key", post(&format!("/v1/programs/{program}/jobs?key=..%2f"), &input), &[400]),
        ("job of two keys", post(&format!("{jobs}&key={key}"), &input), &[400]),
        ("short input", post(&jobs, &input[1..]), &[400]),
        ("long input", post(&jobs, &[&input[..], &[0; 1 << 20]].concat()), &[413]),
        // Names of samples may take a little more.
        ("input with a byte after its end", post(&jobs, &[&input[..], b"x"].concat()), &[422]),
        ("empty input", post(&jobs, b""), &[400]),
        ("input of zeros", post(&jobs, &vec![0; input.len()]), &[422]),
        ("input with a changed head", post(&jobs, &changed(9)), &[422]),
        ("input with another program", post(&jobs, &changed(70)), &[422]),
        ("input with a changed residue", post(&jobs, &changed(input.len() / 2)), &[422]),
        ("input with a changed hash", post(&jobs, &changed(input.len() - 1)), &[422]),
        ("keys as input", post(&jobs, &client.keys[..input.len().min(client.keys.len())]), &[400, 422]),
        ("input of other parameters", input_with(20, 1), &[422]),
        ("input with a count of 2^32", input_with(93, 4), &[422]),
        ("input with residues beyond their towers", input_with(input.len() - 72, 32), &[422]),
        ("bearer of nothing", request("GET", "/v1/jobs/x", &[("Authorization", "Bearer")], b""), &[400]),
    ]
}

/// A file of keys or ciphertexts with some bytes of ones in it, and the right hash behind them.
fn resealed(file: &[u8], at: usize, n: usize) -> Vec<u8> {
    const HASH: usize = 32;
    let mut data = file[..file.len() - HASH].to_vec();
    data[at..at + n].fill(0xff);
    let hash = *blake3::hash(&data).as_bytes();
    [&data[..], &hash].concat()
}

/// Sends every kind of wrong request `n_rounds` times. Gives the number of requests and of kinds.
fn send_all(server: &Running, n_rounds: usize) -> (usize, usize) {
    let (client, stranger) = (TestClient::new(1, None), TestClient::new(2, None));
    if server.get(&client.keys_path()).status != 200 {
        client.upload(server);
    }
    let input = client.encrypt(&client.tensor(2), 2);
    let good = format!("{}&wait=60", client.jobs_path());
    let job = client.send(server, "POST", &good, &[], &input).expect(200, "").json();
    // Requests about keys are wrong for a client whose keys are not there; jobs need keys.
    let is_about_keys = |case: &Case| case.0.contains("key") || case.0.contains("range");
    let of_keys =
        cases(&stranger).into_iter().filter(|case| is_about_keys(case) && !case.0.contains("as input"));
    let others =
        cases(&client).into_iter().filter(|case| !is_about_keys(case) || case.0.contains("as input"));
    let cases: Vec<Case> = of_keys.chain(others).collect();
    let mut wrong = Vec::new();
    for _ in 0..n_rounds {
        for (name, bytes, expected) in &cases {
            let answer = raw(server.address, bytes);
            let status = answer.as_ref().map(|answer| answer.status);
            if !status.is_some_and(|status| expected.contains(&status)) {
                wrong.push(format!("{name}: {answer:?}"));
            }
            let again = client.send(server, "POST", &good, &[], &input).expect(200, "").json();
            assert_eq!(again, job, "after {name}");
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    (n_rounds * cases.len(), cases.len())
}

#[test]
fn every_kind_of_wrong_request_is_refused_and_the_next_one_succeeds() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(&options(folder.path()));
    let (_, n_kinds) = send_all(&server, 1);
    assert!(n_kinds >= 50, "{n_kinds}");
    server.send("GET", "/v1/keys", &[], b"").expect(200, "");
}

#[test]
#[cfg(unix)]
#[ignore = "a thousand requests; cargo xtask slow wrong_requests"]
fn a_thousand_wrong_requests_leave_memory_where_it_was() {
    let folder = tempfile::tempdir().unwrap();
    // A process of its own: what clients allocate is none of the server's.
    let process = crate::kill::Process::start(folder.path());
    let server = Running::elsewhere(process.1);
    send_all(&server, 4);
    let resident = || server.metric("fhe_memory_bytes{kind=\"resident\"}");
    let before = resident();
    let (n_requests, n_kinds) = send_all(&server, 20);
    let after = resident();
    println!("{n_requests} requests of {n_kinds} kinds: {before} bytes before, {after} after");
    assert!(n_requests >= 1000 && after < before + before / 20, "{before} to {after}");
}
