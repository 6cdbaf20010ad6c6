//! One bar for all commands: what is being done, how far it is, and the time that is left.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fhe_bytecode::text::harmless;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Work shorter than this shows nothing.
const PATIENCE: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_millis(200);
const N_STEPS: u64 = 1000;
/// Parts below this say nothing yet about the time that is left.
const ENOUGH: f64 = 0.02;

const TURNING: &str = "{spinner} {prefix}{msg}  {elapsed}";
const FILLING: &str = "{spinner} {prefix} [{bar:32}] {percent:>3} %{msg}";

/// Progress on standard error; hidden when that is no terminal, when `--quiet` is given, and for the first second.
pub struct Bar {
    bar: ProgressBar,
    work: Mutex<Work>,
}

/// The present piece of work.
struct Work {
    began: Instant,
    is_filling: bool,
}

impl Bar {
    /// A bar for work called `title`, which turns until a part is known.
    #[must_use]
    pub fn new(title: &str, quiet: bool) -> Self {
        let target = if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let bar = ProgressBar::with_draw_target(Some(N_STEPS), target);
        bar.set_style(style(TURNING));
        bar.set_prefix(title.to_owned());
        if !quiet {
            bar.enable_steady_tick(TICK);
        }
        Self { bar, work: Mutex::new(Work { began: Instant::now(), is_filling: false }) }
    }

    /// Goes over to the next piece of work.
    pub fn begin(&self, title: &str) {
        *self.work() = Work { began: Instant::now(), is_filling: false };
        self.bar.set_style(style(TURNING));
        self.bar.set_message(String::new());
        self.bar.set_prefix(title.to_owned());
    }

    /// Shows a part of the present work done, from 0 to 1, with the time left; `detail` says what is at hand.
    pub fn set(&self, part: f64, detail: &str) {
        let elapsed = self.work().began.elapsed();
        self.set_left(part, left(elapsed, part), detail);
    }

    /// The same where the time left is known better than from the part.
    pub fn set_left(&self, part: f64, left: Option<Duration>, detail: &str) {
        let mut work = self.work();
        if work.began.elapsed() < PATIENCE {
            return;
        }
        if !work.is_filling {
            work.is_filling = true;
            self.bar.set_style(style(FILLING).progress_chars("=> "));
        }
        self.bar.set_position((part.clamp(0.0, 1.0) * N_STEPS as f64) as u64);
        let left = left.map_or(String::new(), |left| format!(", {} left", seconds(left)));
        let detail = if detail.is_empty() { String::new() } else { format!(", {}", harmless(detail)) };
        self.bar.set_message(format!("{left}{detail}"));
    }

    /// Writes something else without tearing the bar.
    pub fn suspend<T>(&self, write: impl FnOnce() -> T) -> T {
        self.bar.suspend(write)
    }

    fn work(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.finish();
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

/// The time left after a part of the work, if it went on as so far.
fn left(elapsed: Duration, part: f64) -> Option<Duration> {
    (ENOUGH..=1.0).contains(&part).then(|| elapsed.mul_f64((1.0 - part) / part))
}

/// A time for people: seconds below two minutes, then minutes, then hours.
fn seconds(time: Duration) -> String {
    match time.as_secs() {
        s @ ..120 => format!("{s} s"),
        s @ ..7200 => format!("{} min", s.div_ceil(60)),
        s => format!("{:.1} h", s as f64 / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_left_follows_from_the_part_done() {
        assert_eq!(left(Duration::from_secs(10), 0.25), Some(Duration::from_secs(30)));
        assert_eq!(left(Duration::from_secs(10), 0.0), None);
        assert_eq!(left(Duration::from_secs(10), 1.0), Some(Duration::ZERO));
    }

    #[test]
    fn times_are_for_people() {
        for (given, said) in [(7, "7 s"), (119, "119 s"), (120, "2 min"), (125, "3 min"), (9000, "2.5 h")] {
            assert_eq!(seconds(Duration::from_secs(given)), said);
        }
    }

    #[test]
    fn a_quiet_bar_does_nothing_and_ends() {
        let bar = Bar::new("work", true);
        bar.set(0.5, "x");
        bar.begin("more");
        assert_eq!(bar.suspend(|| 3), 3);
    }
}
