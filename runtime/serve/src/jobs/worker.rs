//! Workers: threads that take jobs from the queue. The computation itself is on the pool that all share.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use fhe_machine::{Cancel, Observer, Profile, Progress};
use tokio::sync::watch;

use super::evaluate::{Evaluation, Failure, Report};
use super::queue::Jobs;
use super::{Job, JobState, problem};
use crate::ids::{JobRef, KeyRef};
use crate::memory::Reservation;

/// Least time between two reports of one job.
const REPORT_EVERY: Duration = Duration::from_millis(100);

impl Jobs {
    /// Starts `n_workers` threads; they end when the queue is drained.
    ///
    /// # Errors
    /// If the operating system has no more threads.
    pub fn start(self: &Arc<Self>, n_workers: usize) -> std::io::Result<Vec<JoinHandle<()>>> {
        (0..n_workers)
            .map(|number| {
                let jobs = Arc::clone(self);
                std::thread::Builder::new().name(format!("worker-{number}")).spawn(move || {
                    while let Some((at, key, reservation)) = jobs.next() {
                        jobs.run(&at, &key, reservation);
                    }
                })
            })
            .collect()
    }

    fn run(&self, at: &JobRef, key: &KeyRef, reservation: Reservation) {
        let began = Instant::now();
        let ended = catch_unwind(AssertUnwindSafe(|| self.evaluate(at, key, &reservation)));
        drop(reservation);
        let outcome = match ended {
            Ok(Ok(profile)) => {
                self.setup.metrics.evaluated(key.program, &profile);
                let seconds = profile.total_seconds;
                self.finish(at, |job| Job { seconds: Some(seconds), ..job.ended(JobState::Done, None) })
            }
            Ok(Err(Failure::Cancelled)) => self.finish_cancelled(at),
            Ok(Err(Failure::Problem(reason))) => {
                self.finish(at, |job| job.ended(JobState::Failed, Some(reason)))
            }
            // The panic has printed where it happened.
            Err(_) => {
                let reason = problem("internal", "the evaluation stopped: this is a bug in fhe-serve");
                self.finish(at, |job| job.ended(JobState::Failed, Some(reason)))
            }
        };
        if let Err(error) = outcome {
            tracing::error!(job = %at.id, %error, "cannot write a job's end");
        }
        let state = self.get(at).ok().flatten().map(|job| job.state);
        let seconds = began.elapsed().as_secs_f64();
        tracing::info!(job = %at.id, owner = %at.owner, program = %key.program, ?state, seconds, "job ended");
    }

    /// Evaluates, and puts the result into the store.
    fn evaluate(&self, at: &JobRef, key: &KeyRef, reservation: &Reservation) -> Result<Profile, Failure> {
        let (store, catalog) = (&self.setup.store, &self.setup.catalog);
        let failed = |error: std::io::Error| Failure::Problem(problem("store", error.to_string()));
        let entry = catalog.get(key.program).ok_or_else(|| {
            Failure::Problem(problem("no-such-program", "the program of this job is not served any more"))
        })?;
        let Some((cancel, view)) = self.begin(at).map_err(failed)? else { return Err(Failure::Cancelled) };
        let observer = Reporter::new(&view, &cancel, Instant::now() + self.setup.limits.job);
        let (keys, input) = (store.keys_path(key), store.input_path(at));
        let work = Evaluation {
            entry,
            key: key.key,
            keys: &keys,
            input: &input,
            reservation,
            cancel: &cancel,
            observer: &observer,
        };
        match (self.evaluator)(work) {
            Ok(Report { result, profile }) => {
                store.put_result(at, &result).map_err(failed)?;
                Ok(profile)
            }
            Err(Failure::Cancelled) if Instant::now() >= observer.ends => {
                let seconds = self.setup.limits.job.as_secs();
                Err(Failure::Problem(problem("job-timeout", format!("the job took more than {seconds} s"))))
            }
            Err(failure) => Err(failure),
        }
    }

    /// Writes that a job is begun, before it is: one that ends the process is not tried for ever.
    fn begin(&self, at: &JobRef) -> std::io::Result<Option<(Cancel, watch::Sender<Job>)>> {
        let (cancel, view) = match self.lock().live.get(at) {
            Some(live) => (live.cancel.clone(), live.view.clone()),
            None => return Ok(None),
        };
        view.send_modify(|job| {
            job.state = JobState::Running;
            job.attempts += 1;
        });
        let job = view.borrow().clone();
        self.setup.store.put_job(at, &job)?;
        Ok(Some((cancel, view)))
    }
}

/// Tells those who follow a job how far it is, and ends it when its time is over.
pub(crate) struct Reporter<'a> {
    view: &'a watch::Sender<Job>,
    cancel: &'a Cancel,
    ends: Instant,
    last: Mutex<Option<Instant>>,
}

impl<'a> Reporter<'a> {
    pub(crate) fn new(view: &'a watch::Sender<Job>, cancel: &'a Cancel, ends: Instant) -> Self {
        Self { view, cancel, ends, last: Mutex::new(None) }
    }
}

impl Observer for Reporter<'_> {
    fn progress(&self, progress: Progress<'_>) {
        let now = Instant::now();
        if now >= self.ends {
            self.cancel.cancel();
        }
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.is_some_and(|last| now - last < REPORT_EVERY) {
            return;
        }
        *last = Some(now);
        drop(last);
        self.view.send_modify(|job| {
            job.layer = Some(progress.layer.to_owned());
            job.fraction = job.fraction.max(progress.fraction.clamp(0.0, 1.0));
            job.eta_seconds = progress.remaining().map(|left| left.as_secs_f64());
        });
    }
}
