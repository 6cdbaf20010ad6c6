//! The whole way of a client through gateways and workers; a store that is a folder, and one that is S3.

use std::process::{Command, Stdio};
use std::time::Duration;

use crate::client::TestClient;
use crate::fixture::{LONG, Process, Running, Service, eventually, free_port, tool};

/// Evaluates through one gateway, looks through another, and compares with the clear program.
fn there_and_back(service: &Service) {
    let (first, second) = (service.gateway(""), service.gateway(""));
    let _workers = [service.worker(""), service.worker("")];
    let client = TestClient::new(1, None);
    // Half of the keys through one gateway, the rest through the other.
    let total = client.keys.len();
    let part = |gateway: &Running, from: usize, to: usize| {
        let range = format!("bytes {from}-{}/{total}", to - 1);
        let path = format!("{}?wait=60", client.keys_path());
        gateway.send("PUT", &path, &[("Content-Range", &*range)], &client.keys[from..to])
    };
    assert_eq!(part(&first, 0, total / 2).expect(202, "").json()["received_bytes"], total / 2);
    part(&second, total / 3, total).expect(409, "wrong-offset");
    first.send("POST", &client.jobs_path(), &[], b"").expect(404, "no-such-keys");
    assert_eq!(part(&second, total / 2, total).expect(200, "").json()["state"], "ready");
    part(&first, 0, total).expect(409, "exists");

    let tensor = client.tensor(1);
    let input = client.encrypt(&tensor, 1);
    let path = format!("{}&wait=60", client.jobs_path());
    let job = first.send("POST", &path, &[], &input).expect(200, "").json();
    assert_eq!((&job["state"], &job["attempts"]), (&"done".into(), &1.into()));
    let id = job["id"].as_str().unwrap();
    let result = second.get(&format!("/v1/jobs/{id}/result")).expect(200, "").body;
    assert!(client.error(&result, &tensor) < 1e-2);
    // The same request is the same job, whichever gateway hears it.
    assert_eq!(second.send("POST", &path, &[], &input).expect(200, "").json(), job);
    assert_eq!(second.get("/v1/jobs").expect(200, "").json().as_array().unwrap().len(), 1);
    assert_eq!(second.get("/v1/keys").expect(200, "").json()[0]["state"], "ready");
    let events = second.get(&format!("/v1/jobs/{id}/events")).expect(200, "").body;
    assert!(String::from_utf8(events).unwrap().contains("\"state\":\"done\""));

    first.send("DELETE", &format!("/v1/jobs/{id}"), &[], b"").expect(204, "");
    second.get(&format!("/v1/jobs/{id}")).expect(404, "no-such-job");
    second.send("DELETE", &client.keys_path(), &[], b"").expect(204, "");
    first.get(&client.keys_path()).expect(404, "no-such-keys");
    first.send("POST", &path, &[], &input).expect(404, "no-such-keys");
}

#[test]
fn a_client_gets_the_answer_of_the_clear_program_over_a_folder() {
    there_and_back(&Service::new());
}

#[test]
fn a_client_gets_the_answer_of_the_clear_program_over_s3() {
    let port = free_port();
    let child = Command::new(tool("FHE_S3_SERVER", "moto_server"))
        .args(["-H", "127.0.0.1", "-p", &port.to_string()])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let _s3 = Process(child);
    let address = format!("127.0.0.1:{port}").parse().unwrap();
    eventually("the S3 server answers", LONG, || {
        std::net::TcpStream::connect(&address as &std::net::SocketAddr).is_ok()
    });
    let made = crate::wire::raw(address, &crate::wire::request("PUT", "/fhe-bucket", &[], b"")).unwrap();
    assert_eq!(made.status, 200, "{made:?}");
    let env = [
        ("AWS_ENDPOINT", &*format!("http://{address}")),
        ("AWS_ALLOW_HTTP", "true"),
        ("AWS_ACCESS_KEY_ID", "test"),
        ("AWS_SECRET_ACCESS_KEY", "test"),
        ("AWS_REGION", "us-east-1"),
    ];
    let env = env.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    there_and_back(&Service::over(
        tempfile::tempdir().unwrap(),
        "s3://fhe-bucket/some/place".to_owned(),
        env,
    ));
}

#[test]
fn a_job_waits_for_a_worker_and_can_be_cancelled() {
    let service = Service::new();
    let gateway = service.gateway("--queue 3");
    let client = TestClient::new(1, None);
    {
        let _worker = service.worker("");
        client.upload(&gateway);
    }
    // Nobody works now.
    let submit = |number| {
        gateway.send("POST", &client.jobs_path(), &[], &client.encrypt(&client.tensor(number), number))
    };
    let jobs: Vec<String> = (0..3)
        .map(|number| submit(number).expect(202, "").json()["id"].as_str().unwrap().to_owned())
        .collect();
    assert!(submit(3).expect(503, "queue-full").header("retry-after").is_some());
    let cancel = format!("/v1/jobs/{}/cancel", jobs[1]);
    assert_eq!(gateway.send("POST", &cancel, &[], b"").expect(200, "").json()["state"], "cancelled");
    let _worker = service.worker("");
    let state = |id: &str| gateway.get(&format!("/v1/jobs/{id}")).expect(200, "").json()["state"].clone();
    for id in [&jobs[0], &jobs[2]] {
        eventually("the others are done", LONG, || state(id) == "done");
    }
    assert_eq!(state(&jobs[1]), "cancelled");
    eventually("there is room again", LONG, || submit(3).status == 202);
}

#[test]
fn a_worker_that_is_told_to_end_ends_its_job_first() {
    let service = Service::new();
    let gateway = service.gateway("");
    let mut worker = service.worker("");
    let client = TestClient::new(1, None);
    client.upload(&gateway);
    for number in 0..5 {
        gateway
            .send("POST", &client.jobs_path(), &[], &client.encrypt(&client.tensor(number), number))
            .expect(202, "");
    }
    worker.signal("-TERM");
    assert!(worker.0.wait().unwrap().success());
    std::thread::sleep(Duration::from_millis(100));
    let jobs = gateway.get("/v1/jobs").expect(200, "").json();
    let of_state = |state: &str| jobs.as_array().unwrap().iter().filter(|job| job["state"] == state).count();
    assert_eq!(of_state("queued") + of_state("done"), 5, "{jobs}");
    let _worker = service.worker("");
    eventually("the next worker does the rest", LONG, || {
        gateway.get("/v1/jobs").json().as_array().unwrap().iter().all(|job| job["state"] == "done")
    });
}
