//! Threads, and what becomes of them when a process forks.
//!
//! Every [`Threads`] has a pool of its own, so that two servers never wait for each other's work. A fork copies the memory of
//! a process but none of its threads: the child makes new ones, unless a call was running, whose locks nobody would open.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::fault::{Class, Fault};

/// Long calls that are running in this process.
static RUNNING: AtomicUsize = AtomicUsize::new(0);
/// Whether this process was forked from one in which a call was running.
static IS_BROKEN: AtomicBool = AtomicBool::new(false);

/// Threads, started on first use.
pub(crate) struct Threads {
    /// How many; one for each processor if nothing is said.
    wanted: Option<usize>,
    pool: Mutex<Option<Pool>>,
}

struct Pool {
    process: u32,
    threads: Arc<ThreadPool>,
}

/// The threads of everything that has none of its own: compiling, simulating, making keys, encrypting.
pub(crate) static COMMON: Threads = Threads::new(None);

impl Threads {
    pub(crate) const fn new(wanted: Option<usize>) -> Self {
        Self { wanted, pool: Mutex::new(None) }
    }

    /// The pool of this process.
    pub(crate) fn pool(&self) -> Result<Arc<ThreadPool>, Fault> {
        let mut place = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        let process = std::process::id();
        match &*place {
            Some(pool) if pool.process == process => return Ok(pool.threads.clone()),
            _ => forget(place.take()),
        }
        let builder = ThreadPoolBuilder::new().num_threads(self.wanted.unwrap_or(0));
        let threads = builder.thread_name(|i| format!("fhec-{i}")).build().map_err(|error| {
            Fault::new(Class::Resource, "threads", format!("cannot start the threads: {error}"))
                .with_remedy("ask for fewer threads, or raise the limits of this process")
        })?;
        let threads = Arc::new(threads);
        *place = Some(Pool { process, threads: threads.clone() });
        Ok(threads)
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        let pool = self.pool.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if pool.as_ref().is_some_and(|pool| pool.process != std::process::id()) {
            forget(pool);
        }
    }
}

/// Leaves a pool of the parent process alone: ending it would wait for threads that are not here.
fn forget(pool: Option<Pool>) {
    std::mem::forget(pool);
}

/// A long call, for as long as it lives.
pub(crate) struct Running(());

impl Running {
    pub(crate) fn new() -> Result<Self, Fault> {
        if IS_BROKEN.load(Ordering::Relaxed) {
            let what = "this process was forked while another thread of its parent was inside fhec";
            return Err(Fault::new(Class::Usage, "forked", what.to_owned()).with_remedy(
                "start processes with multiprocessing.get_context(\"spawn\"), or fork while nothing runs",
            ));
        }
        RUNNING.fetch_add(1, Ordering::Relaxed);
        Ok(Self(()))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        RUNNING.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Called in the child of a fork, before anything else.
pub(crate) fn after_fork() {
    if RUNNING.swap(0, Ordering::Relaxed) > 0 {
        IS_BROKEN.store(true, Ordering::Relaxed);
    }
}
