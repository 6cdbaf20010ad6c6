//! What the contract needs of those who do the work: a queue of jobs and a place for keys, on this machine ([`crate::machine`])
//! or on many (`cluster`). Requests know these traits and nothing behind them.

use std::fs::File;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use tokio::sync::watch;

use crate::catalog::Entry;
use crate::ids::{JobRef, KeyRef, Owner};
use crate::jobs::{Job, NewJob, Problem, Submitted};
use crate::store::Staged;
use crate::uploads::Keys;

/// What is there later.
pub type Later<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Jobs of all clients.
pub trait Queue: Send + Sync {
    /// A new file for an encrypted input on its way.
    ///
    /// # Errors
    /// If it cannot be made.
    fn stage_input(&self, owner: &Owner) -> io::Result<(Staged, File)>;

    /// Accepts a job, unless it is known or there is no room. An accepted job is not lost.
    fn submit(&self, new: NewJob) -> Later<'static, io::Result<Submitted>>;

    /// A job, if there is one.
    fn get(&self, at: &JobRef) -> Later<'static, io::Result<Option<Job>>>;

    /// All jobs of one client.
    fn list(&self, owner: &Owner) -> Later<'static, io::Result<Vec<Job>>>;

    /// Follows a job that waits or runs.
    fn watch(&self, at: &JobRef) -> Later<'static, io::Result<Option<watch::Receiver<Job>>>>;

    /// The encrypted result of a job that is done.
    fn result(&self, at: &JobRef) -> Later<'static, io::Result<Vec<u8>>>;

    /// Ends a job that waits or runs.
    fn cancel(&self, at: &JobRef) -> Later<'static, io::Result<()>>;

    /// Throws away a job that is at its end.
    fn remove(&self, at: &JobRef) -> Later<'static, io::Result<()>>;

    /// Jobs that wait, and jobs that run.
    fn counts(&self) -> Later<'static, (usize, usize)>;

    /// Throws away jobs that ended long ago; gives their number.
    fn sweep(&self) -> Later<'static, io::Result<usize>>;

    /// Accepts and starts nothing more.
    fn drain(&self);

    /// Waits until nothing runs here, or `patience` is over; says which.
    fn wait_idle(&self, patience: Duration) -> Later<'static, bool>;
}

/// Evaluation keys of all clients.
pub trait KeyStore: Send + Sync {
    /// Whether keys are there and checked.
    fn is_ready(&self, at: &KeyRef) -> Later<'static, io::Result<bool>>;

    /// Where keys are; nothing if none came. Waits for the end of their check if it is told to.
    fn get(
        &self,
        entry: &Arc<Entry>,
        at: &KeyRef,
        wait: Duration,
    ) -> Later<'static, io::Result<Option<Keys>>>;

    /// All keys of one client for programs that are served.
    fn list(&self, owner: &Owner) -> Later<'static, io::Result<Vec<Keys>>>;

    /// Bytes that one client's keys take or will take, those of `besides` aside.
    fn bytes_of(&self, owner: &Owner, besides: &KeyRef) -> Later<'static, io::Result<u64>>;

    /// The right to send keys from byte `first` on.
    fn begin(
        &self,
        entry: &Arc<Entry>,
        at: &KeyRef,
        first: u64,
    ) -> Later<'static, Result<Box<dyn Upload>, NoUpload>>;

    /// Removes keys and ends their jobs; says whether there were any.
    fn remove(&self, at: &KeyRef) -> Later<'static, Result<bool, NoUpload>>;

    /// Throws away what nobody goes on with.
    fn sweep(&self) -> Later<'static, io::Result<()>>;

    /// Checks nothing more.
    fn drain(&self);
}

/// Where bytes of a body go.
pub trait Sink: Send {
    /// Takes the next bytes.
    fn write(&mut self, bytes: Bytes) -> Later<'_, io::Result<()>>;
}

impl Sink for tokio::fs::File {
    fn write(&mut self, bytes: Bytes) -> Later<'_, io::Result<()>> {
        Box::pin(async move { tokio::io::AsyncWriteExt::write_all(self, &bytes).await })
    }
}

/// Keys that are being sent by one request.
pub trait Upload: Sink {
    /// Keeps what came, to go on with later.
    fn keep(self: Box<Self>) -> Later<'static, io::Result<()>>;

    /// All bytes are there: they are to be checked.
    fn complete(self: Box<Self>) -> Later<'static, io::Result<()>>;

    /// Throws away what came, and remembers why.
    fn refuse(self: Box<Self>, reason: Problem) -> Later<'static, io::Result<()>>;
}

/// Why keys cannot be sent or removed now.
#[derive(Debug)]
pub enum NoUpload {
    /// Another request sends them, or they are being checked.
    Busy,
    /// They are here already.
    Exists,
    /// This many bytes came so far.
    WrongOffset(u64),
    /// Too many keys are being sent at a time.
    Full,
    /// The store failed.
    Store(io::Error),
}

impl From<io::Error> for NoUpload {
    fn from(error: io::Error) -> Self {
        Self::Store(error)
    }
}
