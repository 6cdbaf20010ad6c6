//! The queue: bounded, survives the process, and prefers jobs whose keys are in memory for as long as nobody waits too long.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fhe_machine::Cancel;
use tokio::sync::watch;

use super::evaluate::{Evaluator, evaluate};
use super::{Job, JobState, Problem, problem};
use crate::catalog::Catalog;
use crate::ids::{JobRef, KeyRef, Owner};
use crate::limits::Limits;
use crate::memory::{Ledger, Reservation};
use crate::metrics::Metrics;
use crate::store::Store;

/// What the queue works with.
pub struct Setup {
    /// The programs.
    pub catalog: Arc<Catalog>,
    /// The files.
    pub store: Arc<Store>,
    /// The memory.
    pub ledger: Arc<Ledger>,
    /// The counters.
    pub metrics: Arc<Metrics>,
    /// The bounds.
    pub limits: Limits,
}

/// All jobs of a server that are not at their end.
pub struct Jobs {
    pub(super) setup: Setup,
    pub(super) evaluator: Box<Evaluator>,
    pub(super) state: Mutex<State>,
    pub(super) wake: Condvar,
}

/// Jobs that wait or run.
#[derive(Default)]
pub(super) struct State {
    pub live: BTreeMap<JobRef, Live>,
    pub queue: VecDeque<JobRef>,
    /// Jobs that are being written to the store; they have their place in the queue.
    pub accepting: BTreeSet<JobRef>,
    pub is_draining: bool,
}

/// A job that waits or runs.
pub(super) struct Live {
    pub key: KeyRef,
    pub since: Instant,
    /// Whether keys were read for it and another job at a time: it goes before others while they are in memory.
    pub goes_along: bool,
    pub cancel: Cancel,
    /// Why it is cancelled, where it was not the client who said so.
    pub reason: Option<Problem>,
    pub view: watch::Sender<Job>,
}

/// A job to be.
pub struct NewJob {
    /// Whose, and which.
    pub at: JobRef,
    /// Its keys.
    pub key: KeyRef,
    /// Its input, on its way.
    pub input: PathBuf,
    /// Most jobs that its owner may have waiting or running.
    pub quota: u32,
}

/// What became of a job to be.
pub enum Submitted {
    /// It waits now.
    New(Job),
    /// It was there already.
    Known(Job),
    /// The queue is full: try later.
    Full,
    /// The owner has too many.
    OverQuota,
    /// The server is about to end.
    Draining,
}

impl Jobs {
    /// An empty queue that evaluates with the machine.
    pub fn new(setup: Setup) -> Arc<Self> {
        Self::with_evaluator(setup, Box::new(evaluate))
    }

    /// An empty queue that evaluates with `evaluator`.
    pub fn with_evaluator(setup: Setup, evaluator: Box<Evaluator>) -> Arc<Self> {
        Arc::new(Self { setup, evaluator, state: Mutex::default(), wake: Condvar::new() })
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Accepts a job, unless it is known or there is no room. An accepted job is in the store.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub fn submit(&self, new: NewJob) -> io::Result<Submitted> {
        if let Some(answer) = self.admit(&new)? {
            return Ok(answer);
        }
        let job = Job::new(new.at.id, new.key.program, new.key.key);
        // Written without the lock: a disk takes its time.
        let written = self.setup.store.add_job(&new.at, &new.input, &job);
        let mut state = self.lock();
        state.accepting.remove(&new.at);
        written?;
        state.push(new.at.clone(), new.key, job);
        let job = state.view(&new.at).expect("it was added above");
        drop(state);
        self.wake.notify_one();
        Ok(Submitted::New(job))
    }

    /// Gives a new job its place in the queue, or says what becomes of it instead.
    fn admit(&self, new: &NewJob) -> io::Result<Option<Submitted>> {
        let mut state = self.lock();
        if let Some(job) = state.view(&new.at) {
            return Ok(Some(Submitted::Known(job)));
        }
        // One that has no result may be tried again; a result that is there is there.
        if let Some(job) = self.setup.store.job(&new.at)?.filter(|job| job.state == JobState::Done) {
            return Ok(Some(Submitted::Known(job)));
        }
        if state.is_draining {
            return Ok(Some(Submitted::Draining));
        }
        let n_waiting = state.queue.len() + state.accepting.len();
        if n_waiting >= self.setup.limits.queue || state.accepting.contains(&new.at) {
            return Ok(Some(Submitted::Full));
        }
        let all = state.live.keys().chain(&state.accepting);
        if all.filter(|at| at.owner == new.at.owner).count() >= new.quota as usize {
            return Ok(Some(Submitted::OverQuota));
        }
        state.accepting.insert(new.at.clone());
        Ok(None)
    }

    /// Puts a job of an earlier process back.
    pub(super) fn resume(&self, at: JobRef, job: Job) {
        let key = KeyRef { owner: at.owner.clone(), program: job.program, key: job.key };
        self.lock().push(at, key, job);
        self.wake.notify_one();
    }

    /// A job, if there is one.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn get(&self, at: &JobRef) -> io::Result<Option<Job>> {
        let live = self.lock().view(at);
        match live {
            Some(job) => Ok(Some(job)),
            None => self.setup.store.job(at),
        }
    }

    /// All jobs of one client.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn list(&self, owner: &Owner) -> io::Result<Vec<Job>> {
        let all = self.setup.store.jobs(Some(owner))?;
        all.iter().filter_map(|at| self.get(at).transpose()).collect()
    }

    /// Follows a job that waits or runs.
    pub fn watch(&self, at: &JobRef) -> Option<watch::Receiver<Job>> {
        self.lock().live.get(at).map(|live| live.view.subscribe())
    }

    /// Ends a job that waits or runs, for a reason that is not the client's if there is one. Says whether there was one.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub fn cancel(&self, at: &JobRef, reason: Option<Problem>) -> io::Result<bool> {
        let mut state = self.lock();
        let Some(live) = state.live.get_mut(at) else { return Ok(false) };
        live.cancel.cancel();
        live.reason = live.reason.take().or(reason);
        let is_waiting = state.queue.iter().position(|queued| queued == at);
        if let Some(index) = is_waiting {
            state.queue.remove(index);
            drop(state);
            self.finish_cancelled(at)?;
        }
        Ok(true)
    }

    /// Ends all jobs of one client's keys.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub fn cancel_all_of(&self, key: &KeyRef) -> io::Result<()> {
        let of_key: Vec<JobRef> =
            self.lock().live.iter().filter(|(_, live)| live.key == *key).map(|(at, _)| at.clone()).collect();
        of_key.iter().try_for_each(|at| self.cancel(at, None).map(drop))
    }

    /// Writes the end of a job, then tells those who follow it.
    pub(super) fn finish(&self, at: &JobRef, end: impl FnOnce(Job) -> Job) -> io::Result<()> {
        let Some(job) = self.lock().live.get(at).map(|live| live.view.borrow().clone()) else {
            return Ok(());
        };
        let job = end(job);
        let written = self.setup.store.put_job(at, &job).and_then(|()| self.setup.store.remove_input(at));
        let live = self.lock().live.remove(at);
        if let Some(live) = live {
            self.setup.metrics.job_ended(job.state, job.error.as_ref().map(|error| error.code.as_str()));
            live.view.send_replace(job);
        }
        self.wake.notify_all();
        written.map(drop)
    }

    pub(super) fn finish_cancelled(&self, at: &JobRef) -> io::Result<()> {
        let reason = self.lock().live.get_mut(at).and_then(|live| live.reason.take());
        self.finish(at, |job| match reason {
            Some(reason) => job.ended(JobState::Failed, Some(reason)),
            None => job.ended(JobState::Cancelled, None),
        })
    }

    /// Jobs that wait, and jobs that run.
    pub fn counts(&self) -> (usize, usize) {
        let state = self.lock();
        (state.queue.len(), state.live.len() - state.queue.len())
    }

    /// Accepts and starts nothing more.
    pub fn drain(&self) {
        self.lock().is_draining = true;
        self.wake.notify_all();
    }

    /// Waits until nothing runs, or `patience` is over; says which.
    pub fn wait_idle(&self, patience: Duration) -> bool {
        let ends = Instant::now() + patience;
        let mut state = self.lock();
        while state.live.len() > state.queue.len() {
            let left = ends.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let waited = self.wake.wait_timeout(state, left.min(Duration::from_millis(100)));
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    /// The next job with memory for it; waits for both. Nothing when the server is about to end.
    pub(super) fn next(&self) -> Option<(JobRef, KeyRef, Reservation)> {
        let mut state = self.lock();
        loop {
            if state.is_draining {
                return None;
            }
            let expired = state.expired(self.setup.limits.queue_wait);
            if !expired.is_empty() {
                drop(state);
                for at in expired {
                    let reason =
                        problem("queue-timeout", "the job waited too long: the server is overloaded");
                    if let Err(error) = self.cancel(&at, Some(reason)) {
                        tracing::error!(job = %at.id, %error, "cannot write a job's end");
                    }
                }
                state = self.lock();
                continue;
            }
            if let Some((index, reservation)) = self.choose(&mut state) {
                let at = state.queue.remove(index).expect("chosen from the queue");
                let key = state.live[&at].key.clone();
                return Some((at, key, reservation));
            }
            // Memory may become free without a word to this queue, so look again now and then.
            let waited = self.wake.wait_timeout(state, Duration::from_millis(100));
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl State {
    fn push(&mut self, at: JobRef, key: KeyRef, job: Job) {
        let live = Live {
            key,
            since: Instant::now(),
            goes_along: false,
            cancel: Cancel::default(),
            reason: None,
            view: watch::Sender::new(job),
        };
        self.live.insert(at.clone(), live);
        self.queue.push_back(at);
    }

    /// A job that waits or runs, with its place in the queue.
    fn view(&self, at: &JobRef) -> Option<Job> {
        let mut job = self.live.get(at)?.view.borrow().clone();
        job.position = self.queue.iter().position(|queued| queued == at).map(|index| index as u64);
        Some(job)
    }

    fn expired(&self, wait: Duration) -> Vec<JobRef> {
        self.queue.iter().filter(|at| self.live[*at].since.elapsed() > wait).cloned().collect()
    }
}
