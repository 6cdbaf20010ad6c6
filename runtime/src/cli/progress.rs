//! The progress bar: appears after two seconds, names the layer, the time left and the memory in use.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fhe_host::memory::rss_bytes;
use fhe_host::show_bytes;
use fhe_machine::{Observer, Progress};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Work shorter than this shows no bar.
const PATIENCE: Duration = Duration::from_secs(2);
const N_STEPS: u64 = 1000;

/// A bar on standard error; hidden when that is no terminal, or by `--quiet`.
pub(crate) struct Bar {
    bar: ProgressBar,
    began: Instant,
    is_hidden: AtomicBool,
}

impl Bar {
    /// A bar for work called `title`.
    pub(crate) fn new(title: &str, quiet: bool) -> Self {
        let bar = ProgressBar::with_draw_target(Some(N_STEPS), ProgressDrawTarget::hidden());
        let style = ProgressStyle::with_template("{prefix} [{bar:32}] {percent:>3} %  {msg}")
            .unwrap_or_else(|_| ProgressStyle::default_bar())
            .progress_chars("=> ");
        bar.set_style(style);
        bar.set_prefix(title.to_owned());
        if quiet {
            bar.finish();
        }
        Self { bar, began: Instant::now(), is_hidden: AtomicBool::new(true) }
    }

    /// Shows a part of the work done, from 0 to 1, and what comes next.
    pub(crate) fn set(&self, fraction: f64, message: String) {
        if self.bar.is_finished() {
            return;
        }
        if self.began.elapsed() > PATIENCE && self.is_hidden.swap(false, Ordering::Relaxed) {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.bar.set_position((fraction.clamp(0.0, 1.0) * N_STEPS as f64) as u64);
        self.bar.set_message(message);
    }
}

impl Observer for Bar {
    fn progress(&self, progress: Progress<'_>) {
        let left =
            progress.remaining().map_or(String::new(), |left| format!(", {:.0} s left", left.as_secs_f64()));
        let memory = rss_bytes().map_or(String::new(), |bytes| format!(", {}", show_bytes(bytes)));
        self.set(progress.fraction, format!("{}{left}{memory}", progress.layer));
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
