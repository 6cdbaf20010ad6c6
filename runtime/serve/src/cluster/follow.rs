//! Those who wait for jobs at a gateway: one watch of all records, told on to whoever follows one of them.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_nats::jetstream::kv::Operation;
use futures_util::StreamExt;
use tokio::sync::watch;
use tokio::time::timeout;

use super::link::Link;
use super::records::job_ref;
use crate::ids::JobRef;
use crate::jobs::Job;

/// Time after which followed jobs are looked at whatever the watch says: it may have missed something.
const LOOK: Duration = Duration::from_secs(3);

/// Jobs that somebody follows.
#[derive(Clone, Default)]
pub(super) struct Followers(Arc<Mutex<BTreeMap<JobRef, watch::Sender<Job>>>>);

impl Followers {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<JobRef, watch::Sender<Job>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Follows a job; nothing if there is none or it is at its end.
    pub(super) async fn follow(&self, link: &Link, at: &JobRef) -> io::Result<Option<watch::Receiver<Job>>> {
        let Some(record) = link.record(at).await? else { return Ok(None) };
        let view = {
            let mut all = self.lock();
            let sender = all.entry(at.clone()).or_insert_with(|| watch::Sender::new(record.job.clone()));
            sender.subscribe()
        };
        // It may have ended between the look and the entry, and then nobody would say so.
        let now = link.record(at).await?.map_or(record.job, |record| record.job);
        self.tell(at, now);
        Ok(Some(view))
    }

    fn tell(&self, at: &JobRef, job: Job) {
        let mut all = self.lock();
        let Some(sender) = all.get(at) else { return };
        let is_over = job.state.is_final() || sender.receiver_count() == 0;
        sender.send_if_modified(|known| {
            let is_new = *known != job;
            *known = job;
            is_new
        });
        if is_over {
            all.remove(at);
        }
    }

    /// Tells followers of every change, for as long as the gateway runs.
    pub(super) async fn run(self, link: Link) {
        loop {
            if let Err(error) = self.listen(&link).await {
                tracing::warn!(%error, "NATS failed; trying again");
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
        }
    }

    async fn listen(&self, link: &Link) -> io::Result<()> {
        let mut changes = link.jobs.watch_all().await.map_err(io::Error::other)?;
        loop {
            match timeout(LOOK, changes.next()).await {
                Ok(Some(Ok(entry))) if entry.operation == Operation::Put => {
                    if let (Some(at), Ok(job)) = (job_ref(&entry.key), serde_json::from_slice(&entry.value)) {
                        self.tell(&at, job);
                    }
                }
                Ok(Some(Ok(_))) => {}
                Ok(Some(Err(error))) => return Err(io::Error::other(error)),
                Ok(None) => return Ok(()),
                Err(_) => self.look(link).await?,
            }
        }
    }

    async fn look(&self, link: &Link) -> io::Result<()> {
        let followed: Vec<JobRef> = self.lock().keys().cloned().collect();
        for at in followed {
            match link.record(&at).await? {
                Some(record) => self.tell(&at, record.job),
                None => drop(self.lock().remove(&at)),
            }
        }
        Ok(())
    }
}
