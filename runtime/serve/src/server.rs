//! The server as a whole: made from options, runs until it is told to end, ends in good order.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio_rustls::TlsAcceptor;

use crate::access::Access;
use crate::catalog::{Catalog, CatalogError};
use crate::http::{App, Page, PageSource, router};
use crate::jobs::{Evaluator, Jobs, Setup};
use crate::limits::Limits;
use crate::memory::Ledger;
use crate::metrics::Metrics;
use crate::store::{Store, StoreError};
use crate::tls::{self, TlsError};
use crate::tokens::TokenError;
use crate::uploads::Uploads;

/// How often old jobs and keys are thrown away.
const SWEEP_EVERY: Duration = Duration::from_secs(600);
/// Inputs that are checked at a time.
const N_CHECKS: usize = 2;

/// What a server is made from.
#[derive(Debug, Clone)]
pub struct Options {
    /// Programs to serve.
    pub programs: Vec<PathBuf>,
    /// Address to listen on.
    pub listen: SocketAddr,
    /// Folder of the store.
    pub store: PathBuf,
    /// Bytes for plaintexts, keys and evaluations.
    pub memory: u64,
    /// Evaluations at a time.
    pub n_workers: usize,
    /// The token file.
    pub tokens: PathBuf,
    /// Certificates and key for TLS.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// Whether a proxy in front does TLS.
    pub behind_proxy: bool,
    /// Whether programs below the security bar are served.
    pub allow_insecure: bool,
    /// A page to serve.
    pub page: Option<PageSource>,
    /// The bounds.
    pub limits: Limits,
}

/// Why a server does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// A program.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The tokens.
    #[error(transparent)]
    Tokens(#[from] TokenError),
    /// The certificates.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The counters.
    #[error(transparent)]
    Metrics(#[from] prometheus::Error),
    /// An address that others reach, and no token.
    #[error("others may reach {0}, and there is no token: add one with `fhe-serve token add`")]
    Open(SocketAddr),
    /// An address that others reach, and no encryption.
    #[error("{0} can be reached from other machines: give --tls-cert and --tls-key, or say --behind-proxy")]
    Plain(SocketAddr),
    /// The page.
    #[error("{source_of}: {cause}")]
    Page {
        /// Where it comes from.
        source_of: PageSource,
        /// What is wrong.
        #[source]
        cause: io::Error,
    },
    /// The operating system refused.
    #[error("{what}: {cause}")]
    Io {
        /// What it was asked for.
        what: String,
        /// What it said.
        #[source]
        cause: io::Error,
    },
}

/// A server that listens.
pub struct Server {
    app: Arc<App>,
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    threads: Vec<JoinHandle<()>>,
}

impl Server {
    /// Loads programs, opens the store, takes up what an earlier server left, and listens.
    ///
    /// # Errors
    /// What is missing.
    pub async fn start(options: &Options) -> Result<Self, ServerError> {
        Self::start_with(options, None).await
    }

    /// The same with another way to evaluate, for tests.
    ///
    /// # Errors
    /// What is missing.
    pub async fn start_with(
        options: &Options,
        evaluator: Option<Box<Evaluator>>,
    ) -> Result<Self, ServerError> {
        let is_local = options.listen.ip().is_loopback();
        let tls = match &options.tls {
            Some((certificates, key)) => Some(tls::acceptor(certificates, key)?),
            None if !is_local && !options.behind_proxy => return Err(ServerError::Plain(options.listen)),
            None => None,
        };
        let store = Arc::new(Store::open(&options.store)?);
        let access = Access::new(&options.tokens, is_local && !options.behind_proxy)?;
        if (!is_local || options.behind_proxy) && !access.has_tokens() {
            return Err(ServerError::Open(options.listen));
        }
        let page = match &options.page {
            Some(source) => Some(
                Page::of(source).map_err(|cause| ServerError::Page { source_of: source.clone(), cause })?,
            ),
            None => None,
        };
        let Options { memory, n_workers, limits, .. } = *options;
        let catalog = Arc::new(Catalog::load(&options.programs, memory, n_workers, options.allow_insecure)?);
        let ledger = Ledger::new(catalog.capacity(memory));
        let metrics = Arc::new(Metrics::new()?);
        let setup = Setup {
            catalog: Arc::clone(&catalog),
            store: Arc::clone(&store),
            ledger: Arc::clone(&ledger),
            metrics: Arc::clone(&metrics),
            limits,
        };
        let jobs = match evaluator {
            Some(evaluator) => Jobs::with_evaluator(setup, evaluator),
            None => Jobs::new(setup),
        };
        let uploads =
            Uploads::new(Arc::clone(&catalog), Arc::clone(&store), Arc::clone(&ledger), Arc::clone(&metrics));
        let io = |what: &str| {
            let what = what.to_owned();
            move |cause| ServerError::Io { what, cause }
        };
        uploads.recover().map_err(io("the store"))?;
        let n_resumed = jobs.recover().map_err(io("the store"))?;
        let listener = TcpListener::bind(options.listen)
            .await
            .map_err(io(&format!("cannot listen on {}", options.listen)))?;
        let mut threads = jobs.start(n_workers).map_err(io("threads"))?;
        threads.push(uploads.start().map_err(io("threads"))?);
        let app = App {
            catalog,
            store,
            ledger,
            jobs,
            uploads,
            access,
            metrics,
            limits,
            page,
            is_draining: AtomicBool::new(false),
            n_connections: AtomicUsize::new(0),
            checks: Semaphore::new(N_CHECKS),
        };
        let server = Self { app: Arc::new(app), listener, tls, threads };
        let (address, keys) = (server.address().ok(), server.app.ledger.capacity());
        let plaintexts = server.app.catalog.plaintext_bytes();
        tracing::info!(
            ?address,
            n_programs = options.programs.len(),
            n_workers,
            n_resumed,
            plaintexts,
            keys,
            "listening"
        );
        Ok(server)
    }

    /// The address that it listens on.
    ///
    /// # Errors
    /// If the operating system does not tell.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// What requests see, for tests.
    pub fn app(&self) -> &Arc<App> {
        &self.app
    }

    /// Serves until `stop` is done; then takes nothing more, lets running jobs end, and gives their threads back. Jobs that
    /// wait stay in the store for the next server.
    pub async fn serve(self, stop: impl Future<Output = ()>) {
        let Self { app, listener, tls, threads } = self;
        let routes = router(Arc::clone(&app));
        let room = Arc::new(Semaphore::new(app.limits.connections));
        let (ending, ended) = watch::channel(false);
        let sweeper = tokio::spawn(sweep(Arc::clone(&app)));
        let mut stop = pin!(stop);
        loop {
            let permit = tokio::select! {
                () = &mut stop => break,
                permit = Arc::clone(&room).acquire_owned() => permit,
            };
            let stream = tokio::select! {
                () = &mut stop => break,
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => stream,
                    Err(error) => {
                        // Most often too many open files: others have to close first.
                        tracing::warn!(%error, "cannot accept a connection");
                        tokio::time::sleep(Duration::from_millis(50)).await;
                        continue;
                    }
                },
            };
            let (app, routes, tls, ended) = (Arc::clone(&app), routes.clone(), tls.clone(), ended.clone());
            tokio::spawn(async move {
                app.n_connections.fetch_add(1, Ordering::Relaxed);
                connection(stream, tls, routes, &app.limits, ended).await;
                app.n_connections.fetch_sub(1, Ordering::Relaxed);
                drop(permit);
            });
        }
        tracing::info!("ending: running jobs go on, nothing new is taken");
        app.is_draining.store(true, Ordering::Relaxed);
        app.jobs.drain();
        app.uploads.drain();
        drop(listener);
        let patience = app.limits.drain;
        let jobs = Arc::clone(&app.jobs);
        let is_idle = tokio::task::spawn_blocking(move || jobs.wait_idle(patience)).await.unwrap_or(false);
        // Those who waited for a job have their answer on its way.
        let _ = ending.send(true);
        let all = u32::try_from(app.limits.connections).unwrap_or(u32::MAX);
        let _ = tokio::time::timeout(Duration::from_secs(5), room.acquire_many(all)).await;
        sweeper.abort();
        if is_idle {
            let _ = tokio::task::spawn_blocking(move || {
                threads.into_iter().for_each(|thread| drop(thread.join()))
            })
            .await;
        }
        tracing::info!(is_idle, "ended");
    }
}

/// One connection, with a deadline for every head and for the handshake.
async fn connection(
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    routes: Router,
    limits: &Limits,
    ended: watch::Receiver<bool>,
) {
    // Small answers do not wait for more.
    let _ = stream.set_nodelay(true);
    match tls {
        None => talk(stream, routes, limits, ended).await,
        Some(tls) => match tokio::time::timeout(limits.head, tls.accept(stream)).await {
            Ok(Ok(stream)) => talk(stream, routes, limits, ended).await,
            Ok(Err(error)) => tracing::debug!(%error, "no handshake"),
            Err(_) => tracing::debug!("no handshake in time"),
        },
    }
}

async fn talk(
    stream: impl AsyncRead + AsyncWrite + Unpin + 'static,
    routes: Router,
    limits: &Limits,
    mut ended: watch::Receiver<bool>,
) {
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(limits.head).max_buf_size(64 << 10);
    let mut talk = pin!(builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(routes)));
    let is_over = tokio::select! {
        result = talk.as_mut() => Some(result),
        _ = ended.wait_for(|ended| *ended) => None,
    };
    let result = match is_over {
        Some(result) => result,
        None => {
            talk.as_mut().graceful_shutdown();
            talk.await
        }
    };
    if let Err(error) = result {
        tracing::debug!(%error, "a connection broke");
    }
}

/// Throws away what is old, for as long as the server runs.
async fn sweep(app: Arc<App>) {
    loop {
        tokio::time::sleep(SWEEP_EVERY).await;
        let app = Arc::clone(&app);
        let swept = tokio::task::spawn_blocking(move || {
            app.uploads.sweep()?;
            app.jobs.sweep()
        });
        match swept.await {
            Ok(Ok(n_removed)) => tracing::info!(n_removed, "old jobs removed"),
            Ok(Err(error)) => tracing::error!(%error, "the store failed"),
            Err(error) => tracing::error!(%error, "sweeping stopped"),
        }
    }
}
