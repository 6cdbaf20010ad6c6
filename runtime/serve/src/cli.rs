//! The command line: parses, calls one function, maps the result to an exit code (0 done, 1 cannot do that, 2 usage, 3 a bug).

use std::error::Error;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, CommandFactory, Parser, Subcommand};
use fhe_host::{parse_bytes, show_bytes};

use crate::http::PageSource;
use crate::ids::Owner;
use crate::limits::Limits;
use crate::logs;
use crate::server::{Options, Server};
use crate::tokens::{Quota, Tokens, now};

/// Serve compiled networks to clients that send encrypted inputs.
#[derive(Debug, Parser)]
#[command(
    name = "fhe-serve",
    version,
    max_term_width = 110,
    after_help = "\
Examples:
  fhe-serve run model.fhebc                               on this machine, without tokens
  fhe-serve run model.fhebc --page=target/web             with a page to draw and ask (cargo xtask web)
  fhe-serve token add clinic --store data                 who may use the server
  fhe-serve run model.fhebc --store data --memory 16GiB --listen 0.0.0.0:8443 --tls-cert cert.pem --tls-key key.pem

Exit codes: 0 done, 1 cannot do that, 2 usage, 3 a bug in fhe-serve."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a server on this machine
    Run(Box<Run>),
    /// Say who may use a server
    #[command(subcommand)]
    Token(Token),
    /// Print the contract as an OpenAPI document
    Openapi,
}

#[derive(Debug, Args)]
struct Run {
    /// Programs to serve
    #[arg(required = true, value_name = "PROGRAM")]
    programs: Vec<PathBuf>,
    /// Address to listen on; one that other machines reach needs tokens and TLS
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    #[command(flatten)]
    store: StoreArg,
    /// Token file, as `fhe-serve token add` writes it (default: tokens.json in the store)
    #[arg(long, value_name = "FILE")]
    tokens: Option<PathBuf>,
    /// Memory for plaintexts, keys and evaluations (default: what is available)
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    memory: Option<u64>,
    /// Evaluations at a time; all of them share the cores (default: one per four cores)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    workers: Option<u16>,
    /// Threads that compute (default: all cores)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Certificates for TLS, in PEM form
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// Key of the certificate, in PEM form
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// A proxy in front of this address does TLS
    #[arg(long)]
    behind_proxy: bool,
    /// Serve programs whose parameters are below 128 bits of security
    #[arg(long)]
    insecure: bool,
    /// Serve the client for browsers at /, or the page in this folder
    #[arg(long, value_name = "FOLDER", num_args = 0..=1, require_equals = true)]
    page: Option<Option<PathBuf>>,
    #[command(flatten)]
    limits: LimitArgs,
    /// How the log looks
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = logs::Format::Text)]
    log: logs::Format,
    /// What the log says
    #[arg(long, value_enum, value_name = "LEVEL", default_value_t = logs::Level::Info)]
    log_level: logs::Level,
}

#[derive(Debug, Args)]
struct StoreArg {
    /// Folder for keys, jobs and tokens
    #[arg(long, value_name = "FOLDER", default_value = "fhe-store")]
    store: PathBuf,
}

impl StoreArg {
    fn tokens(&self) -> PathBuf {
        self.store.join("tokens.json")
    }
}

#[derive(Debug, Args)]
struct LimitArgs {
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
    fn limits(&self) -> Limits {
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

#[derive(Debug, Subcommand)]
enum Token {
    /// Make a token and print it; it is not kept
    Add {
        /// Whose it is: lower-case letters, digits, hyphens
        name: Owner,
        #[command(flatten)]
        store: StoreArg,
        /// Bytes of evaluation keys in the store
        #[arg(long, value_name = "BYTES", value_parser = parse_bytes, default_value = "8GiB")]
        key_bytes: u64,
        /// Jobs that wait or run
        #[arg(long, value_name = "N", default_value_t = 16)]
        jobs: u32,
        /// Requests a minute
        #[arg(long, value_name = "N", default_value_t = 600)]
        requests: u32,
        /// Days until it is refused (default: never)
        #[arg(long, value_name = "N")]
        days: Option<u32>,
    },
    /// Print who may
    List {
        #[command(flatten)]
        store: StoreArg,
    },
    /// Refuse a token from now on
    Remove {
        /// Whose it is
        name: Owner,
        #[command(flatten)]
        store: StoreArg,
    },
}

/// Runs the command line and gives the exit code of the process.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are results, not errors; clap knows.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    let done = match cli.command {
        Command::Run(args) => run(&args),
        Command::Token(command) => token(command),
        Command::Openapi => openapi(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The whole grammar of the command line, for documents.
#[must_use]
pub fn command() -> clap::Command {
    Cli::command()
}

fn run(args: &Run) -> Result<(), Box<dyn Error>> {
    logs::start(args.log, args.log_level);
    rayon::ThreadPoolBuilder::new().num_threads(args.threads.unwrap_or(0).into()).build_global()?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let available =
        || fhe_host::memory::limit_bytes().into_iter().chain(fhe_host::memory::available_bytes()).min();
    let memory =
        args.memory.or_else(available).ok_or("the machine does not tell its memory: give --memory")?;
    let options = Options {
        programs: args.programs.clone(),
        listen: args.listen,
        store: args.store.store.clone(),
        memory,
        n_workers: args.workers.map_or((cores / 4).max(1), usize::from),
        tokens: args.tokens.clone().unwrap_or_else(|| args.store.tokens()),
        tls: args.tls_cert.clone().zip(args.tls_key.clone()),
        behind_proxy: args.behind_proxy,
        allow_insecure: args.insecure,
        page: args.page.clone().map(|folder| folder.map_or(PageSource::Own, PageSource::Folder)),
        limits: args.limits.limits(),
    };
    // Requests are little work beside evaluations, which have threads of their own.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let served = runtime.block_on(async {
        let stop = stop_signal()?;
        let server = Server::start(&options).await?;
        server.serve(stop).await;
        Ok(())
    });
    // A job that does not end is taken up by the next server.
    runtime.shutdown_timeout(Duration::from_secs(1));
    served
}

/// Done when the process is told to end.
fn stop_signal() -> std::io::Result<impl Future<Output = ()>> {
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

fn token(command: Token) -> Result<(), Box<dyn Error>> {
    match command {
        Token::Add { name, store, key_bytes, jobs, requests, days } => {
            std::fs::create_dir_all(&store.store)?;
            let mut tokens = Tokens::load(&store.tokens())?;
            let expires = days.map(|days| now() + u64::from(days) * 24 * 3600);
            let quota = Quota { key_bytes, queued_jobs: jobs, requests_per_minute: requests };
            let secret = tokens.add(name, quota, expires)?;
            tokens.save(&store.tokens())?;
            Ok(fhe_host::print(&format!("{secret}\n"))?)
        }
        Token::List { store } => {
            let tokens = Tokens::load(&store.tokens())?;
            let line = |token: &crate::tokens::Token| {
                let Quota { key_bytes, queued_jobs, requests_per_minute } = token.quota;
                let expiry = match token.expires {
                    None => "no expiry".to_owned(),
                    Some(_) if token.is_expired() => "EXPIRED".to_owned(),
                    Some(at) => format!("{} days left", at.saturating_sub(now()).div_ceil(24 * 3600)),
                };
                let keys = show_bytes(key_bytes);
                format!(
                    "{}\t{keys} of keys\t{queued_jobs} jobs\t{requests_per_minute} requests a minute\t{expiry}\n",
                    token.name
                )
            };
            Ok(fhe_host::print(&tokens.iter().map(line).collect::<String>())?)
        }
        Token::Remove { name, store } => {
            let mut tokens = Tokens::load(&store.tokens())?;
            tokens.remove(&name)?;
            Ok(tokens.save(&store.tokens())?)
        }
    }
}

fn openapi() -> Result<(), Box<dyn Error>> {
    Ok(fhe_host::print(&crate::http::document()?)?)
}
