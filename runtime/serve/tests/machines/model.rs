//! A run to hold the capacity model to: three workers whose evaluations take a fixed time, so that they do not share the cores of
//! one machine, with everything else as it is. `cargo xtask cluster --model` compares.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use fhe_machine::Profile;
use fhe_serve::cluster::WorkerOptions;
use fhe_serve::jobs::{Evaluator, Report};

use crate::client::{TestClient, hex};
use crate::fixture::{LONG, Running, Service, eventually};
use crate::wire::{raw, request};

const N_WORKERS: usize = 3;
const N_CLIENTS: usize = 9;
const N_JOBS: usize = 240;
/// Clients whose keys a worker keeps.
const N_KEPT: u64 = 2;
const SECONDS: f64 = 0.6;
const READ_SECONDS: f64 = 0.3;
/// Jobs a second: three fifths of what three workers do when they never read keys.
const RATE: f64 = 0.6 * N_WORKERS as f64 / SECONDS;

/// An evaluation: which worker, whose key, whether the keys had to be read, from when to when.
struct Span {
    worker: usize,
    key: String,
    is_read: bool,
    began: Instant,
    ended: Instant,
}

type Seen = Arc<Mutex<Vec<Span>>>;

fn evaluator(number: usize, seen: Seen) -> Box<Evaluator> {
    Box::new(move |work| {
        let began = Instant::now();
        let mut is_read = false;
        let keys = work.reservation.keys(|| {
            is_read = true;
            std::thread::sleep(Duration::from_secs_f64(READ_SECONDS));
            work.read_keys()
        });
        keys?;
        std::thread::sleep(Duration::from_secs_f64(SECONDS));
        let (key, ended) = (hex(&work.key.0), Instant::now());
        seen.lock().unwrap().push(Span { worker: number, key, is_read, began, ended });
        Ok(Report { result: b"result".to_vec(), profile: Profile::default() })
    })
}

/// A small seeded generator of numbers in (0, 1].
fn unit(state: &mut u64) -> f64 {
    *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    ((*state >> 11) + 1) as f64 / (1u64 << 53) as f64
}

#[test]
#[ignore = "two minutes; cargo xtask cluster --model"]
fn three_workers_for_the_capacity_model() {
    let service = Service::new();
    let gateway = service.gateway("");
    let seen = Seen::default();
    let clients: Vec<TestClient> = (0..N_CLIENTS as u64).map(|seed| TestClient::new(seed, None)).collect();
    let memory = memory_for(N_KEPT);
    let workers: Vec<_> = (0..N_WORKERS)
        .map(|number| {
            let evaluator = evaluator(number, Arc::clone(&seen));
            service.local_worker(evaluator, |options| WorkerOptions { memory, ..options })
        })
        .collect();
    std::thread::sleep(Duration::from_secs(5));
    clients.iter().for_each(|client| client.upload(&gateway));
    let alone = alone(&gateway, &clients, &seen);
    let first = std::mem::take(&mut *seen.lock().unwrap());
    let homes: BTreeMap<String, usize> = first.into_iter().map(|span| (span.key, span.worker)).collect();
    let homes: Vec<usize> = clients.iter().map(|client| homes[&client.key_id()]).collect();
    // Everything that is sent is made before the clock runs.
    let mut state = 7;
    let mut at = 0.0;
    let arrivals: Vec<(f64, usize)> = (0..N_JOBS)
        .map(|_| {
            at += -unit(&mut state).ln() / RATE;
            (at, (unit(&mut state) * N_CLIENTS as f64) as usize % N_CLIENTS)
        })
        .collect();
    let inputs: Vec<Vec<u8>> = (arrivals.iter().enumerate())
        .map(|(i, (_, client))| clients[*client].encrypt(&clients[*client].tensor(1), 1 + i as u64))
        .collect();
    let began = Instant::now();
    let latencies: Vec<f64> = std::thread::scope(|scope| {
        let threads: Vec<_> = (arrivals.iter().zip(&inputs))
            .map(|(&(at, client), input)| {
                let bytes = request("POST", &format!("{}&wait=120", clients[client].jobs_path()), &[], input);
                let address = gateway.address;
                std::thread::sleep(Duration::from_secs_f64(at).saturating_sub(began.elapsed()));
                let sent = Instant::now();
                scope.spawn(move || {
                    let job = raw(address, &bytes).unwrap().expect(200, "").json();
                    assert_eq!(job["state"], "done");
                    sent.elapsed().as_secs_f64()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    eventually("all were evaluated", LONG, || seen.lock().unwrap().len() == N_JOBS);
    let seconds = began.elapsed().as_secs_f64();
    let seen = seen.lock().unwrap();
    let n_hits = seen.iter().filter(|span| !span.is_read).count();
    let home_of: BTreeMap<String, usize> =
        clients.iter().zip(&homes).map(|(client, home)| (client.key_id(), *home)).collect();
    let n_helped = seen.iter().filter(|span| home_of[&span.key] != span.worker).count();
    let at = |instant: Instant| instant.saturating_duration_since(began).as_secs_f64();
    let spans: Vec<_> = (seen.iter())
        .map(|span| (span.worker, home_of[&span.key], span.is_read, at(span.began), at(span.ended)))
        .collect();
    let run = serde_json::json!({
        "seconds": alone.0, "read_seconds": alone.1, "slots": 1, "machines": N_WORKERS, "kept": N_KEPT,
        "overflow": 2, "homes": homes, "arrivals": arrivals, "latencies": latencies,
        "per_second": N_JOBS as f64 / seconds, "hits": n_hits as f64 / N_JOBS as f64,
        "overflowed": n_helped as f64 / N_JOBS as f64, "spans": spans,
    });
    let path = std::env::var("FHE_MODEL_RUN").unwrap_or_else(|_| "capacity.json".to_owned());
    std::fs::write(&path, serde_json::to_vec(&run).unwrap()).unwrap();
    println!(
        "{N_JOBS} jobs in {seconds:.1} s, {n_hits} with their keys in memory, {n_helped} helped: {path}"
    );
    drop(workers);
}

/// Seconds of a job while nobody else waits, so that it runs at home, and how many more where keys are read: medians.
fn alone(gateway: &Running, clients: &[TestClient], seen: &Seen) -> (f64, f64) {
    let (mut here, mut read) = (Vec::new(), Vec::new());
    // The second of two jobs has its keys in memory; the first has not where a worker is the home of more clients than it keeps.
    for (round, client) in (0..2).flat_map(|round| clients.iter().map(move |client| (round, client))) {
        for number in 0..2 {
            let path = format!("{}&wait=60", client.jobs_path());
            let input = client.encrypt(&client.tensor(0), 1_000_000 + 2 * round + number);
            let sent = Instant::now();
            gateway.send("POST", &path, &[], &input).expect(200, "");
            let seconds = sent.elapsed().as_secs_f64();
            let is_read = seen.lock().unwrap().last().unwrap().is_read;
            if is_read { read.push(seconds) } else { here.push(seconds) }
        }
    }
    let median = |mut all: Vec<f64>| {
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    let (here, read) = (median(here), median(read));
    println!("alone: {here:.3} s with keys in memory, {read:.3} s without");
    (here, read - here)
}

/// A budget that leaves room for the keys of `n_kept` clients beside an evaluation.
fn memory_for(n_kept: u64) -> u64 {
    let (mut low, mut high) = (1_u64 << 20, 1 << 30);
    let fits = |memory: u64| {
        let catalog =
            fhe_serve::catalog::Catalog::load(&[crate::fixture::program_path()], memory, 1, true).ok()?;
        let entry = catalog.iter().next()?;
        let room = catalog.capacity(memory).checked_sub(entry.model.working_bytes())?;
        Some(room / entry.key_bytes)
    };
    while low + 1024 < high {
        let middle = (low + high) / 2;
        if fits(middle).is_some_and(|n| n >= n_kept) { high = middle } else { low = middle }
    }
    assert_eq!(fits(high), Some(n_kept));
    high
}
