//! A server in this process, on a port of its own.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use fhe_serve::background::Background;
use fhe_serve::front::Front;
use fhe_serve::jobs::Evaluator;
use fhe_serve::limits::Limits;
use fhe_serve::server::Options;
use fhe_serve::tokens::{Quota, Tokens};

use crate::wire::{Answer, raw, request};

/// The program that all tests serve, of degree 2^9.
pub(crate) fn program_path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/v2.fhebc")
}

/// A server that runs.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    /// Nothing where it is another process.
    server: Option<Background>,
}

/// Options for a server on a free port of this machine.
pub(crate) fn options(store: &Path) -> Options {
    Options {
        programs: vec![program_path()],
        store: store.to_path_buf(),
        memory: 256 << 20,
        n_workers: 1,
        allow_insecure: true,
        front: front(store),
    }
}

/// What clients meet: a free port of this machine, and the tokens of a folder.
pub(crate) fn front(store: &Path) -> Front {
    Front {
        listen: "127.0.0.1:0".parse().unwrap(),
        tokens: store.join("tokens.json"),
        tls: None,
        behind_proxy: false,
        page: None,
        limits: Limits::default(),
    }
}

/// The same with other bounds.
pub(crate) fn limited(store: &Path, limits: Limits) -> Options {
    Options { front: Front { limits, ..front(store) }, ..options(store) }
}

pub(crate) fn start(options: &Options) -> Running {
    start_with(options, None)
}

pub(crate) fn start_with(options: &Options, evaluator: Option<Box<Evaluator>>) -> Running {
    let server = Background::start(options, evaluator).unwrap();
    Running { address: server.address(), server: Some(server) }
}

impl Running {
    /// A server in another process.
    pub(crate) fn elsewhere(address: SocketAddr) -> Self {
        Self { address, server: None }
    }

    pub(crate) fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        raw(self.address, &request(method, path, headers, body)).expect("an answer")
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], b"")
    }

    /// One counter's value.
    pub(crate) fn metric(&self, line: &str) -> u64 {
        let text = String::from_utf8(self.get("/metrics").body).unwrap();
        let found = text.lines().find_map(|found| found.strip_prefix(line)?.trim().parse::<f64>().ok());
        found.unwrap_or(0.0) as u64
    }

    /// Accepts and starts no more jobs.
    pub(crate) fn drain(&self) {
        self.server.as_ref().expect("it runs in this process").app().queue.drain();
    }
}

/// Adds a token to a store and gives it.
pub(crate) fn token(store: &Path, name: &str, quota: Quota) -> String {
    std::fs::create_dir_all(store).unwrap();
    let path = store.join("tokens.json");
    let mut tokens = Tokens::load(&path).unwrap();
    let secret = tokens.add(name.parse().unwrap(), quota, None).unwrap();
    tokens.save(&path).unwrap();
    secret
}

pub(crate) const QUOTA: Quota = Quota { key_bytes: 1 << 30, queued_jobs: 100, requests_per_minute: 100_000 };
