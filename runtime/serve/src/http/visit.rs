//! A client that submits a job and may wait for it: if it goes away meanwhile, so does a job that is its own.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;

use super::App;
use crate::ids::JobRef;
use crate::jobs::{Job, NewJob, Submitted};
use crate::store::Staged;

/// One request with a job, which is dropped when its client goes away.
pub(super) struct Visit {
    app: Arc<App>,
    at: JobRef,
    /// How long the client waits for the job's end.
    wait: Duration,
    /// Goes on by itself, so that no job is accepted half-way.
    submission: Option<JoinHandle<io::Result<Submitted>>>,
    /// Whether the job is this client's own, and the client waits for it.
    is_armed: bool,
}

impl Visit {
    pub(super) fn submit(app: Arc<App>, at: JobRef, new: NewJob, staged: Staged, wait: Duration) -> Self {
        let submit = app.queue.submit(new);
        let submission = tokio::spawn(async move {
            let submitted = submit.await;
            drop(staged);
            submitted
        });
        Self { app, at, wait, submission: Some(submission), is_armed: false }
    }

    /// What became of the job.
    pub(super) async fn submitted(&mut self) -> io::Result<Submitted> {
        let Some(submission) = self.submission.as_mut() else { return Err(io::Error::other("asked twice")) };
        let submitted = submission.await.map_err(io::Error::other)?;
        self.submission = None;
        self.is_armed = !self.wait.is_zero() && matches!(submitted, Ok(Submitted::New(_)));
        submitted
    }

    /// The job at its end, or after the time that the client waits.
    pub(super) async fn waited(mut self, job: Job) -> io::Result<Job> {
        if self.wait.is_zero() {
            return Ok(job);
        }
        if let Some(mut view) = self.app.queue.watch(&self.at).await? {
            // Whether it ended or the time did, the job says.
            let _ = tokio::time::timeout(self.wait, view.wait_for(|job| job.state.is_final())).await;
        }
        self.is_armed = false;
        Ok(self.app.queue.get(&self.at).await?.unwrap_or(job))
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        let submission = self.submission.take().filter(|_| !self.wait.is_zero());
        if submission.is_none() && !self.is_armed {
            return;
        }
        let (app, at) = (Arc::clone(&self.app), self.at.clone());
        tokio::spawn(async move {
            if let Some(submission) = submission
                && !matches!(submission.await, Ok(Ok(Submitted::New(_))))
            {
                return;
            }
            tracing::info!(job = %at.id, "the client went away");
            app.metrics.refused("client-gone");
            if let Err(error) = app.queue.cancel(&at).await {
                tracing::error!(job = %at.id, %error, "cannot write a job's end");
            }
        });
    }
}
