//! Records of jobs, in a bucket of NATS. Who changes one says which it has seen, so nobody undoes an end.

use std::io;

use async_nats::jetstream::kv::{CreateErrorKind, Operation, UpdateErrorKind};

use super::link::{Link, subjects};
use crate::ids::{JobRef, Owner};
use crate::jobs::Job;

/// A record, and which one of its kind it is.
pub(super) struct Record {
    pub job: Job,
    pub revision: u64,
}

fn name(at: &JobRef) -> String {
    format!("{}.{}", at.owner, at.id)
}

/// The job that a name in the bucket means.
pub(super) fn job_ref(name: &str) -> Option<JobRef> {
    let (owner, id) = name.split_once('.')?;
    Some(JobRef { owner: owner.parse().ok()?, id: id.parse().ok()? })
}

impl Link {
    /// A job's record, if there is one.
    pub(super) async fn record(&self, at: &JobRef) -> io::Result<Option<Record>> {
        let found = self.jobs.entry(name(at)).await.map_err(io::Error::other)?;
        match found.filter(|entry| entry.operation == Operation::Put) {
            Some(entry) => {
                Ok(Some(Record { job: serde_json::from_slice(&entry.value)?, revision: entry.revision }))
            }
            None => Ok(None),
        }
    }

    /// Writes a record in place of the one that was seen, or of none. Nothing if somebody else was faster.
    pub(super) async fn write(&self, at: &JobRef, job: &Job, seen: Option<u64>) -> io::Result<Option<u64>> {
        let bytes = serde_json::to_vec(job)?.into();
        match seen {
            Some(seen) => match self.jobs.update(name(at), bytes, seen).await {
                Ok(revision) => Ok(Some(revision)),
                Err(error) if error.kind() == UpdateErrorKind::WrongLastRevision => Ok(None),
                Err(error) => Err(io::Error::other(error)),
            },
            None => match self.jobs.create(name(at), bytes).await {
                Ok(revision) => Ok(Some(revision)),
                Err(error) if error.kind() == CreateErrorKind::AlreadyExists => Ok(None),
                Err(error) => Err(io::Error::other(error)),
            },
        }
    }

    /// Changes a job that is not at its end; gives what it is after that, or nothing if there is none.
    pub(super) async fn change(&self, at: &JobRef, change: impl Fn(Job) -> Job) -> io::Result<Option<Job>> {
        loop {
            let Some(record) = self.record(at).await? else { return Ok(None) };
            if record.job.state.is_final() {
                return Ok(Some(record.job));
            }
            let job = change(record.job);
            if self.write(at, &job, Some(record.revision)).await?.is_some() {
                return Ok(Some(job));
            }
        }
    }

    /// Throws a record away.
    pub(super) async fn forget(&self, at: &JobRef) -> io::Result<()> {
        self.jobs.purge(name(at)).await.map_err(io::Error::other)
    }

    /// The jobs of one client, or of all.
    pub(super) async fn all_jobs(&self, owner: Option<&Owner>) -> io::Result<Vec<JobRef>> {
        let prefix = format!("$KV.{}.", self.names.jobs());
        let filter = match owner {
            Some(owner) => format!("{prefix}{owner}.*"),
            None => format!("{prefix}>"),
        };
        let stream = self.jetstream.get_stream_no_info(format!("KV_{}", self.names.jobs())).await;
        let found = subjects(&stream.map_err(io::Error::other)?, filter).await?;
        Ok(found.keys().filter_map(|subject| job_ref(subject.strip_prefix(&prefix)?)).collect())
    }
}
