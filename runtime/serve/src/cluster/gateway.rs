//! A gateway: the same contract as on one machine, over NATS and the store.

use std::sync::Arc;

use super::ClusterError;
use super::keys::GatewayKeys;
use super::link::{Link, Place, Room};
use super::objects::Objects;
use super::programs;
use super::queue::GatewayQueue;
use crate::catalog::Catalog;
use crate::front::Front;
use crate::memory::Ledger;
use crate::metrics::Metrics;
use crate::server::{Backend, Server, ServerError};

/// What a gateway is made from.
#[derive(Clone, Debug)]
pub struct GatewayOptions {
    /// Where it meets the workers.
    pub place: Place,
    /// Whether programs below the security bar are served.
    pub allow_insecure: bool,
    /// Copies of the queue that a cluster of NATS keeps.
    pub n_replicas: usize,
    /// What clients meet.
    pub front: Front,
}

/// A gateway that listens.
///
/// # Errors
/// What is missing.
pub async fn gateway(options: &GatewayOptions) -> Result<Server, ClusterError> {
    let front = options.front.prepare()?;
    let limits = front.limits;
    let objects = Objects::open(&options.place.store)?;
    let files = programs(&objects).await?;
    if files.is_empty() {
        return Err(ClusterError::Empty(options.place.store.clone()));
    }
    let catalog = Arc::new(Catalog::outlines(&files, options.allow_insecure)?);
    let room = Room { queue: limits.queue, keep: limits.keep, n_replicas: options.n_replicas };
    let link = Link::open(&options.place, Some(room)).await?;
    let failed = |error: std::io::Error| objects.failed(&error);
    let queue = GatewayQueue::new(link.clone(), objects.clone(), limits).map_err(failed)?;
    let keys = GatewayKeys::new(link, objects.clone(), Arc::clone(&catalog), queue.clone());
    let metrics = Arc::new(Metrics::new().map_err(ServerError::from)?);
    let backend =
        Backend { catalog, ledger: Ledger::new(0), metrics, queue: Arc::new(queue), keys: Arc::new(keys) };
    let listener = front.listen().await?;
    Ok(Server::over(front, listener, backend, Vec::new()))
}
