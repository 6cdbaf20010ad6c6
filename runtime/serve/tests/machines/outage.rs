//! A store that is away for a while: nothing is lost, and nothing is written in its place.

use std::time::Duration;

use crate::client::TestClient;
use crate::fixture::{LONG, Service, eventually};

/// Takes the folder of the store away while jobs wait and come, and puts it back.
fn take_away(time: Duration, n_jobs: u64) {
    let service = Service::new();
    let (here, away) = (service.folder.path().join("store"), service.folder.path().join("away"));
    let gateway = service.gateway("");
    let client = TestClient::new(1, None);
    let worker = service.worker("");
    client.upload(&gateway);
    drop(worker);
    let send = |number| {
        gateway.send("POST", &client.jobs_path(), &[], &client.encrypt(&client.tensor(number), number))
    };
    let mut jobs: Vec<String> = (0..n_jobs)
        .map(|number| send(number).expect(202, "").json()["id"].as_str().unwrap().to_owned())
        .collect();
    // A worker starts while the store is there, and finds it gone when it takes a job.
    let slow = service.worker("");
    std::fs::rename(&here, &away).unwrap();
    // What cannot be kept is not accepted, and the client is told when to try again.
    let refused = send(n_jobs).expect(503, "store");
    assert!(refused.header("retry-after").is_some());
    std::thread::sleep(time);
    assert!(!here.exists(), "nobody makes a folder in its place");
    std::fs::rename(&away, &here).unwrap();
    eventually("jobs are accepted again", LONG, || {
        let answer = send(n_jobs);
        if answer.status == 202 {
            jobs.push(answer.json()["id"].as_str().unwrap().to_owned());
        }
        answer.status == 202
    });
    for (number, id) in jobs.iter().enumerate() {
        let state = || gateway.get(&format!("/v1/jobs/{id}")).expect(200, "").json();
        eventually("every accepted job is done", LONG, || state()["state"] == "done");
        let result = gateway.get(&format!("/v1/jobs/{id}/result")).expect(200, "").body;
        assert!(client.error(&result, &client.tensor(number as u64)) < 1e-2);
    }
    drop(slow);
}

#[test]
fn a_store_that_is_away_for_two_seconds_loses_nothing() {
    take_away(Duration::from_secs(2), 3);
}

#[test]
#[ignore = "ten seconds of silence; cargo xtask cluster --slow"]
fn a_store_that_is_away_for_ten_seconds_loses_nothing() {
    take_away(Duration::from_secs(10), 10);
}
