//! One message: keys to check or a job to evaluate, told of while it runs, acknowledged when its end is written.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_nats::jetstream::AckKind;
use async_nats::jetstream::message::Message;
use fhe_machine::{Cancel, Profile, Session};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::spawn_blocking;

use super::names::{Work, input_name, result_name};
use super::pieces::{PieceSource, Pieces, make_ready, refuse, remove_pieces};
use super::worker::Shared;
use crate::catalog::Entry;
use crate::ids::{JobRef, KeyRef};
use crate::jobs::{
    Evaluation, Failure, Job, JobState, Problem, Report, Reporter, Source, now_ms, problem, read_keys,
};
use crate::memory::{Hold, Reservation};

/// Time between two words about a job that runs.
const TELL: Duration = Duration::from_millis(300);
/// Time until a job that this worker cannot do comes to another.
const PASS_ON: Duration = Duration::from_secs(2);

/// An input that was read.
struct Input(axum::body::Bytes);

impl Source for Input {
    fn open(&self) -> io::Result<(Box<dyn io::Read + Send>, u64)> {
        Ok((Box::new(io::Cursor::new(self.0.clone())), self.0.len() as u64))
    }
}

impl Shared {
    /// Does what a message says. What fails for a reason that may pass goes back to the queue.
    pub(super) async fn handle(self: &Arc<Self>, message: &Message, hold: Hold) -> io::Result<()> {
        let Ok(work) = serde_json::from_slice::<Work>(&message.payload) else {
            tracing::error!("a message that is none of ours was thrown away");
            return answer(message, AckKind::Term).await;
        };
        let n_begun = message.info().map_err(io::Error::other)?.delivered;
        let is_given_up = n_begun > i64::from(self.options.n_deliveries);
        let beat = self.beat(message);
        let done = async {
            match work.job {
                Some(id) => {
                    self.job(&work, &JobRef { owner: work.owner.clone(), id }, is_given_up, hold).await
                }
                None => self.check(&work.key_ref(), is_given_up, hold).await,
            }
        };
        let done = tokio::select! {
            done = done => done,
            () = beat => unreachable!("it never ends"),
        };
        match done {
            Ok(true) => answer(message, AckKind::Ack).await,
            Ok(false) => answer(message, AckKind::Nak(Some(PASS_ON))).await,
            Err(error) => {
                answer(message, AckKind::Nak(Some(PASS_ON))).await?;
                Err(error)
            }
        }
    }

    /// Says that a message is being worked on, so that nobody else gets it.
    async fn beat(&self, message: &Message) {
        loop {
            tokio::time::sleep(self.options.ack / 3).await;
            if let Err(error) = message.ack_with(AckKind::Progress).await {
                tracing::warn!(%error, "NATS failed; trying again");
            }
        }
    }

    /// Reads all of a client's keys, joins them with their model, and makes them visible. Says whether that was all.
    async fn check(self: &Arc<Self>, key: &KeyRef, is_given_up: bool, hold: Hold) -> io::Result<bool> {
        let found = self.objects.patiently(|| Pieces::find(&self.objects, key)).await?;
        if found.is_leaving() {
            // Who refused them ended before they were gone.
            self.objects.patiently(|| remove_pieces(&self.objects, key)).await?;
            return Ok(true);
        }
        if found.is_ready {
            return Ok(true);
        }
        let Some(entry) = self.catalog.get(key.program).cloned() else {
            // Another worker may have it; given up when none had it often enough.
            if is_given_up {
                let reason = problem("no-such-program", "the program of these keys is not served any more");
                refuse(&self.objects, key, &reason).await?;
            }
            return Ok(is_given_up);
        };
        let len = entry.key_file_bytes;
        if found.len() != len {
            // They were removed, or begun anew.
            return Ok(true);
        }
        let reason = match is_given_up {
            true => Some(problem("gave-up", "the check of these keys ended its worker too often")),
            false => {
                let source = self.source(found);
                let reservation = hold.reserve(key, entry.key_bytes, 0);
                let checker = key.key;
                let checked =
                    spawn_blocking(move || check_keys(&entry, checker, &source, &reservation)).await;
                checked.unwrap_or_else(|_| {
                    Some(problem("internal", "the check stopped: this is a bug in fhe-serve"))
                })
            }
        };
        tracing::info!(key = %key.key, owner = %key.owner, ready = reason.is_none(), "keys checked");
        match reason {
            None => {
                if !self.objects.patiently(|| make_ready(&self.objects, key, len)).await? {
                    self.ledger.forget(key);
                }
            }
            Some(reason) if reason.code == "store" => return Err(io::Error::other(reason.message)),
            Some(reason) => {
                self.metrics.refused(&reason.code);
                self.ledger.forget(key);
                self.objects.patiently(|| refuse(&self.objects, key, &reason)).await?;
            }
        }
        Ok(true)
    }

    fn source(&self, found: Pieces) -> PieceSource {
        PieceSource { objects: self.objects.clone(), pieces: found.pieces, handle: Handle::current() }
    }

    /// Evaluates a job that is not at its end. Says whether that was all.
    async fn job(
        self: &Arc<Self>,
        work: &Work,
        at: &JobRef,
        is_given_up: bool,
        hold: Hold,
    ) -> io::Result<bool> {
        let began = Instant::now();
        let key = work.key_ref();
        let Some(record) = self.link.record(at).await?.filter(|record| !record.job.state.is_final()) else {
            self.objects.remove(&input_name(at)).await?;
            return Ok(true);
        };
        let result = result_name(at);
        let has_result = self.objects.patiently(|| self.objects.len(&result)).await?.is_some();
        let waited = Duration::from_millis(now_ms().saturating_sub(record.job.submitted_ms));
        let known = self.catalog.get(key.program).cloned();
        let end = match (has_result, known) {
            (true, _) => Ok(None),
            (false, _) if is_given_up => {
                let n = self.options.n_deliveries;
                Err(problem("gave-up", format!("{n} workers ended while they evaluated this job")))
            }
            (false, None) => return Ok(false),
            (false, Some(_)) if record.job.state == JobState::Queued && waited > self.options.queue_wait => {
                Err(problem("queue-timeout", "the job waited too long: the service is overloaded"))
            }
            (false, Some(entry)) => match self.evaluated(&entry, at, &key, hold).await? {
                Ok(profile) => Ok(Some(profile)),
                Err(Failure::Cancelled) => return self.clean_up(at).await,
                Err(Failure::Problem(reason)) if reason.code == "store" => {
                    return Err(io::Error::other(reason.message));
                }
                Err(Failure::Problem(reason)) => Err(reason),
            },
        };
        let seconds = end.as_ref().ok().and_then(|profile| Some(profile.as_ref()?.total_seconds));
        let state = self.finish(at, end.err(), seconds).await?;
        let total = began.elapsed().as_secs_f64();
        tracing::info!(job = %at.id, owner = %at.owner, ?state, seconds = total, "job ended");
        self.clean_up(at).await
    }

    /// Nothing reads a job's input after its end.
    async fn clean_up(&self, at: &JobRef) -> io::Result<bool> {
        let name = input_name(at);
        self.objects.patiently(|| self.objects.remove(&name)).await?;
        Ok(true)
    }

    /// Writes the end of a job, however long NATS takes.
    async fn finish(
        &self,
        at: &JobRef,
        reason: Option<Problem>,
        seconds: Option<f64>,
    ) -> io::Result<JobState> {
        let state = if reason.is_some() { JobState::Failed } else { JobState::Done };
        let end = |job: Job| Job { seconds: seconds.or(job.seconds), ..job.ended(state, reason.clone()) };
        let job = self.objects.patiently(|| self.link.change(at, end)).await?;
        self.metrics.job_ended(state, reason.as_ref().map(|reason| reason.code.as_str()));
        Ok(job.map_or(state, |job| job.state))
    }

    /// Evaluates and stores the result, telling how far it is.
    async fn evaluated(
        self: &Arc<Self>,
        entry: &Arc<Entry>,
        at: &JobRef,
        key: &KeyRef,
        hold: Hold,
    ) -> io::Result<Result<Profile, Failure>> {
        let found = self.objects.patiently(|| Pieces::find(&self.objects, key)).await?;
        if !found.is_ready {
            self.ledger.forget(key);
            return Ok(Err(Failure::Problem(problem("bad-keys", "the keys of this job were removed"))));
        }
        let name = input_name(at);
        let input = self.objects.patiently(|| self.objects.get(&name)).await?;
        let Some(input) = input else {
            return Ok(Err(Failure::Problem(problem(
                "internal",
                "the input of this job is not in the store",
            ))));
        };
        let begun = self.link.change(at, |mut job| {
            job.state = JobState::Running;
            job.attempts += 1;
            job
        });
        let Some(job) = begun.await?.filter(|job| !job.state.is_final()) else {
            return Ok(Err(Failure::Cancelled));
        };
        let (cancel, view) = (Cancel::default(), watch::Sender::new(job));
        let ends = Instant::now() + self.options.job;
        let mut ran = spawn_blocking({
            let (shared, entry, cancel, view) =
                (Arc::clone(self), Arc::clone(entry), cancel.clone(), view.clone());
            let (source, key) = (self.source(found), key.clone());
            move || {
                let reservation = hold.reserve(&key, entry.key_bytes, entry.model.working_bytes());
                let observer = Reporter::new(&view, &cancel, ends);
                let work = Evaluation {
                    entry: &entry,
                    key: key.key,
                    keys: &source,
                    input: &Input(input),
                    reservation: &reservation,
                    cancel: &cancel,
                    observer: &observer,
                };
                catch_unwind(AssertUnwindSafe(|| (shared.evaluator)(work)))
            }
        });
        let outcome = loop {
            tokio::select! {
                outcome = &mut ran => break outcome.map_err(io::Error::other)?,
                () = tokio::time::sleep(TELL) => self.tell(at, &view, &cancel).await,
            }
        };
        match outcome {
            Ok(Ok(Report { result, profile })) => {
                let bytes = axum::body::Bytes::from(result);
                let name = result_name(at);
                self.objects.patiently(|| self.objects.put(&name, bytes.clone())).await?;
                self.metrics.evaluated(key.program, &profile);
                Ok(Ok(profile))
            }
            Ok(Err(Failure::Cancelled)) if Instant::now() >= ends => {
                let seconds = self.options.job.as_secs();
                Ok(Err(Failure::Problem(problem(
                    "job-timeout",
                    format!("the job took more than {seconds} s"),
                ))))
            }
            Ok(Err(failure)) => Ok(Err(failure)),
            // The panic has printed where it happened.
            Err(_) => {
                let reason = problem("internal", "the evaluation stopped: this is a bug in fhe-serve");
                Ok(Err(Failure::Problem(reason)))
            }
        }
    }

    /// Writes how far a job is, and cancels one that was ended or removed meanwhile.
    async fn tell(&self, at: &JobRef, view: &watch::Sender<Job>, cancel: &Cancel) {
        let now = view.borrow().clone();
        let changed = self.link.change(at, |mut job| {
            (job.layer, job.fraction, job.eta_seconds) = (now.layer.clone(), now.fraction, now.eta_seconds);
            job
        });
        match changed.await {
            Ok(job) if job.as_ref().is_none_or(|job| job.state.is_final()) => cancel.cancel(),
            Ok(_) => {}
            Err(error) => tracing::warn!(%error, "NATS failed; the evaluation goes on"),
        }
    }
}

/// Why keys cannot be used, if so.
fn check_keys(
    entry: &Arc<Entry>,
    key: crate::ids::KeyName,
    source: &PieceSource,
    reservation: &Reservation,
) -> Option<Problem> {
    let keys = match reservation.keys(|| read_keys(entry, key, source)) {
        Ok(keys) => keys,
        Err(Failure::Problem(reason)) => return Some(reason),
        Err(Failure::Cancelled) => return Some(problem("store", "the check was cancelled")),
    };
    let joined = Session::new(Arc::clone(&entry.model), keys);
    joined.err().map(|error| problem("bad-keys", error.to_string()))
}

/// Answers a message and waits until NATS has heard it.
async fn answer(message: &Message, kind: AckKind) -> io::Result<()> {
    match kind {
        AckKind::Ack => message.double_ack().await,
        kind => message.ack_with(kind).await,
    }
    .map_err(io::Error::other)
}
