//! `cargo xtask load`: figures of a server on this machine, for a quiet one. Clients are `fhe-run remote`, over loopback.

mod overload;
mod server;

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use serde_json::{Value, json};
use server::{Server, done, tool};

use crate::workspace;

/// Least part of the throughput of `fhe-run bench` that a server has to have.
const LEAST: f64 = 0.9;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  cargo xtask load
  cargo xtask load --overload 300
  cargo xtask load --model onnx-models/resnet20-cifar10.onnx --calibrate pictures --input picture.png --images 2 --memory 16GiB --json load.json
  cargo xtask load --clients 16 --folder load --prepare && cargo xtask load --clients 16 --folder load")]
pub(crate) struct Args {
    /// Model to serve
    #[arg(long, value_name = "FILE", default_value = "onnx-models/lenet-mnist-0.onnx")]
    model: PathBuf,
    /// Inputs to calibrate it on
    #[arg(long, value_name = "FILE")]
    calibrate: Option<PathBuf>,
    /// Picture that clients send
    #[arg(long, value_name = "FILE", default_value = "examples/digits/broad-3.png")]
    input: PathBuf,
    /// Pictures of every client
    #[arg(long, value_name = "N", default_value_t = 16)]
    images: usize,
    /// Numbers of clients
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1,4,16")]
    clients: Vec<usize>,
    /// Memory of the server
    #[arg(long, value_name = "BYTES", default_value = "8GiB")]
    memory: String,
    /// Most runs of the bench
    #[arg(long, value_name = "N", default_value_t = 64)]
    runs: usize,
    /// Evaluations at a time (default: the server's)
    #[arg(long, value_name = "N")]
    workers: Option<usize>,
    /// Send eight times as many jobs as the server can do, for so many seconds, instead
    #[arg(long, value_name = "SECONDS")]
    overload: Option<u64>,
    /// Keep program, keys and stores in this folder, and go on with what is there
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
    /// Only build, make keys and send them: what takes minutes before anything is measured
    #[arg(long, requires = "folder", conflicts_with = "overload")]
    prepare: bool,
    /// Also write the figures to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> io::Result<()> {
    let bins = ["--bin", "fhec", "--bin", "fhe-run", "--bin", "fhe-serve"];
    workspace::run("cargo", &[&["build", "--release", "--workspace"][..], &bins].concat(), &[])?;
    let passing = tempfile::tempdir()?;
    let folder = args.folder.as_deref().unwrap_or(passing.path());
    std::fs::create_dir_all(folder)?;
    let folder = &folder.canonicalize()?;
    let program = folder.join("model.fhebc");
    if !program.exists() {
        let mut build = tool("fhec");
        build.arg("build").arg(&args.model).arg("-o").arg(&program).args(["--memory", &args.memory]);
        if let Some(inputs) = &args.calibrate {
            build.arg("--calibrate").arg(inputs);
        }
        done(&mut build)?;
    }
    if args.prepare {
        return args.clients.iter().try_for_each(|&n| ready(args, folder, &program, n).map(drop));
    }
    let mut alone = bench(args, &program)?;
    println!("fhe-run bench: {alone:.4} s for an image");
    if let Some(seconds) = args.overload {
        return overload::run(folder, &program, &args.input, &args.memory, alone, seconds);
    }
    let mut rows = Vec::new();
    for &n_clients in &args.clients {
        let mut row = serve(args, folder, &program, n_clients)?;
        // Before and after, because the clock of a machine wanders.
        let before = std::mem::replace(&mut alone, bench(args, &program)?);
        let mean = f64::midpoint(before, alone);
        let part = row["per_second"].as_f64().unwrap_or(0.0) * mean;
        println!("             {part:.2} of bench, {mean:.4} s for an image around it");
        (row["bench_seconds"], row["of_bench"]) = (mean.into(), part.into());
        rows.push(row);
    }
    if let Some(path) = &args.json {
        std::fs::write(path, serde_json::to_vec_pretty(&json!({ "runs": rows }))?)?;
    }
    match rows.iter().filter_map(|row| row["of_bench"].as_f64()).find(|part| *part < LEAST) {
        None => Ok(()),
        Some(part) => Err(io::Error::other(format!("{part:.2} of the throughput of `fhe-run bench`"))),
    }
}

/// Seconds of `fhe-run bench` for an image.
fn bench(args: &Args, program: &Path) -> io::Result<f64> {
    // As many as the server evaluates, up to some: what is done once for all of them is worth as much.
    let n_served = args.images * args.clients.iter().max().copied().unwrap_or(1);
    let runs = n_served.min(args.runs).max(3).to_string();
    let mut command = tool("fhe-run");
    command.arg("bench").arg(program).arg(&args.input).args(["--runs", &runs, "--warmup", "1"]);
    let bench: Value =
        serde_json::from_slice(&done(command.args(["--memory", &args.memory, "--format", "json"]))?)?;
    let seconds = find(&bench, "median_seconds");
    seconds.ok_or_else(|| io::Error::other(format!("no seconds in {bench}")))
}

fn home(folder: &Path, n_clients: usize, client: usize) -> PathBuf {
    folder.join(format!("home-{n_clients}-{client}"))
}

fn store(folder: &Path, n_clients: usize) -> PathBuf {
    folder.join(format!("store-{n_clients}"))
}

/// A server that has the keys of `n_clients` clients.
fn ready(args: &Args, folder: &Path, program: &Path, n_clients: usize) -> io::Result<Server> {
    let workers = args.workers.map(|n| format!("--workers={n}"));
    let store = store(folder, n_clients);
    let server = Server::start(program, &store, &args.memory, workers.as_deref().as_slice())?;
    for client in 0..n_clients {
        done(server.client(&home(folder, n_clients, client)).arg("--keys-only"))?;
    }
    Ok(server)
}

/// One server, `n_clients` clients with keys of their own that send all their pictures at the same time.
fn serve(args: &Args, folder: &Path, program: &Path, n_clients: usize) -> io::Result<Value> {
    let server = ready(args, folder, program, n_clients)?;
    let home = |client: usize| home(folder, n_clients, client);
    // The first picture encodes what is not yet.
    done(server.client(&home(0)).arg(&args.input))?;
    let n_before = server.json("/v1/jobs")?.as_array().map_or(0, Vec::len);
    let inputs = vec![args.input.as_path(); args.images];
    let children: Vec<Child> = (0..n_clients)
        .map(|client| server.client(&home(client)).args(&inputs).stdout(Stdio::null()).spawn())
        .collect::<io::Result<_>>()?;
    for mut child in children {
        if !child.wait()?.success() {
            return Err(io::Error::other("a client failed"));
        }
    }
    // The time of the jobs: clients also start and end, which is not the server's.
    let jobs = server.json("/v1/jobs")?;
    let mut times: Vec<(f64, f64)> = (jobs.as_array().into_iter().flatten())
        .filter_map(|job| Some((job["submitted_ms"].as_f64()? / 1e3, job["finished_ms"].as_f64()? / 1e3)))
        .collect();
    times.sort_by(|a, b| a.0.total_cmp(&b.0));
    let times = &times[n_before..];
    let n_images = n_clients * args.images;
    if times.len() != n_images {
        return Err(io::Error::other(format!("{} jobs instead of {n_images}", times.len())));
    }
    let last = times.iter().map(|(_, finished)| *finished).fold(0.0, f64::max);
    let rate = n_images as f64 / (last - times[0].0);
    let mut latencies: Vec<f64> = times.iter().map(|(submitted, finished)| finished - submitted).collect();
    latencies.sort_by(f64::total_cmp);
    let at = |part: f64| latencies[((part * latencies.len() as f64) as usize).min(latencies.len() - 1)];
    let (memory, peak) = (server.memory()?, server.peak()?);
    let mib = |bytes: f64| bytes / f64::from(1 << 20);
    println!(
        "{n_clients:3} clients: {rate:.3} a second; half within {:.3} s, 99 of 100 within {:.3} s; MiB: plaintexts {:.0}, keys {:.0}, resident {:.0}, at most {:.0}",
        at(0.5),
        at(0.99),
        mib(memory("plaintexts")),
        mib(memory("keys")),
        mib(memory("resident")),
        mib(peak),
    );
    // Gigabytes of keys that nobody needs any more.
    drop(server);
    if args.folder.is_none() {
        std::fs::remove_dir_all(store(folder, n_clients))?;
    }
    Ok(json!({
        "clients": n_clients, "images": n_images, "per_second": rate, "p50": at(0.5), "p99": at(0.99),
        "plaintexts": memory("plaintexts"), "keys": memory("keys"), "resident": memory("resident"), "peak": peak,
    }))
}

/// The first number of this name, wherever it stands.
fn find(value: &Value, name: &str) -> Option<f64> {
    match value {
        Value::Object(fields) => {
            fields.get(name).and_then(Value::as_f64).or_else(|| fields.values().find_map(|v| find(v, name)))
        }
        Value::Array(values) => values.iter().find_map(|value| find(value, name)),
        _ => None,
    }
}
