//! The whole way of a client, and what the server says on it.

use std::io::Write;

use crate::client::TestClient;
use crate::fixture::{options, start};
use crate::wire::{connect, request};

#[test]
fn a_client_gets_the_answer_of_the_clear_program() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(&options(folder.path()));
    let client = TestClient::new(1, None);
    let programs = server.get("/v1/programs").expect(200, "").json();
    assert_eq!(programs[0]["id"], client.program_id());
    assert_eq!(programs[0]["key_file_bytes"], client.keys.len());
    let interface = server.get(&format!("/v1/programs/{}/interface", client.program_id()));
    assert_eq!(interface.body, fhe_bytecode::codec::encode_interface(&client.program.interface()));
    client.upload(&server);

    let tensor = client.tensor(1);
    let input = client.encrypt(&tensor, 1);
    assert_eq!(programs[0]["input_bytes"], input.len());
    let job = client.send(&server, "POST", &format!("{}&wait=60", client.jobs_path()), &[], &input);
    let job = job.expect(200, "").json();
    assert_eq!((&job["state"], &job["fraction"]), (&"done".into(), &1.0.into()));
    let result = server.get(&format!("/v1/jobs/{}/result", job["id"].as_str().unwrap())).expect(200, "");
    assert_eq!(programs[0]["result_bytes"], result.body.len());
    let error = client.error(&result.body, &tensor);
    assert!(error < client.program.spec().prediction.max_abs_error.max(1e-2), "{error}");

    // The same request is the same job, evaluated once.
    let again = client.send(&server, "POST", &client.jobs_path(), &[], &input).expect(200, "").json();
    assert_eq!(again, job);
    assert_eq!(server.metric("fhe_jobs_total{state=\"done\"}"), 1);
    assert!(server.metric("fhe_memory_bytes{kind=\"keys\"}") > 0);
    assert_eq!(server.metric("fhe_memory_bytes{kind=\"working\"}"), 0);

    let path = format!("/v1/jobs/{}", job["id"].as_str().unwrap());
    assert_eq!(server.get("/v1/jobs").json().as_array().unwrap().len(), 1);
    client.send(&server, "DELETE", &path, &[], b"").expect(204, "");
    server.get(&path).expect(404, "no-such-job");
    client.send(&server, "DELETE", &client.keys_path(), &[], b"").expect(204, "");
    server.get(&client.keys_path()).expect(404, "no-such-keys");
    assert_eq!(server.metric("fhe_memory_bytes{kind=\"keys\"}"), 0);
}

#[test]
fn keys_go_on_where_they_were_cut() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(&options(folder.path()));
    let client = TestClient::new(1, None);
    let total = client.keys.len();
    // A request for all of it that breaks off in the middle.
    let whole = request("PUT", &client.keys_path(), &[], &client.keys);
    let mut stream = connect(server.address);
    stream.write_all(&whole[..whole.len() - total / 2]).unwrap();
    drop(stream);
    let mut received = 0;
    for _ in 0..200 {
        received = server.get(&client.keys_path()).json()["received_bytes"].as_u64().unwrap_or(0) as usize;
        if received == total - total / 2 {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(25));
    }
    assert_eq!(received, total - total / 2);
    // The next server goes on with it, too.
    drop(server);
    let server = start(&options(folder.path()));
    let range = |first: usize, last: usize| format!("bytes {first}-{last}/{total}");
    let part = |first: usize, last: usize| {
        let headers = [("Content-Range", &*range(first, last))];
        server.send("PUT", &format!("{}?wait=60", client.keys_path()), &headers, &client.keys[first..=last])
    };
    part(received + 1, total - 1).expect(409, "wrong-offset");
    let middle = received + (total - received) / 2;
    assert_eq!(part(received, middle - 1).expect(202, "").json()["received_bytes"], middle);
    client.send(&server, "POST", &client.jobs_path(), &[], b"").expect(404, "no-such-keys");
    assert_eq!(part(middle, total - 1).expect(200, "").json()["state"], "ready");
    part(0, total - 1).expect(409, "exists");
}

#[test]
fn events_tell_how_far_a_job_is() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(&options(folder.path()));
    let client = TestClient::new(1, None);
    client.upload(&server);
    let input = client.encrypt(&client.tensor(1), 1);
    let job = client.send(&server, "POST", &client.jobs_path(), &[], &input).expect(202, "").json();
    let events = server.get(&format!("/v1/jobs/{}/events", job["id"].as_str().unwrap())).expect(200, "");
    assert_eq!(events.header("content-type"), Some("text/event-stream"));
    let text = String::from_utf8(events.body).unwrap();
    assert!(text.contains("event: job") && text.contains("\"state\":\"done\""), "{text}");
}

#[test]
fn a_page_is_served_under_a_strict_policy() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page");
    std::fs::create_dir(&page).unwrap();
    std::fs::write(page.join("index.html"), "<!doctype html>").unwrap();
    std::fs::write(page.join("client.wasm"), b"\0asm").unwrap();
    let server = {
        let mut options = options(&folder.path().join("store"));
        options.front.page = Some(fhe_serve::http::PageSource::Folder(page));
        start(&options)
    };
    assert_eq!(server.get("/").expect(307, "").header("location"), Some("/page/"));
    let index = server.get("/page/").expect(200, "");
    let policy = index.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none'") && policy.contains("connect-src 'self'"), "{policy}");
    assert_eq!(
        server.get("/page/client.wasm").expect(200, "").header("content-type"),
        Some("application/wasm")
    );
    let packed =
        server.send("GET", "/page/client.wasm", &[("Accept-Encoding", "br, gzip")], b"").expect(200, "");
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    server.get("/page/../tokens.json").expect(404, "no-such-file");
    server.get("/page/%2e%2e%2ftokens.json").expect(404, "no-such-file");
}
