//! A worker: reserves memory, takes a message, does what it says, acknowledges. As many at a time as it has room for.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use axum::routing::get;
use futures_util::StreamExt;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::link::{Link, Place};
use super::members::Member;
use super::objects::Objects;
use super::pull::Puller;
use super::{ClusterError, programs};
use crate::catalog::Catalog;
use crate::jobs::{Evaluator, evaluate};
use crate::memory::{Hold, Ledger};
use crate::metrics::{Metrics, Now};
use crate::server::ServerError;

/// Time between two looks at the queue when nothing came and nobody said a word.
const LOOK: Duration = Duration::from_secs(1);

/// What a worker is made from.
#[derive(Clone, Debug)]
pub struct WorkerOptions {
    /// Where it meets the gateways.
    pub place: Place,
    /// Bytes for plaintexts, keys and evaluations.
    pub memory: u64,
    /// Evaluations at a time.
    pub n_slots: usize,
    /// Whether programs below the security bar are evaluated.
    pub allow_insecure: bool,
    /// Jobs that wait for another worker before this one helps it.
    pub overflow: usize,
    /// Times that a job is begun before it is given up.
    pub n_deliveries: u32,
    /// Time without a word after which a job goes to another worker.
    pub ack: Duration,
    /// Time that a job may wait.
    pub queue_wait: Duration,
    /// Time that a job may run.
    pub job: Duration,
    /// Time for running jobs at the end.
    pub drain: Duration,
    /// Address for those who look after it.
    pub metrics: Option<SocketAddr>,
}

/// Everything that slots share.
pub(super) struct Shared {
    pub options: WorkerOptions,
    pub link: Link,
    pub objects: Objects,
    pub catalog: Catalog,
    pub ledger: Arc<Ledger>,
    pub metrics: Metrics,
    pub member: Member,
    puller: Puller,
    pub evaluator: Box<Evaluator>,
    is_ending: AtomicBool,
}

/// Works until `stop` is done; then takes nothing more and lets running jobs end. With another way to evaluate for tests.
///
/// # Errors
/// Why it does not start.
pub async fn work(
    options: WorkerOptions,
    evaluator: Option<Box<Evaluator>>,
    stop: impl Future<Output = ()>,
) -> Result<(), ClusterError> {
    let objects = Objects::open(&options.place.store)?;
    let files = programs(&objects).await?;
    if files.is_empty() {
        return Err(ClusterError::Empty(options.place.store.clone()));
    }
    let catalog = Catalog::of_files(&files, options.memory, options.n_slots, options.allow_insecure)?;
    let ledger = Ledger::new(catalog.capacity(options.memory));
    let link = Link::open(&options.place, None).await?;
    let nats = |error: &dyn std::error::Error| ClusterError::Nats {
        url: options.place.nats.clone(),
        cause: error.to_string(),
    };
    let member = Member::join(&link, options.n_slots).await.map_err(|error| nats(&error))?;
    let mut hints = link.client.subscribe(link.names.wake()).await.map_err(|error| nats(&error))?;
    let metrics = Metrics::new().map_err(ServerError::from)?;
    let evaluator = evaluator.unwrap_or_else(|| Box::new(evaluate));
    let n_slots = options.n_slots;
    let puller =
        Puller::new(link.clone(), member.clone(), Arc::clone(&ledger), options.overflow, options.ack);
    let shared = Arc::new(Shared {
        options,
        link,
        objects,
        catalog,
        ledger,
        metrics,
        member,
        puller,
        evaluator,
        is_ending: AtomicBool::new(false),
    });
    tokio::spawn(shared.member.clone().run(shared.link.clone()));
    if let Some(address) = shared.options.metrics {
        look_after(Arc::clone(&shared), address).await?;
    }
    let (wake, woken) = watch::channel(0_u64);
    let mut slots = JoinSet::new();
    for _ in 0..n_slots {
        slots.spawn(Arc::clone(&shared).slot(woken.clone()));
    }
    let (keys, n_programs) = (shared.ledger.capacity(), files.len());
    tracing::info!(n_slots, n_programs, keys, "working");
    let mut stop = pin!(stop);
    loop {
        tokio::select! {
            () = &mut stop => break,
            hint = hints.next() => match hint {
                Some(hint) => {
                    shared.puller.heard(&hint.payload);
                    wake.send_modify(|n| *n += 1);
                }
                None => break,
            },
        }
    }
    tracing::info!("ending: running jobs go on, nothing new is taken");
    shared.is_ending.store(true, Ordering::Relaxed);
    shared.member.leave(&shared.link).await;
    wake.send_modify(|n| *n += 1);
    let all = async { while slots.join_next().await.is_some() {} };
    let is_idle = tokio::time::timeout(shared.options.drain, all).await.is_ok();
    // What is not acknowledged goes to another worker.
    let _ = tokio::time::timeout(Duration::from_secs(2), shared.link.client.flush()).await;
    tracing::info!(is_idle, "ended");
    Ok(())
}

impl Shared {
    /// One evaluation after the other.
    async fn slot(self: Arc<Self>, mut woken: watch::Receiver<u64>) {
        while !self.is_ending.load(Ordering::Relaxed) {
            let hold = self.hold().await;
            woken.mark_unchanged();
            match self.puller.next().await {
                Ok(Some((partition, message))) => {
                    self.member.n_running.fetch_add(1, Ordering::Relaxed);
                    if let Err(error) = self.handle(&message, hold).await {
                        tracing::error!(%error, "a job goes to the next worker");
                    }
                    self.member.n_running.fetch_sub(1, Ordering::Relaxed);
                    self.puller.ended(partition);
                    continue;
                }
                Ok(None) => {}
                Err(error) => tracing::warn!(%error, "NATS failed; trying again"),
            }
            drop(hold);
            let _ = tokio::time::timeout(LOOK, woken.changed()).await;
        }
    }

    /// Memory for the largest thing that a message may ask for.
    async fn hold(&self) -> Hold {
        let largest = self.catalog.iter().map(|entry| entry.key_bytes + entry.model.working_bytes()).max();
        loop {
            if let Some(hold) = self.ledger.hold(largest.unwrap_or(0)) {
                return hold;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    fn now(&self) -> Now {
        let running = self.member.n_running.load(Ordering::Relaxed) as u64;
        Now { running, ..Now::of(&self.ledger, &self.catalog) }
    }
}

/// Answers those who look after the worker.
async fn look_after(shared: Arc<Shared>, address: SocketAddr) -> Result<(), ClusterError> {
    let failed = |cause| ServerError::Io { what: format!("cannot listen on {address}"), cause };
    let listener = tokio::net::TcpListener::bind(address).await.map_err(failed)?;
    let routes =
        Router::new().route("/healthz", get(alive)).route("/metrics", get(metrics)).with_state(shared);
    tokio::spawn(async move { axum::serve(listener, routes).await });
    Ok(())
}

async fn alive() -> &'static str {
    "ok\n"
}

async fn metrics(State(shared): State<Arc<Shared>>) -> impl IntoResponse {
    let text = shared.metrics.text(&shared.now()).unwrap_or_default();
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text)
}
