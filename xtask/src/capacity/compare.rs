//! The simulation held to a run of real workers: the same jobs at the same times, compared number by number.

use std::io;
use std::path::Path;

use serde_json::Value;

use super::simulate::{Arrivals, Outcome, Plan, simulate};

/// How far the simulation may be off.
const MOST: f64 = 0.2;

/// Simulates what a run did and fails where the two differ too much.
pub(crate) fn compare(path: &Path) -> io::Result<()> {
    let run: Value = serde_json::from_slice(&std::fs::read(path)?)?;
    let plan =
        plan(&run).ok_or_else(|| io::Error::other(format!("{}: no run of workers", path.display())))?;
    let outcome = simulate(&plan);
    let rows = rows(&run, &outcome);
    println!("{:24} {:>10} {:>10} {:>8}", "", "run", "simulated", "off by");
    for (name, seen, simulated) in &rows {
        println!("{name:24} {seen:10.3} {simulated:10.3} {:7.1} %", 100.0 * off(*seen, *simulated));
    }
    let is_off = |(_, seen, simulated): &&(&str, f64, f64)| off(*seen, *simulated) > MOST;
    match rows.iter().find(is_off) {
        None => Ok(()),
        Some((name, ..)) => {
            Err(io::Error::other(format!("{name}: the simulation is off by more than a fifth")))
        }
    }
}

fn off(seen: f64, simulated: f64) -> f64 {
    (simulated / seen - 1.0).abs()
}

fn rows(run: &Value, outcome: &Outcome) -> Vec<(&'static str, f64, f64)> {
    let mut latencies: Vec<f64> =
        run["latencies"].as_array().into_iter().flatten().filter_map(Value::as_f64).collect();
    latencies.sort_by(f64::total_cmp);
    let at = |part: f64| latencies[((part * latencies.len() as f64) as usize).min(latencies.len() - 1)];
    let mean = latencies.iter().sum::<f64>() / latencies.len() as f64;
    vec![
        ("jobs a second", run["per_second"].as_f64().unwrap_or(0.0), outcome.per_second),
        ("mean seconds", mean, outcome.mean()),
        ("half within seconds", at(0.5), outcome.latency(0.5)),
        ("9 of 10 within seconds", at(0.9), outcome.latency(0.9)),
        ("keys in memory", run["hits"].as_f64().unwrap_or(0.0), outcome.hits),
    ]
}

fn plan(run: &Value) -> Option<Plan> {
    let number = |name: &str| run[name].as_f64();
    let count = |name: &str| run[name].as_u64().map(|count| count as usize);
    let homes: Vec<usize> =
        run["homes"].as_array()?.iter().filter_map(|home| Some(home.as_u64()? as usize)).collect();
    let jobs: Vec<(f64, usize)> = (run["arrivals"].as_array()?.iter())
        .filter_map(|job| Some((job[0].as_f64()?, job[1].as_u64()? as usize)))
        .collect();
    let n_machines = count("machines")?;
    let is_whole =
        jobs.iter().all(|(_, client)| *client < homes.len()) && homes.iter().all(|home| *home < n_machines);
    if jobs.is_empty() || run["latencies"].as_array()?.is_empty() || !is_whole {
        return None;
    }
    Some(Plan {
        n_clients: homes.len(),
        skew: 0.0,
        rate: 1.0,
        seconds: number("seconds")?,
        read_seconds: number("read_seconds")?,
        n_machines,
        n_slots: count("slots")?,
        n_kept: count("kept")?,
        queue: usize::MAX,
        overflow: count("overflow")?,
        arrivals: Arrivals::Seen { jobs, homes },
    })
}
