//! Arguments that several commands share, and how a process waits for its end.

use std::error::Error;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use fhe_host::parse_bytes;

use crate::front::Front;
use crate::http::PageSource;
use crate::limits::Limits;
use crate::logs;

/// What clients meet.
#[derive(Debug, Args)]
pub(super) struct FrontArgs {
    /// Address to listen on; one that other machines reach needs tokens and TLS
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// Token file, as `fhe-serve token add` writes it (default: tokens.json in the store)
    #[arg(long, value_name = "FILE")]
    tokens: Option<PathBuf>,
    /// Certificates for TLS, in PEM form
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// Key of the certificate, in PEM form
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// A proxy in front of this address does TLS
    #[arg(long)]
    behind_proxy: bool,
    /// Serve the client for browsers at /, or the page in this folder
    #[arg(long, value_name = "FOLDER", num_args = 0..=1, require_equals = true)]
    page: Option<Option<PathBuf>>,
    #[command(flatten)]
    limits: LimitArgs,
}

impl FrontArgs {
    /// With a folder where tokens are if no file is named.
    pub(super) fn front(&self, store: &Path) -> Front {
        Front {
            listen: self.listen,
            tokens: self.tokens.clone().unwrap_or_else(|| tokens_in(store)),
            tls: self.tls_cert.clone().zip(self.tls_key.clone()),
            behind_proxy: self.behind_proxy,
            page: self.page.clone().map(|folder| folder.map_or(PageSource::Own, PageSource::Folder)),
            limits: self.limits.limits(),
        }
    }
}

/// Where the tokens of a store are.
pub(super) fn tokens_in(store: &Path) -> PathBuf {
    store.join("tokens.json")
}

/// Who evaluates, and with what.
#[derive(Debug, Args)]
pub(super) struct ComputeArgs {
    /// Memory for plaintexts, keys and evaluations (default: what is available)
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    memory: Option<u64>,
    /// Evaluations at a time, as far as memory goes; all of them share the cores (default: one per four cores, two at least)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    workers: Option<u16>,
    /// Threads that compute (default: all cores)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
}

impl ComputeArgs {
    /// Makes the pool of threads that compute; gives bytes of memory and evaluations at a time.
    pub(super) fn prepare(&self) -> Result<(u64, usize), Box<dyn Error>> {
        rayon::ThreadPoolBuilder::new().num_threads(self.threads.unwrap_or(0).into()).build_global()?;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let available =
            || fhe_host::memory::limit_bytes().into_iter().chain(fhe_host::memory::available_bytes()).min();
        let memory =
            self.memory.or_else(available).ok_or("the machine does not tell its memory: give --memory")?;
        // One alone leaves gaps between its layers, and every time it ends.
        Ok((memory, self.workers.map_or((cores / 4).max(2), usize::from)))
    }
}

/// The log.
#[derive(Debug, Args)]
pub(super) struct LogArgs {
    /// How the log looks
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = logs::Format::Text)]
    log: logs::Format,
    /// What the log says
    #[arg(long, value_enum, value_name = "LEVEL", default_value_t = logs::Level::Info)]
    log_level: logs::Level,
}

impl LogArgs {
    pub(super) fn start(&self) {
        logs::start(self.log, self.log_level);
    }
}

/// A folder for everything that a server keeps.
#[derive(Debug, Args)]
pub(super) struct StoreArg {
    /// Folder for keys, jobs and tokens
    #[arg(long, value_name = "FOLDER", default_value = "fhe-store")]
    pub store: PathBuf,
}

impl StoreArg {
    pub(super) fn tokens(&self) -> PathBuf {
        tokens_in(&self.store)
    }
}

#[derive(Debug, Args)]
pub(super) struct LimitArgs {
    /// Jobs that may wait
    #[arg(long, value_name = "N", default_value_t = Limits::default().queue)]
    queue: usize,
    /// Seconds that a job may wait
    #[arg(long, value_name = "SECONDS", default_value_t = Limits::default().queue_wait.as_secs())]
    queue_seconds: u64,
    /// Seconds that a job may run
    #[arg(long, value_name = "SECONDS", default_value_t = Limits::default().job.as_secs())]
    job_seconds: u64,
    /// Seconds that a job and its result are kept after its end
    #[arg(long, value_name = "SECONDS", default_value_t = Limits::default().keep.as_secs())]
    keep_seconds: u64,
    /// Seconds without a byte of a request's body
    #[arg(long, value_name = "SECONDS", default_value_t = Limits::default().idle.as_secs())]
    idle_seconds: u64,
    /// Seconds for running jobs when the server is told to end
    #[arg(long, value_name = "SECONDS", default_value_t = Limits::default().drain.as_secs())]
    drain_seconds: u64,
    /// Connections at a time
    #[arg(long, value_name = "N", default_value_t = Limits::default().connections)]
    connections: usize,
}

impl LimitArgs {
    pub(super) fn limits(&self) -> Limits {
        Limits {
            queue: self.queue,
            queue_wait: Duration::from_secs(self.queue_seconds),
            job: Duration::from_secs(self.job_seconds),
            keep: Duration::from_secs(self.keep_seconds),
            idle: Duration::from_secs(self.idle_seconds.max(1)),
            drain: Duration::from_secs(self.drain_seconds),
            connections: self.connections.max(1),
            ..Limits::default()
        }
    }
}

/// Runs what is asynchronous, to its end. Requests are little work beside evaluations, which have threads of their own.
pub(super) fn block_on<T>(
    work: impl Future<Output = Result<T, Box<dyn Error>>>,
) -> Result<T, Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let done = runtime.block_on(work);
    // A job that does not end is taken up by the next process.
    runtime.shutdown_timeout(Duration::from_secs(1));
    done
}

/// Done when the process is told to end.
pub(super) fn stop_signal() -> std::io::Result<impl Future<Output = ()>> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let (mut term, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        Ok(async move {
            tokio::select! {
                _ = term.recv() => {}
                _ = interrupt.recv() => {}
            }
        })
    }
    #[cfg(not(unix))]
    Ok(async {
        let _ = tokio::signal::ctrl_c().await;
    })
}
