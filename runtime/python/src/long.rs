//! Calls that take long: without the interpreter's lock, with progress, and ended by Ctrl-C.
//!
//! The work runs on a thread of its own. The calling thread waits for it, and now and then takes the lock to look for signals and
//! to tell the progress. Whatever goes wrong there, a signal or a callback that raises, cancels the work.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use fhe_machine::{Cancel, Observer, Progress};
use pyo3::prelude::*;

use crate::fault::{Class, Fault};
use crate::threads::{Running, Threads};

/// Time between two looks at signals and progress.
const PERIOD: Duration = Duration::from_millis(100);

/// What the work is at: a part from 0 to 1 where it is known, and words.
struct Told {
    fraction: Option<f64>,
    text: String,
}

/// What the work is given: a place to tell its progress, and the word that nobody waits any more.
pub(crate) struct Watch {
    pub(crate) cancel: Cancel,
    tell: Sender<Told>,
}

/// What unwinds from work that is cancelled where nothing else can end it.
struct Cancelled;

impl Watch {
    /// Tells how far the work is. Does not return if it is cancelled: the thread unwinds, and drops what it made.
    pub(crate) fn tell(&self, fraction: Option<f64>, text: String) {
        // Nobody listens if the caller is gone already.
        let _ = self.tell.send(Told { fraction, text });
        if self.cancel.is_cancelled() {
            resume_unwind(Box::new(Cancelled));
        }
    }

    /// What one of `n` samples tells.
    pub(crate) fn part(&self, index: usize, n: usize) -> Part<'_> {
        Part { watch: self, index, n }
    }
}

/// One of several samples.
pub(crate) struct Part<'w> {
    watch: &'w Watch,
    index: usize,
    n: usize,
}

/// The machine ends by itself when it is cancelled.
impl Observer for Part<'_> {
    fn progress(&self, progress: Progress<'_>) {
        let Self { watch, index, n } = *self;
        let text = match n {
            1 => progress.layer.to_owned(),
            _ => format!("sample {} of {n}: {}", index + 1, progress.layer),
        };
        let _ = watch.tell.send(Told { fraction: Some((index as f64 + progress.fraction) / n as f64), text });
    }
}

/// Runs `work` on `threads`; `progress` is what the user gave for it.
pub(crate) fn run<T: Send + 'static>(
    py: Python<'_>,
    threads: &Threads,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&Watch) -> Result<T, Fault> + Send + 'static,
) -> PyResult<T> {
    let running = Running::new()?;
    let pool = threads.pool()?;
    let shown = py.import("fhec._progress")?.call_method1("start", (progress,))?;
    let callback = (!shown.is_none()).then(|| shown.clone().unbind());
    let (tell, told) = channel();
    let cancel = Cancel::default();
    let watch = Watch { cancel: cancel.clone(), tell };
    let (send, outcome) = channel();
    std::thread::Builder::new()
        .name("fhec".into())
        .spawn(move || {
            let found = catch_unwind(AssertUnwindSafe(|| pool.install(|| work(&watch))));
            // The pool must not end on the thread that waits: it is the caller's, and holds the lock.
            drop(pool);
            let _ = send.send(found);
            // The caller goes on once the watch is gone, and may fork: nothing of this call counts as running by then.
            drop(running);
            drop(watch);
        })
        .map_err(|error| {
            Fault::new(Class::Resource, "threads", format!("cannot start a thread: {error}"))
                .with_remedy("raise the limits of this process")
        })?;
    let waited = py.allow_threads(move || wait(&told, &outcome, callback.as_ref(), &cancel));
    let ended = py.import("fhec._progress")?.call_method1("end", (shown,));
    let found = waited?;
    ended?;
    match found {
        Ok(result) => Ok(result?),
        Err(panic) => Err(bug(panic.as_ref()).into()),
    }
}

/// Waits for the outcome; an error on this side cancels the work first.
fn wait<T>(
    told: &Receiver<Told>,
    outcome: &Receiver<std::thread::Result<Result<T, Fault>>>,
    callback: Option<&Py<PyAny>>,
    cancel: &Cancel,
) -> PyResult<std::thread::Result<Result<T, Fault>>> {
    let mut latest = None;
    let mut next = Instant::now() + PERIOD;
    loop {
        match told.recv_timeout(next.saturating_duration_since(Instant::now())) {
            Ok(message) => latest = Some(message),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if Instant::now() < next {
            continue;
        }
        next = Instant::now() + PERIOD;
        let looked = Python::with_gil(|py| {
            py.check_signals()?;
            match (callback, latest.take()) {
                (Some(callback), Some(Told { fraction, text })) => {
                    callback.call1(py, (fraction, text)).map(drop)
                }
                _ => Ok(()),
            }
        });
        if let Err(error) = looked {
            cancel.cancel();
            // Only the machine's own cancellation is waited for, and that comes within a layer; other work unwinds at its next
            // word, and what it holds is dropped there.
            let _ = outcome.recv_timeout(PERIOD);
            return Err(error);
        }
    }
    // The last word, so that a bar ends where it should.
    if let (Some(callback), Some(Told { fraction, text })) = (callback, latest) {
        Python::with_gil(|py| callback.call1(py, (fraction, text)).map(drop))?;
    }
    outcome.recv().map_err(|_| Fault::bug("the work ended without a result".to_owned()).into())
}

/// A panic as an error: ours to repair.
fn bug(panic: &(dyn Any + Send)) -> Fault {
    if panic.is::<Cancelled>() {
        return Fault::new(Class::Usage, "cancelled", "cancelled".to_owned());
    }
    let text =
        panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    Fault::bug(text.unwrap_or("unknown panic").to_owned())
}
