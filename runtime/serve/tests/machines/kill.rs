//! `kill -9` of workers and of NATS: every job is answered once, with the bits that an undisturbed worker gives.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use fhe_serve::cluster::WorkerOptions;
use fhe_serve::jobs::{Evaluator, Failure};

use crate::client::TestClient;
use crate::fixture::{LONG, Process, Running, Service, eventually};

/// Waits for the result of every job and compares it with what one worker gave alone.
fn all_as_alone(gateway: &Running, inputs: &BTreeMap<String, Vec<u8>>, alone: &BTreeMap<String, Vec<u8>>) {
    let ends = Instant::now() + 2 * LONG;
    for id in inputs.keys() {
        let job = loop {
            let answer = gateway.get(&format!("/v1/jobs/{id}"));
            let job = answer.expect(200, "").json();
            if ["done", "failed", "cancelled"].contains(&job["state"].as_str().unwrap()) {
                break job;
            }
            assert!(Instant::now() < ends, "{job} does not end");
            std::thread::sleep(Duration::from_millis(50));
        };
        assert_eq!(job["state"], "done", "{job}");
        let result = gateway.get(&format!("/v1/jobs/{id}/result")).expect(200, "").body;
        assert!(result == alone[id], "the result of {id} has other bits");
    }
}

/// Inputs by the ids of their jobs, and their results from one worker that nobody disturbs.
fn alone(clients: &[TestClient], n_each: u64) -> (BTreeMap<String, Vec<u8>>, BTreeMap<String, Vec<u8>>) {
    let service = Service::new();
    let (gateway, _worker) = (service.gateway(""), service.worker(""));
    let (mut inputs, mut results) = (BTreeMap::new(), BTreeMap::new());
    for client in clients {
        client.upload(&gateway);
        for number in 0..n_each {
            let input = client.encrypt(&client.tensor(number), number);
            let path = format!("{}&wait=60", client.jobs_path());
            let job = gateway.send("POST", &path, &[], &input).expect(200, "").json();
            let id = job["id"].as_str().unwrap().to_owned();
            let result = gateway.get(&format!("/v1/jobs/{id}/result")).expect(200, "").body;
            assert!(client.error(&result, &client.tensor(number)) < 1e-2);
            inputs.insert(id.clone(), input);
            results.insert(id, result);
        }
    }
    (inputs, results)
}

fn submit_all(gateway: &Running, clients: &[TestClient], n_each: u64) {
    for number in 0..n_each {
        for client in clients {
            let input = client.encrypt(&client.tensor(number), number);
            eventually("the job is accepted", LONG, || {
                [200, 202].contains(&gateway.send("POST", &client.jobs_path(), &[], &input).status)
            });
        }
    }
}

/// Kills one of three workers again and again while jobs run.
fn kill_workers(n_kills: usize, n_clients: u64, n_each: u64) {
    let clients: Vec<TestClient> = (1..=n_clients).map(|seed| TestClient::new(seed, None)).collect();
    let (inputs, results) = alone(&clients, n_each);
    let service = Service::new();
    let gateway = service.gateway("--queue 100000");
    // A killed worker costs a delivery, and which job it had is chance.
    let start = || service.worker("--deliveries 100");
    let mut workers: Vec<Process> = (0..3).map(|_| start()).collect();
    clients.iter().for_each(|client| client.upload(&gateway));
    std::thread::scope(|scope| {
        scope.spawn(|| submit_all(&gateway, &clients, n_each));
        for round in 0..n_kills {
            std::thread::sleep(Duration::from_millis(150 + (round as u64 * 37) % 200));
            workers[round % 3].kill();
            workers[round % 3] = start();
        }
    });
    all_as_alone(&gateway, &inputs, &results);
    assert_eq!(gateway.get("/v1/jobs").json().as_array().unwrap().len(), inputs.len());
}

#[test]
fn killed_workers_lose_no_job() {
    kill_workers(3, 2, 8);
}

#[test]
#[ignore = "twenty restarts; cargo xtask cluster --slow"]
fn workers_killed_twenty_times_lose_no_job() {
    kill_workers(20, 3, 60);
}

#[test]
fn a_restarted_nats_loses_no_job() {
    let clients = [TestClient::new(1, None)];
    let (inputs, results) = alone(&clients, 20);
    let mut service = Service::new();
    let gateway = service.gateway("");
    let _workers = [service.worker("--deliveries 100"), service.worker("--deliveries 100")];
    clients[0].upload(&gateway);
    std::thread::scope(|scope| {
        scope.spawn(|| submit_all(&gateway, &clients, 20));
        for pause in [0, 3] {
            std::thread::sleep(Duration::from_millis(300));
            service.nats.restart(Duration::from_secs(pause));
        }
    });
    all_as_alone(&gateway, &inputs, &results);
}

#[test]
fn a_job_that_ends_its_workers_is_given_up_and_the_client_is_told() {
    let service = Service::new();
    let gateway = service.gateway("");
    let client = TestClient::new(1, None);
    let slow = "--deliveries 2";
    {
        let _worker = service.worker(slow);
        client.upload(&gateway);
    }
    let input = client.encrypt(&client.tensor(1), 1);
    let job = gateway.send("POST", &client.jobs_path(), &[], &input).expect(202, "").json();
    let path = format!("/v1/jobs/{}", job["id"].as_str().unwrap());
    let state = || gateway.get(&path).expect(200, "").json();
    for round in 1..=2 {
        // A worker that is gone where its evaluation begins, as by a fault of its machine.
        let stuck: Box<Evaluator> = Box::new(|work| {
            while !work.cancel.is_cancelled() {
                std::thread::sleep(Duration::from_millis(20));
            }
            Err(Failure::Cancelled)
        });
        let worker = service.local_worker(stuck, |options| WorkerOptions {
            n_deliveries: 2,
            ack: Duration::from_secs(1),
            ..options
        });
        eventually("the job is begun", LONG, || state()["attempts"] == round);
        drop(worker);
    }
    let _worker = service.worker(slow);
    eventually("the job is given up", LONG, || state()["state"] == "failed");
    assert_eq!(state()["error"]["code"], "gave-up");
    gateway.get(&format!("{path}/result")).expect(500, "gave-up");
    // It may be sent again, and is a new try then.
    let path = format!("{}&wait=60", client.jobs_path());
    assert_eq!(gateway.send("POST", &path, &[], &input).expect(200, "").json()["state"], "done");
}
