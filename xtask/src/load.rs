//! `cargo xtask load`: figures of a server on this machine, for a quiet one. Clients are `fhe-run remote`, over loopback.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::{lab, workspace};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  cargo xtask load
  cargo xtask load --model onnx-models/resnet20-cifar10.onnx --input picture.png --images 2 --memory 16GiB --json load.json")]
pub(crate) struct Args {
    /// Model to serve
    #[arg(long, value_name = "FILE", default_value = "onnx-models/lenet-mnist-0.onnx")]
    model: PathBuf,
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
    /// Also write the figures to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> io::Result<()> {
    let bins = ["--bin", "fhec", "--bin", "fhe-run", "--bin", "fhe-serve"];
    workspace::run("cargo", &[&["build", "--release", "--workspace"][..], &bins].concat(), &[])?;
    let folder = tempfile::tempdir()?;
    let program = folder.path().join("model.fhebc");
    done(tool("fhec").arg("build").arg(&args.model).arg("-o").arg(&program))?;
    let (runs, memory) = (args.images.to_string(), &args.memory);
    let bench = done(
        (tool("fhe-run").arg("bench").arg(&program).arg(&args.input))
            .args(["--runs", &runs, "--warmup", "1", "--memory", memory, "--format", "json"]),
    )?;
    let bench: Value = serde_json::from_slice(&bench)?;
    let alone = find(&bench, "median_seconds").or_else(|| find(&bench, "seconds"));
    let alone = alone.ok_or_else(|| io::Error::other(format!("no seconds in {bench}")))?;
    println!("fhe-run bench: {alone:.3} s for an image");
    let mut rows = Vec::new();
    for &n_clients in &args.clients {
        rows.push(serve(args, folder.path(), &program, n_clients, alone)?);
    }
    if let Some(path) = &args.json {
        std::fs::write(path, serde_json::to_vec_pretty(&json!({ "bench_seconds": alone, "runs": rows }))?)?;
    }
    Ok(())
}

/// One server, `n_clients` clients with keys of their own that send all their pictures at the same time.
fn serve(args: &Args, folder: &Path, program: &Path, n_clients: usize, alone: f64) -> io::Result<Value> {
    let store = folder.join(format!("store-{n_clients}"));
    let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let mut command = tool("fhe-serve");
    command.arg("run").arg(program).arg("--store").arg(&store).args(["--memory", &args.memory]);
    command.args(["--listen", &address.to_string(), "--log-level", "error"]);
    let mut server = Stopped(command.spawn()?);
    let ends = Instant::now() + Duration::from_secs(300);
    while get(address, "/readyz").is_err() {
        if Instant::now() > ends {
            return Err(io::Error::other("the server does not start"));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let remote = |client: usize, inputs: &[&Path]| {
        let mut command = tool("fhe-run");
        command.arg("remote").arg(format!("http://{address}")).args(inputs);
        command.arg("--home").arg(folder.join(format!("home-{n_clients}-{client}"))).arg("--quiet");
        command
    };
    for client in 0..n_clients {
        done(remote(client, &[]).arg("--keys-only"))?;
    }
    let inputs = vec![args.input.as_path(); args.images];
    // The first picture of a client reads its keys and encodes what is not yet.
    done(&mut remote(0, &inputs[..1]))?;
    let began = Instant::now();
    let children: Vec<Child> = (0..n_clients)
        .map(|client| remote(client, &inputs).stdout(Stdio::null()).spawn())
        .collect::<io::Result<_>>()?;
    for mut child in children {
        if !child.wait()?.success() {
            return Err(io::Error::other("a client failed"));
        }
    }
    let seconds = began.elapsed().as_secs_f64();
    let n_images = n_clients * args.images;
    let jobs: Value = serde_json::from_slice(&get(address, "/v1/jobs")?)?;
    let mut latencies: Vec<f64> = (jobs.as_array().into_iter().flatten())
        .filter_map(|job| Some((job["finished_ms"].as_f64()? - job["submitted_ms"].as_f64()?) / 1e3))
        .collect();
    latencies.sort_by(f64::total_cmp);
    let at = |part: f64| latencies[((part * latencies.len() as f64) as usize).min(latencies.len() - 1)];
    let metrics = String::from_utf8_lossy(&get(address, "/metrics")?).into_owned();
    let kind = |kind: &str| {
        let line = format!("fhe_memory_bytes{{kind=\"{kind}\"}} ");
        metrics.lines().find_map(|found| found.strip_prefix(&line)?.parse::<f64>().ok()).unwrap_or(0.0)
    };
    let (rate, mib) = (n_images as f64 / seconds, |bytes: f64| bytes / f64::from(1 << 20));
    println!(
        "{n_clients:3} clients: {rate:.3} a second, {:.2} of bench; half within {:.3} s, 99 of 100 within {:.3} s; MiB: plaintexts {:.0}, keys {:.0}, resident {:.0}",
        rate * alone,
        at(0.5),
        at(0.99),
        mib(kind("plaintexts")),
        mib(kind("keys")),
        mib(kind("resident")),
    );
    server.0.kill()?;
    Ok(json!({
        "clients": n_clients, "images": n_images, "per_second": rate, "of_bench": rate * alone, "p50": at(0.5), "p99": at(0.99),
        "plaintexts": kind("plaintexts"), "keys": kind("keys"), "resident": kind("resident"),
    }))
}

/// A process that ends with this.
struct Stopped(Child);

impl Drop for Stopped {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn tool(name: &str) -> Command {
    let mut command = Command::new(lab::target().join("release").join(name));
    command.current_dir(workspace::root());
    command
}

/// Runs a command to its end and gives what it printed.
fn done(command: &mut Command) -> io::Result<Vec<u8>> {
    let output = command.stderr(Stdio::inherit()).output()?;
    match output.status.success() {
        true => Ok(output.stdout),
        false => Err(io::Error::other(format!("{command:?} ended with {}", output.status))),
    }
}

/// The body of an answer.
fn get(address: SocketAddr, path: &str) -> io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(address)?;
    write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n")?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n");
    let end = end.ok_or_else(|| io::Error::other("no answer"))?;
    Ok(answer.split_off(end + 4))
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
