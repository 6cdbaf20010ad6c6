//! How far an evaluation is, for whoever wants to show it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::cancel::Cancel;

/// The state between two instructions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress<'a> {
    /// Name of the layer that comes next.
    pub layer: &'a str,
    /// Part of the predicted work that is done, from 0 to 1.
    pub fraction: f64,
    /// Time since the start.
    pub elapsed: Duration,
    /// Bytes of plaintexts in the cache.
    pub cached_bytes: u64,
}

impl Progress<'_> {
    /// Time until the end if the rest goes as the work so far.
    pub fn remaining(&self) -> Option<Duration> {
        let factor = (1.0 - self.fraction) / self.fraction;
        (self.fraction > 0.0 && factor.is_finite()).then(|| self.elapsed.mul_f64(factor.max(0.0)))
    }
}

/// Is told how far an evaluation is.
pub trait Observer: Sync {
    /// Called between instructions, and from any thread within long ones.
    fn progress(&self, progress: Progress<'_>);
}

/// Reports from within one instruction, whose work is many equal parts.
pub(crate) struct Ticker<'a> {
    /// Who is told.
    pub observer: &'a dyn Observer,
    /// Who may end it.
    pub cancel: &'a Cancel,
    /// What was said when the instruction began.
    pub at_start: Progress<'a>,
    /// When the evaluation began.
    pub began: Instant,
    /// Part of the whole work that the instruction is.
    pub weight: f64,
    /// Parts of the instruction.
    pub n_parts: usize,
    /// Parts done so far.
    pub n_done: AtomicUsize,
}

impl Ticker<'_> {
    /// Reports in an instruction of many parts, not in every part.
    const N_REPORTS: usize = 32;

    /// One more part is done.
    pub(crate) fn tick(&self) {
        let done = self.n_done.fetch_add(1, Ordering::Relaxed) + 1;
        if done.is_multiple_of(self.n_parts.div_ceil(Self::N_REPORTS).max(1)) {
            let part = done as f64 / self.n_parts.max(1) as f64;
            self.observer.progress(Progress {
                fraction: self.at_start.fraction + self.weight * part.min(1.0),
                elapsed: self.began.elapsed(),
                ..self.at_start
            });
        }
    }
}

/// Looks away.
#[derive(Debug, Clone, Copy)]
pub struct Silent;

impl Observer for Silent {
    fn progress(&self, _: Progress<'_>) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_report_now_and_then_and_never_go_back() {
        struct Seen(std::sync::Mutex<Vec<f64>>);
        impl Observer for Seen {
            fn progress(&self, progress: Progress<'_>) {
                self.0.lock().unwrap().push(progress.fraction);
            }
        }
        let seen = Seen(Default::default());
        let at_start = Progress { layer: "", fraction: 0.5, elapsed: Duration::ZERO, cached_bytes: 0 };
        let began = Instant::now();
        let n_done = AtomicUsize::new(0);
        let cancel = Cancel::default();
        let ticker =
            Ticker { observer: &seen, cancel: &cancel, at_start, began, weight: 0.25, n_parts: 1000, n_done };
        (0..1000).for_each(|_| ticker.tick());
        let seen = seen.0.into_inner().unwrap();
        assert!(seen.len() >= 30 && seen.is_sorted() && *seen.last().unwrap() <= 0.75);
    }

    #[test]
    fn remaining_time_follows_the_work_done() {
        let at =
            |fraction| Progress { layer: "", fraction, elapsed: Duration::from_secs(3), cached_bytes: 0 };
        assert_eq!(at(0.75).remaining(), Some(Duration::from_secs(1)));
        assert_eq!(at(0.0).remaining(), None);
        assert_eq!(at(1.0).remaining(), Some(Duration::ZERO));
    }
}
