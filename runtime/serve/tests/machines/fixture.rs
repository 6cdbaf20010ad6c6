//! Processes of a service on this machine: NATS, gateways and workers, each with a port of its own.

use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use fhe_serve::cluster::{Place, WorkerOptions, work};
use fhe_serve::jobs::Evaluator;
use fhe_serve::tokens::{Quota, Tokens};

use crate::wire::{Answer, raw, request};

pub(crate) const QUOTA: Quota =
    Quota { key_bytes: 1 << 30, queued_jobs: 10_000, requests_per_minute: 1_000_000 };

/// The program that all tests serve, of degree 2^9.
pub(crate) fn program_path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/v2.fhebc")
}

/// A program of `cargo xtask cluster`, or of the variable that names another one.
pub(crate) fn tool(variable: &str, name: &str) -> PathBuf {
    let built = Path::new(env!("CARGO_BIN_EXE_fhe-serve")).ancestors().nth(2).unwrap().join("tools");
    let path = std::env::var_os(variable).map_or_else(|| built.join(name), PathBuf::from);
    assert!(path.is_file(), "{} is not there: `cargo xtask cluster` puts it there", path.display());
    path
}

/// A process that ends with this.
pub(crate) struct Process(pub(crate) Child);

impl Process {
    /// `kill -9`.
    pub(crate) fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }

    pub(crate) fn signal(&self, name: &str) {
        let pid = self.0.id().to_string();
        assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A port that nobody listens on, and below those that systems give to whoever asks for any.
pub(crate) fn free_port() -> u16 {
    static N_ASKED: AtomicU32 = AtomicU32::new(0);
    let ports = std::iter::repeat_with(|| {
        let number = std::process::id().wrapping_mul(97) + 7 * N_ASKED.fetch_add(1, Ordering::Relaxed);
        20_000 + (number % 12_000) as u16
    });
    let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    ports.take(12_000).find(is_free).expect("a free port")
}

#[track_caller]
pub(crate) fn eventually(what: &str, within: Duration, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < within, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

pub(crate) const LONG: Duration = Duration::from_secs(120);

/// NATS with a folder of its own.
pub(crate) struct Nats {
    pub(crate) port: u16,
    folder: PathBuf,
    process: Process,
}

impl Nats {
    pub(crate) fn start(folder: &Path) -> Self {
        let folder = folder.join("nats");
        // A port that was free may be another's a moment later.
        let start = |_| {
            let port = free_port();
            Some((port, Self::process(port, &folder)?))
        };
        let (port, process) = (0..20).find_map(start).expect("NATS starts");
        Self { port, folder, process }
    }

    /// NATS on this port; nothing if it ended at once.
    fn process(port: u16, folder: &Path) -> Option<Process> {
        static N_STARTED: AtomicUsize = AtomicUsize::new(0);
        let number = N_STARTED.fetch_add(1, Ordering::Relaxed);
        let name = format!("test-{}-{number}", std::process::id());
        let child = Command::new(tool("FHE_NATS_SERVER", "nats-server"))
            .args(["-a", "127.0.0.1", "-p", &port.to_string(), "-n", &name, "-js", "-sd"])
            .arg(folder)
            .stderr(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let mut process = Process(child);
        let mut has_ended = false;
        eventually("NATS listens", LONG, || {
            has_ended = process.0.try_wait().unwrap().is_some();
            has_ended || greets(port, &name)
        });
        (!has_ended).then_some(process)
    }

    /// Kills it and starts it again on its files.
    pub(crate) fn restart(&mut self, pause: Duration) {
        self.process.kill();
        std::thread::sleep(pause);
        // Whoever was connected may hold the port for a moment.
        let start = |_| {
            std::thread::sleep(Duration::from_millis(100));
            Self::process(self.port, &self.folder)
        };
        self.process = (0..20).find_map(start).expect("NATS starts again");
    }

    pub(crate) fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }
}

/// Whether it is the NATS of this name that listens: another process may have taken the port.
fn greets(port: u16, name: &str) -> bool {
    let Ok(stream) = TcpStream::connect(("127.0.0.1", port)) else { return false };
    stream.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    let mut line = String::new();
    let read = BufReader::new(stream.take(64 << 10)).read_line(&mut line);
    read.is_ok() && line.starts_with("INFO ") && line.contains(&format!("\"server_name\":\"{name}\""))
}

/// A service: NATS, a store, and what commands share.
pub(crate) struct Service {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) nats: Nats,
    pub(crate) store: String,
    env: Vec<(String, String)>,
}

impl Service {
    /// Over a folder.
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("store").display().to_string();
        Self::over(folder, store, Vec::new())
    }

    pub(crate) fn over(folder: tempfile::TempDir, store: String, env: Vec<(String, String)>) -> Self {
        let nats = Nats::start(folder.path());
        let service = Self { folder, nats, store, env };
        let mut command = service.command("program");
        command.arg("add").arg(program_path()).args(["--store", &service.store]);
        let added = added_output(&mut command);
        assert_eq!(added.trim().len(), 64, "{added}");
        service
    }

    fn command(&self, name: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fhe-serve"));
        command.arg(name).envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }

    fn tokens(&self) -> PathBuf {
        self.folder.path().join("tokens.json")
    }

    /// Adds a token and gives it.
    pub(crate) fn token(&self, name: &str, quota: Quota) -> String {
        let mut tokens = Tokens::load(&self.tokens()).unwrap();
        let secret = tokens.add(name.parse().unwrap(), quota, None).unwrap();
        tokens.save(&self.tokens()).unwrap();
        secret
    }

    pub(crate) fn gateway(&self, more: &str) -> Running {
        let mut command = self.command("gateway");
        command.args(["--nats", &self.nats.url(), "--store", &self.store, "--insecure", "--log", "json"]);
        command
            .args(["--listen", "127.0.0.1:0", "--tokens"])
            .arg(self.tokens())
            .args(more.split_whitespace());
        let mut process = Process(command.stderr(Stdio::piped()).spawn().unwrap());
        let mut log = BufReader::new(process.0.stderr.take().unwrap());
        let mut seen = String::new();
        let address = loop {
            let mut line = String::new();
            assert!(log.read_line(&mut line).unwrap() > 0, "the gateway ended: {seen}");
            seen += &line;
            let entry: serde_json::Value = serde_json::from_str(&line).unwrap_or_default();
            if let Some(address) = entry["fields"]["address"].as_str() {
                break address.trim_start_matches("Some(").trim_end_matches(')').parse().unwrap();
            }
        };
        drain(log);
        Running { address, _process: process }
    }

    /// A worker with room for one evaluation at a time; silence of two seconds means that it is gone.
    pub(crate) fn worker(&self, more: &str) -> Process {
        let mut command = self.command("worker");
        command.args(["--nats", &self.nats.url(), "--store", &self.store, "--insecure", "--log", "json"]);
        command.args(["--memory", "256MiB", "--workers", "1", "--threads", "1", "--ack-seconds", "2"]);
        command.args(more.split_whitespace());
        let mut process = Process(command.stderr(Stdio::piped()).spawn().unwrap());
        let mut log = BufReader::new(process.0.stderr.take().unwrap());
        let mut seen = String::new();
        while !seen.contains("\"working\"") {
            let mut line = String::new();
            assert!(log.read_line(&mut line).unwrap() > 0, "the worker ended: {seen}");
            seen += &line;
        }
        drain(log);
        process
    }
}

/// A worker in this process, with another way to evaluate. Dropping it is as good as `kill -9`: nothing more is said.
pub(crate) struct Local(Option<tokio::runtime::Runtime>);

impl Service {
    pub(crate) fn local_worker(
        &self,
        evaluator: Box<Evaluator>,
        change: impl FnOnce(WorkerOptions) -> WorkerOptions,
    ) -> Local {
        let options = change(WorkerOptions {
            place: Place { nats: self.nats.url(), store: self.store.clone(), name: "fhe".to_owned() },
            memory: 256 << 20,
            n_slots: 1,
            allow_insecure: true,
            overflow: 2,
            n_deliveries: 5,
            ack: Duration::from_secs(2),
            queue_wait: LONG,
            job: LONG,
            drain: Duration::from_secs(1),
            metrics: None,
        });
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        runtime.spawn(async move { work(options, Some(evaluator), std::future::pending()).await.unwrap() });
        Local(Some(runtime))
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        self.0.take().unwrap().shutdown_background();
    }
}

fn added_output(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Reads a log to its end, so that nobody waits for it; shows it to those who ask for it.
fn drain(mut log: impl Read + Send + 'static) {
    let show = std::env::var_os("FHE_SHOW_LOGS").is_some();
    std::thread::spawn(move || match show {
        true => std::io::copy(&mut log, &mut std::io::stderr()),
        false => std::io::copy(&mut log, &mut std::io::sink()),
    });
}

/// A gateway that runs.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    _process: Process,
}

impl Running {
    pub(crate) fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        raw(self.address, &request(method, path, headers, body)).expect("an answer")
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], b"")
    }
}
