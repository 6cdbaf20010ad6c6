//! Jobs as a gateway sees them: records and messages in NATS, inputs and results in the store.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use futures_util::{StreamExt, TryStreamExt, stream};
use tokio::sync::watch;

use super::follow::Followers;
use super::link::Link;
use super::members::running;
use super::names::{Work, input_name, result_name};
use super::objects::Objects;
use crate::backend::{Later, Queue};
use crate::ids::{JobRef, Owner};
use crate::jobs::{Job, JobState, NewJob, Submitted, now_ms, problem};
use crate::limits::Limits;
use crate::store::Staged;
use crate::store::whole::new_private;

/// Records that are read at a time.
const N_READS: usize = 16;

/// The jobs of a gateway.
#[derive(Clone)]
pub(super) struct GatewayQueue {
    link: Link,
    objects: Objects,
    followers: Followers,
    limits: Limits,
    /// A folder for inputs on their way; it goes with the gateway.
    staging: Arc<tempfile::TempDir>,
    n_inputs: Arc<AtomicU64>,
}

impl GatewayQueue {
    pub(super) fn new(link: Link, objects: Objects, limits: Limits) -> io::Result<Self> {
        let followers = Followers::default();
        tokio::spawn(followers.clone().run(link.clone()));
        let staging = Arc::new(tempfile::Builder::new().prefix("fhe-serve-").tempdir()?);
        Ok(Self { link, objects, followers, limits, staging, n_inputs: Arc::default() })
    }

    async fn submit_job(&self, new: NewJob) -> io::Result<Submitted> {
        let known = self.link.record(&new.at).await?;
        match known.as_ref().map(|record| record.job.state) {
            Some(JobState::Done | JobState::Running) => {
                return Ok(Submitted::Known(known.expect("matched above").job));
            }
            Some(JobState::Queued) => {
                // Its message may not have come through; if it has, this is the same one.
                let job = known.expect("matched above").job;
                return Ok(match self.publish(&new, &job).await? {
                    Some(()) => Submitted::Known(job),
                    None => Submitted::Full,
                });
            }
            Some(JobState::Failed | JobState::Cancelled) | None => {}
        }
        let (n_messages, most) = self.link.load().await?;
        if u64::try_from(most).is_ok_and(|most| n_messages >= most) {
            return Ok(Submitted::Full);
        }
        let of_owner = self.link.counts(self.link.names.of_owner(&new.at.owner)).await?;
        if of_owner.values().sum::<usize>() >= new.quota as usize {
            return Ok(Submitted::OverQuota);
        }
        self.objects.put(&input_name(&new.at), tokio::fs::read(&new.input).await?.into()).await?;
        let job = Job::new(new.at.id, new.key.program, new.key.key);
        let seen = known.map(|record| record.revision);
        if self.link.write(&new.at, &job, seen).await?.is_none() {
            // Another gateway has just accepted the same request.
            let job = self.link.record(&new.at).await?.map_or(job, |record| record.job);
            return Ok(Submitted::Known(job));
        }
        match self.publish(&new, &job).await? {
            Some(()) => Ok(Submitted::New(job)),
            None => {
                self.remove_all(&new.at).await?;
                Ok(Submitted::Full)
            }
        }
    }

    /// The message of a job: the same one for the same submission.
    async fn publish(&self, new: &NewJob, job: &Job) -> io::Result<Option<()>> {
        let id = format!("{}.{}.{}", new.at.owner, new.at.id, job.submitted_ms);
        self.link.publish(self.link.names.subject(&new.key), &Work::evaluate(&new.key, new.at.id), &id).await
    }

    async fn remove_all(&self, at: &JobRef) -> io::Result<()> {
        self.link.forget(at).await?;
        self.objects.remove(&input_name(at)).await?;
        self.objects.remove(&result_name(at)).await?;
        Ok(())
    }

    async fn jobs_of(&self, owner: Option<&Owner>) -> io::Result<Vec<(JobRef, Job)>> {
        let all = self.link.all_jobs(owner).await?;
        let read = stream::iter(all).map(|at| async move {
            let record = self.link.record(&at).await?;
            Ok::<_, io::Error>(record.map(|record| (at, record.job)))
        });
        let found: Vec<_> = read.buffered(N_READS).try_collect().await?;
        Ok(found.into_iter().flatten().collect())
    }

    /// Ends jobs that nobody will take any more, and throws away files whose jobs are forgotten.
    async fn sweep_all(&self) -> io::Result<usize> {
        let too_late = now_ms().saturating_sub(2 * self.limits.queue_wait.as_millis() as u64);
        for (at, job) in self.jobs_of(None).await? {
            if job.state == JobState::Queued && job.submitted_ms < too_late {
                let reason = problem("queue-timeout", "the job waited too long: the service is overloaded");
                self.link.change(&at, |job| job.ended(JobState::Failed, Some(reason.clone()))).await?;
            }
        }
        let mut n_removed = 0;
        for object in self.objects.list("jobs").await? {
            let age = SystemTime::now().duration_since(object.changed).unwrap_or_default();
            if age > self.limits.keep + 2 * self.limits.queue_wait {
                n_removed += usize::from(self.objects.remove(&object.name).await?);
            }
        }
        Ok(n_removed)
    }
}

impl Queue for GatewayQueue {
    fn stage_input(&self, _owner: &Owner) -> io::Result<(Staged, File)> {
        let path =
            self.staging.path().join(format!("input-{}", self.n_inputs.fetch_add(1, Ordering::Relaxed)));
        let file = new_private(&path)?;
        Ok((Staged::at(path), file))
    }

    fn submit(&self, new: NewJob) -> Later<'static, io::Result<Submitted>> {
        let this = self.clone();
        Box::pin(async move { this.submit_job(new).await })
    }

    fn get(&self, at: &JobRef) -> Later<'static, io::Result<Option<Job>>> {
        let (link, at) = (self.link.clone(), at.clone());
        Box::pin(async move { Ok(link.record(&at).await?.map(|record| record.job)) })
    }

    fn list(&self, owner: &Owner) -> Later<'static, io::Result<Vec<Job>>> {
        let (this, owner) = (self.clone(), owner.clone());
        Box::pin(
            async move { Ok(this.jobs_of(Some(&owner)).await?.into_iter().map(|(_, job)| job).collect()) },
        )
    }

    fn watch(&self, at: &JobRef) -> Later<'static, io::Result<Option<watch::Receiver<Job>>>> {
        let (this, at) = (self.clone(), at.clone());
        Box::pin(async move { this.followers.follow(&this.link, &at).await })
    }

    fn result(&self, at: &JobRef) -> Later<'static, io::Result<Vec<u8>>> {
        let (objects, name) = (self.objects.clone(), result_name(at));
        Box::pin(async move {
            let bytes = objects.get(&name).await?;
            Ok(bytes.ok_or_else(|| io::Error::other("the result is not in the store"))?.to_vec())
        })
    }

    fn cancel(&self, at: &JobRef) -> Later<'static, io::Result<()>> {
        let (link, at) = (self.link.clone(), at.clone());
        Box::pin(async move { link.change(&at, |job| job.ended(JobState::Cancelled, None)).await.map(drop) })
    }

    fn remove(&self, at: &JobRef) -> Later<'static, io::Result<()>> {
        let (this, at) = (self.clone(), at.clone());
        Box::pin(async move { this.remove_all(&at).await })
    }

    fn counts(&self) -> Later<'static, (usize, usize)> {
        let link = self.link.clone();
        Box::pin(async move {
            let n_messages = link.load().await.map_or(0, |(n_messages, _)| n_messages as usize);
            let n_running = running(&link).await.unwrap_or(0).min(n_messages);
            (n_messages - n_running, n_running)
        })
    }

    fn sweep(&self) -> Later<'static, io::Result<usize>> {
        let this = self.clone();
        Box::pin(async move { this.sweep_all().await })
    }

    fn drain(&self) {}

    fn wait_idle(&self, _patience: Duration) -> Later<'static, bool> {
        // What runs, runs elsewhere.
        Box::pin(async { true })
    }
}
