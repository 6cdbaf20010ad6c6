//! One machine: queue, keys and workers in this process, over a folder.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use tokio::io::AsyncWriteExt;
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout_at};

use crate::backend::{KeyStore, Later, NoUpload, Queue, Sink, Upload};
use crate::catalog::Entry;
use crate::ids::{JobRef, KeyRef, Owner};
use crate::jobs::{Job, Jobs, NewJob, Problem, Submitted};
use crate::memory::Ledger;
use crate::store::{Staged, Store};
use crate::uploads::{KeyState, Keys, Uploads, Writing};

/// Everything of a server that uses one machine.
#[derive(Clone)]
pub(crate) struct Machine {
    pub jobs: Arc<Jobs>,
    pub uploads: Arc<Uploads>,
    pub store: Arc<Store>,
    pub ledger: Arc<Ledger>,
}

/// Runs what waits for a disk or a lock where it holds nobody up.
fn blocking<T: Send + 'static, E: From<io::Error> + Send + 'static>(
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Later<'static, Result<T, E>> {
    Box::pin(
        async move { spawn_blocking(work).await.unwrap_or_else(|error| Err(io::Error::other(error).into())) },
    )
}

impl Queue for Machine {
    fn stage_input(&self, owner: &Owner) -> io::Result<(Staged, File)> {
        self.store.stage_input(owner)
    }

    fn submit(&self, new: NewJob) -> Later<'static, io::Result<Submitted>> {
        let jobs = Arc::clone(&self.jobs);
        blocking(move || jobs.submit(new))
    }

    fn get(&self, at: &JobRef) -> Later<'static, io::Result<Option<Job>>> {
        let (jobs, at) = (Arc::clone(&self.jobs), at.clone());
        blocking(move || jobs.get(&at))
    }

    fn list(&self, owner: &Owner) -> Later<'static, io::Result<Vec<Job>>> {
        let (jobs, owner) = (Arc::clone(&self.jobs), owner.clone());
        blocking(move || jobs.list(&owner))
    }

    fn watch(&self, at: &JobRef) -> Later<'static, io::Result<Option<watch::Receiver<Job>>>> {
        let view = self.jobs.watch(at);
        Box::pin(async move { Ok(view) })
    }

    fn result(&self, at: &JobRef) -> Later<'static, io::Result<Vec<u8>>> {
        let path = self.store.result_path(at);
        blocking(move || std::fs::read(path))
    }

    fn cancel(&self, at: &JobRef) -> Later<'static, io::Result<()>> {
        let (jobs, at) = (Arc::clone(&self.jobs), at.clone());
        blocking(move || jobs.cancel(&at, None).map(drop))
    }

    fn remove(&self, at: &JobRef) -> Later<'static, io::Result<()>> {
        let (store, at) = (Arc::clone(&self.store), at.clone());
        blocking(move || store.remove_job(&at).map(drop))
    }

    fn counts(&self) -> Later<'static, (usize, usize)> {
        let counts = self.jobs.counts();
        Box::pin(async move { counts })
    }

    fn sweep(&self) -> Later<'static, io::Result<usize>> {
        let jobs = Arc::clone(&self.jobs);
        blocking(move || jobs.sweep())
    }

    fn drain(&self) {
        self.jobs.drain();
    }

    fn wait_idle(&self, patience: Duration) -> Later<'static, bool> {
        let jobs = Arc::clone(&self.jobs);
        Box::pin(async move { spawn_blocking(move || jobs.wait_idle(patience)).await.unwrap_or(false) })
    }
}

impl KeyStore for Machine {
    fn is_ready(&self, at: &KeyRef) -> Later<'static, io::Result<bool>> {
        let is_ready = self.store.keys_len(at).is_some();
        Box::pin(async move { Ok(is_ready) })
    }

    fn get(
        &self,
        entry: &Arc<Entry>,
        at: &KeyRef,
        wait: Duration,
    ) -> Later<'static, io::Result<Option<Keys>>> {
        let (uploads, entry, at) = (Arc::clone(&self.uploads), Arc::clone(entry), at.clone());
        Box::pin(async move {
            let mut checks = uploads.watch();
            let ends = Instant::now() + wait;
            loop {
                let keys = uploads.get(&entry, &at);
                if keys.as_ref().is_none_or(|keys| keys.state != KeyState::Checking) {
                    return Ok(keys);
                }
                match timeout_at(ends, checks.changed()).await {
                    Ok(Ok(())) => {}
                    Ok(Err(_)) | Err(_) => return Ok(uploads.get(&entry, &at)),
                }
            }
        })
    }

    fn list(&self, owner: &Owner) -> Later<'static, io::Result<Vec<Keys>>> {
        let (uploads, owner) = (Arc::clone(&self.uploads), owner.clone());
        blocking(move || uploads.list(&owner))
    }

    fn bytes_of(&self, owner: &Owner, besides: &KeyRef) -> Later<'static, io::Result<u64>> {
        let (uploads, owner, besides) = (Arc::clone(&self.uploads), owner.clone(), besides.clone());
        blocking(move || uploads.bytes_of(&owner, &besides))
    }

    fn begin(
        &self,
        _entry: &Arc<Entry>,
        at: &KeyRef,
        first: u64,
    ) -> Later<'static, Result<Box<dyn Upload>, NoUpload>> {
        let (machine, at) = (self.clone(), at.clone());
        blocking(move || {
            let writing = machine.uploads.begin(&at).ok_or(NoUpload::Busy)?;
            if machine.store.keys_len(&at).is_some() {
                return Err(NoUpload::Exists);
            }
            let so_far = machine.store.staged_len(&at).unwrap_or(0);
            if first != 0 && first != so_far {
                return Err(NoUpload::WrongOffset(so_far));
            }
            let file = tokio::fs::File::from_std(machine.store.stage_keys(&at, first)?);
            Ok(Box::new(Sending { uploads: machine.uploads, at, file, writing }) as Box<dyn Upload>)
        })
    }

    fn remove(&self, at: &KeyRef) -> Later<'static, Result<bool, NoUpload>> {
        let (machine, at) = (self.clone(), at.clone());
        blocking(move || {
            let _writing = machine.uploads.begin(&at).ok_or(NoUpload::Busy)?;
            machine.jobs.cancel_all_of(&at)?;
            let was_there = machine.store.remove_keys(&at)?;
            machine.ledger.forget(&at);
            Ok(was_there)
        })
    }

    fn sweep(&self) -> Later<'static, io::Result<()>> {
        let uploads = Arc::clone(&self.uploads);
        blocking(move || uploads.sweep())
    }

    fn drain(&self) {
        self.uploads.drain();
    }
}

/// Keys that are being written to their file.
struct Sending {
    uploads: Arc<Uploads>,
    at: KeyRef,
    file: tokio::fs::File,
    writing: Writing,
}

impl Sink for Sending {
    fn write(&mut self, bytes: Bytes) -> Later<'_, io::Result<()>> {
        Sink::write(&mut self.file, bytes)
    }
}

impl Upload for Sending {
    fn keep(mut self: Box<Self>) -> Later<'static, io::Result<()>> {
        Box::pin(async move { self.file.flush().await })
    }

    fn complete(mut self: Box<Self>) -> Later<'static, io::Result<()>> {
        Box::pin(async move {
            self.file.flush().await?;
            self.uploads.complete(&self.at);
            drop(self.writing);
            Ok(())
        })
    }

    fn refuse(self: Box<Self>, reason: Problem) -> Later<'static, io::Result<()>> {
        blocking(move || {
            self.uploads.refuse(&self.at, reason);
            Ok(())
        })
    }
}
