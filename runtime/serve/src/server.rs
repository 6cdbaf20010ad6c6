//! The server as a whole: made from options, runs until it is told to end, ends in good order.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio_rustls::TlsAcceptor;

use crate::backend::{KeyStore, Queue};
use crate::catalog::{Catalog, CatalogError};
use crate::connection::connection;
use crate::front::{Front, Ready};
use crate::http::{App, PageSource, router};
use crate::jobs::{Evaluator, Jobs, Setup};
use crate::machine::Machine;
use crate::memory::Ledger;
use crate::metrics::Metrics;
use crate::store::{Store, StoreError};
use crate::tls::TlsError;
use crate::tokens::TokenError;
use crate::uploads::Uploads;

/// How often old jobs and keys are thrown away.
const SWEEP_EVERY: Duration = Duration::from_secs(600);
/// Inputs that are checked at a time.
const N_CHECKS: usize = 2;

/// What a server on one machine is made from.
#[derive(Debug, Clone)]
pub struct Options {
    /// Programs to serve.
    pub programs: Vec<PathBuf>,
    /// Folder of the store.
    pub store: PathBuf,
    /// Bytes for plaintexts, keys and evaluations.
    pub memory: u64,
    /// Evaluations at a time.
    pub n_workers: usize,
    /// Whether programs below the security bar are served.
    pub allow_insecure: bool,
    /// What clients meet.
    pub front: Front,
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

/// Those who do the work.
pub(crate) struct Backend {
    pub catalog: Arc<Catalog>,
    pub ledger: Arc<Ledger>,
    pub metrics: Arc<Metrics>,
    pub queue: Arc<dyn Queue>,
    pub keys: Arc<dyn KeyStore>,
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
        let front = options.front.prepare()?;
        let store = Arc::new(Store::open(&options.store)?);
        let Options { memory, n_workers, .. } = *options;
        let catalog = Arc::new(Catalog::load(&options.programs, memory, n_workers, options.allow_insecure)?);
        let ledger = Ledger::new(catalog.capacity(memory));
        let metrics = Arc::new(Metrics::new()?);
        let setup = Setup {
            catalog: Arc::clone(&catalog),
            store: Arc::clone(&store),
            ledger: Arc::clone(&ledger),
            metrics: Arc::clone(&metrics),
            limits: front.limits,
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
        let listener = front.listen().await?;
        let mut threads = jobs.start(n_workers).map_err(io("threads"))?;
        threads.push(uploads.start().map_err(io("threads"))?);
        let (plaintexts, keys) = (catalog.plaintext_bytes(), ledger.capacity());
        tracing::info!(n_workers, n_resumed, plaintexts, keys, "one machine");
        let machine = Arc::new(Machine { jobs, uploads, store, ledger: Arc::clone(&ledger) });
        let backend = Backend { catalog, ledger, metrics, queue: machine.clone(), keys: machine };
        Ok(Self::over(front, listener, backend, threads))
    }

    /// A server over those who do the work.
    pub(crate) fn over(
        front: Ready,
        listener: TcpListener,
        backend: Backend,
        threads: Vec<JoinHandle<()>>,
    ) -> Self {
        let Backend { catalog, ledger, metrics, queue, keys } = backend;
        let n_programs = catalog.iter().count();
        let app = App {
            catalog,
            ledger,
            queue,
            keys,
            access: front.access,
            metrics,
            limits: front.limits,
            page: front.page,
            is_draining: AtomicBool::new(false),
            n_connections: AtomicUsize::new(0),
            checks: Semaphore::new(N_CHECKS),
        };
        let server = Self { app: Arc::new(app), listener, tls: front.tls, threads };
        tracing::info!(address = ?server.address().ok(), n_programs, "listening");
        server
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
        app.queue.drain();
        app.keys.drain();
        drop(listener);
        let is_idle = app.queue.wait_idle(app.limits.drain).await;
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

/// Throws away what is old, for as long as the server runs.
async fn sweep(app: Arc<App>) {
    loop {
        tokio::time::sleep(SWEEP_EVERY).await;
        let swept = async {
            app.keys.sweep().await?;
            app.queue.sweep().await
        };
        match swept.await {
            Ok(n_removed) => tracing::info!(n_removed, "old jobs removed"),
            Err(error) => tracing::error!(%error, "the store failed"),
        }
    }
}
