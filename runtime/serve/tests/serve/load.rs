//! More than there is room for, clients that leave, jobs that break, and an end in good order.

use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use fhe_machine::Profile;
use fhe_serve::catalog::Catalog;
use fhe_serve::jobs::{Evaluation, Evaluator, Failure, Report};
use fhe_serve::limits::Limits;
use fhe_serve::server::Options;

use crate::client::TestClient;
use crate::fixture::{Running, limited, options, program_path, start, start_with};
use crate::wire::{connect, read, request};

/// A door that jobs wait at until it is opened or they are cancelled.
#[derive(Clone, Default)]
struct Door(Arc<(Mutex<bool>, Condvar)>, Arc<AtomicUsize>);

impl Door {
    fn open(&self) {
        *self.0.0.lock().unwrap() = true;
        self.0.1.notify_all();
    }

    fn n_begun(&self) -> usize {
        self.1.load(Ordering::SeqCst)
    }

    fn evaluator(&self) -> Box<Evaluator> {
        let door = self.clone();
        Box::new(move |work: Evaluation<'_>| {
            door.1.fetch_add(1, Ordering::SeqCst);
            let mut is_open = door.0.0.lock().unwrap();
            while !*is_open {
                if work.cancel.is_cancelled() {
                    return Err(Failure::Cancelled);
                }
                is_open = door.0.1.wait_timeout(is_open, Duration::from_millis(5)).unwrap().0;
            }
            Ok(Report { result: b"result".to_vec(), profile: Profile::default() })
        })
    }
}

#[track_caller]
fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(30), "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn submit(server: &Running, client: &TestClient, number: u64) -> crate::wire::Answer {
    server.send("POST", &client.jobs_path(), &[], &client.encrypt(&client.tensor(number), number))
}

fn state(server: &Running, id: &serde_json::Value) -> String {
    let job = server.get(&format!("/v1/jobs/{}", id.as_str().unwrap())).expect(200, "").json();
    job["state"].as_str().unwrap().to_owned()
}

#[test]
fn a_full_queue_refuses_and_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let limits = Limits { queue: 3, ..Limits::default() };
    let door = Door::default();
    let server = start_with(&limited(folder.path(), limits), Some(door.evaluator()));
    let client = TestClient::new(1, None);
    client.upload(&server);
    let mut accepted = vec![submit(&server, &client, 0).expect(202, "").json()["id"].clone()];
    eventually("the first job runs", || door.n_begun() == 1);
    let mut n_refused = 0;
    for number in 1..12 {
        let answer = submit(&server, &client, number);
        match answer.status {
            202 => accepted.push(answer.json()["id"].clone()),
            _ => {
                assert!(answer.expect(503, "queue-full").header("retry-after").is_some());
                n_refused += 1;
            }
        }
    }
    assert_eq!((accepted.len(), n_refused), (4, 8));
    assert_eq!(server.metric("fhe_now{what=\"queued\"}"), 3);
    let first = format!("/v1/jobs/{}/result", accepted[0].as_str().unwrap());
    server.get(&first).expect(409, "not-yet");
    door.open();
    for id in &accepted {
        eventually("every accepted job is done", || state(&server, id) == "done");
    }
    assert_eq!(server.get(&first).expect(200, "").body, b"result");
    assert_eq!(door.n_begun(), 4);
}

#[test]
fn a_client_that_goes_away_cancels_its_job() {
    let folder = tempfile::tempdir().unwrap();
    let door = Door::default();
    let server = start_with(&options(folder.path()), Some(door.evaluator()));
    let client = TestClient::new(1, None);
    client.upload(&server);
    let input = client.encrypt(&client.tensor(1), 1);
    let mut stream = connect(server.address);
    stream.write_all(&request("POST", &format!("{}&wait=60", client.jobs_path()), &[], &input)).unwrap();
    eventually("the job runs", || door.n_begun() == 1);
    drop(stream);
    eventually("the job is cancelled", || server.metric("fhe_jobs_total{state=\"cancelled\"}") == 1);
    assert_eq!(server.metric("fhe_refusals_total{reason=\"client-gone\"}"), 1);
    // It may be sent again, and a client can cancel one that waits and one that runs.
    let running = submit(&server, &client, 1).expect(202, "").json()["id"].clone();
    eventually("the job runs again", || door.n_begun() == 2);
    let waiting = submit(&server, &client, 2).expect(202, "").json()["id"].clone();
    for id in [waiting, running] {
        let path = format!("/v1/jobs/{}", id.as_str().unwrap());
        server.send("DELETE", &path, &[], b"").expect(409, "not-yet");
        server.send("POST", &format!("{path}/cancel"), &[], b"").expect(200, "");
        eventually("the job is cancelled", || state(&server, &id) == "cancelled");
        server.get(&format!("{path}/result")).expect(409, "cancelled");
    }
}

#[test]
fn whenever_a_client_goes_away_nothing_of_it_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let door = Door::default();
    let server = start_with(&options(folder.path()), Some(door.evaluator()));
    let client = TestClient::new(1, None);
    client.upload(&server);
    for number in 0..40 {
        let input = client.encrypt(&client.tensor(number), number);
        let mut stream = connect(server.address);
        let bytes = request("POST", &format!("{}&wait=60", client.jobs_path()), &[], &input);
        stream.write_all(&bytes).unwrap();
        // Before, while and after its job is accepted.
        std::thread::sleep(Duration::from_micros(250 * number));
    }
    let now = |what: &str| server.metric(&format!("fhe_now{{what=\"{what}\"}}"));
    eventually("all connections are gone", || now("connections") <= 1);
    // The door stays shut: a job that nobody cancels runs for ever.
    eventually("every job is cancelled", || {
        let jobs = server.get("/v1/jobs").json();
        let is_cancelled = |job: &serde_json::Value| job["state"] == "cancelled";
        now("queued") + now("running") == 0 && jobs.as_array().unwrap().iter().all(is_cancelled)
    });
}

#[test]
fn a_panic_is_a_500_for_its_job_only() {
    let folder = tempfile::tempdir().unwrap();
    let n_begun = AtomicUsize::new(0);
    let evaluator: Box<Evaluator> = Box::new(move |_| {
        assert!(n_begun.fetch_add(1, Ordering::SeqCst) != 0, "the first job panics, as it is told to");
        Ok(Report { result: b"result".to_vec(), profile: Profile::default() })
    });
    let server = start_with(&options(folder.path()), Some(evaluator));
    let client = TestClient::new(1, None);
    client.upload(&server);
    let path = format!("{}&wait=60", client.jobs_path());
    let jobs: Vec<_> = (0..2)
        .map(|number| {
            let input = client.encrypt(&client.tensor(number), number);
            server.send("POST", &path, &[], &input).expect(200, "").json()
        })
        .collect();
    assert_eq!((&jobs[0]["state"], &jobs[1]["state"]), (&"failed".into(), &"done".into()));
    let result =
        |job: &serde_json::Value| server.get(&format!("/v1/jobs/{}/result", job["id"].as_str().unwrap()));
    result(&jobs[0]).expect(500, "internal");
    result(&jobs[1]).expect(200, "");
    assert_eq!(server.metric("fhe_memory_bytes{kind=\"working\"}"), 0);
}

#[test]
fn deadlines_end_jobs_that_wait_or_run_too_long_and_bodies_that_do_not_come() {
    let folder = tempfile::tempdir().unwrap();
    let (queue_wait, idle) = (Duration::from_millis(300), Duration::from_millis(300));
    let limits = Limits { queue_wait, idle, ..Limits::default() };
    let door = Door::default();
    let server = start_with(&limited(folder.path(), limits), Some(door.evaluator()));
    let client = TestClient::new(1, None);
    client.upload(&server);
    submit(&server, &client, 0).expect(202, "");
    eventually("the first job runs", || door.n_begun() == 1);
    let waiting = submit(&server, &client, 1).expect(202, "").json()["id"].clone();
    std::thread::sleep(queue_wait);
    door.open();
    eventually("the second job waited too long", || state(&server, &waiting) == "failed");
    server.get(&format!("/v1/jobs/{}/result", waiting.as_str().unwrap())).expect(503, "queue-timeout");
    let other = TestClient::new(2, None);
    let whole = request("PUT", &other.keys_path(), &[], &other.keys);
    let mut stream = connect(server.address);
    stream.write_all(&whole[..whole.len() / 2]).unwrap();
    read(&mut stream).unwrap().expect(408, "too-slow");
}

#[test]
fn slow_heads_are_cut_and_hold_nobody_up() {
    let folder = tempfile::tempdir().unwrap();
    let limits = Limits { head: Duration::from_millis(500), ..Limits::default() };
    let server = start(&limited(folder.path(), limits));
    let slow: Vec<_> = (0..50)
        .map(|_| {
            let mut stream = connect(server.address);
            stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: a\r\nX-Slow: ").unwrap();
            stream
        })
        .collect();
    server.get("/healthz").expect(200, "");
    for mut stream in slow {
        let answer = read(&mut stream);
        assert!(
            answer.is_none_or(|answer| answer.status == 408),
            "a head that does not end gets no more than that"
        );
    }
    eventually("their connections are gone", || server.metric("fhe_now{what=\"connections\"}") <= 1);
}

#[test]
fn an_end_drains_and_the_next_server_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let door = Door::default();
    let server = start_with(&options(folder.path()), Some(door.evaluator()));
    let client = TestClient::new(1, None);
    client.upload(&server);
    let running = submit(&server, &client, 0).expect(202, "").json()["id"].clone();
    eventually("the first job runs", || door.n_begun() == 1);
    let waiting = submit(&server, &client, 1).expect(202, "").json()["id"].clone();
    server.drain();
    submit(&server, &client, 2).expect(503, "draining");
    door.open();
    drop(server);
    let server = start(&options(folder.path()));
    assert_eq!(state(&server, &running), "done");
    eventually("the job that waited is evaluated", || state(&server, &waiting) == "done");
    let result = server.get(&format!("/v1/jobs/{}/result", waiting.as_str().unwrap())).expect(200, "");
    assert!(client.error(&result.body, &client.tensor(1)) < 1e-2);
}

#[test]
fn keys_of_many_clients_stay_within_the_memory() {
    let folder = tempfile::tempdir().unwrap();
    // Room for the keys of some clients only.
    let server = start(&Options { memory: 24 << 20, ..options(folder.path()) });
    let capacity = server.metric("fhe_memory_bytes{kind=\"capacity\"}");
    let clients: Vec<TestClient> = (0..3).map(|seed| TestClient::new(seed, None)).collect();
    for round in 0..2 {
        for client in &clients {
            if round == 0 {
                client.upload(&server);
            }
            let tensor = client.tensor(round);
            let path = format!("{}&wait=60", client.jobs_path());
            let job = server.send("POST", &path, &[], &client.encrypt(&tensor, round)).expect(200, "").json();
            assert_eq!(job["state"], "done");
            let result =
                server.get(&format!("/v1/jobs/{}/result", job["id"].as_str().unwrap())).expect(200, "");
            assert!(client.error(&result.body, &tensor) < 1e-2);
            assert!(server.metric("fhe_memory_bytes{kind=\"keys\"}") <= capacity);
        }
    }
}

#[test]
fn keys_are_read_once_for_the_jobs_of_a_client_that_wait_then() {
    let folder = tempfile::tempdir().unwrap();
    let limits = Limits { patience: Duration::ZERO, ..Limits::default() };
    let door = Door::default();
    let (read, seen) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(Vec::new())));
    let evaluator: Box<Evaluator> = {
        let (wait, read, seen) = (door.evaluator(), Arc::clone(&read), Arc::clone(&seen));
        Box::new(move |work: Evaluation<'_>| {
            let key = work.key.to_string();
            work.reservation.keys(|| {
                read.lock().unwrap().push(key.clone());
                work.read_keys()
            })?;
            seen.lock().unwrap().push(key);
            wait(work)
        })
    };
    // Room for the keys of one client and no more.
    let starts = |memory: &u64| Catalog::load(&[program_path()], *memory, 1, true).is_ok();
    let memory = (1..1024).map(|n| n << 16).find(starts).unwrap();
    let options = Options { memory, ..limited(folder.path(), limits) };
    let server = start_with(&options, Some(evaluator));
    let clients: Vec<TestClient> = (0..3).map(|seed| TestClient::new(seed, None)).collect();
    clients.iter().for_each(|client| client.upload(&server));
    submit(&server, &clients[2], 0).expect(202, "");
    eventually("the first job runs", || door.n_begun() == 1);
    let mut jobs = Vec::new();
    for number in 1..7 {
        for client in &clients[..2] {
            jobs.push(submit(&server, client, number).expect(202, "").json()["id"].clone());
        }
    }
    read.lock().unwrap().clear();
    door.open();
    for id in &jobs {
        eventually("every job is done", || state(&server, id) == "done");
    }
    let [a, b] = [&clients[0], &clients[1]].map(|client| client.key_id());
    // Four at a time, then it is the other's turn.
    let expected = [[&a; 4], [&b; 4], [&a, &a, &b, &b]].concat();
    assert_eq!(seen.lock().unwrap()[1..].iter().collect::<Vec<_>>(), expected);
    assert_eq!(*read.lock().unwrap(), [&a, &b, &a, &b].map(String::clone));
}
