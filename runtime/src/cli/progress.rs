//! An evaluation as a bar: the input and the layer, the time left of the whole batch and the memory in use.

use std::ops::Range;
use std::time::Instant;

use fhe_host::memory::rss_bytes;
use fhe_host::show_bytes;
use fhe_machine::{Observer, Progress};

/// A bar on standard error; hidden when that is no terminal, or by `--quiet`.
pub(crate) struct Bar {
    bar: fhe_diagnostics::Bar,
    /// Which inputs of how many, where there are several.
    items: (Range<usize>, usize),
    /// Inputs that were done before the work began.
    done_before: usize,
    began: Instant,
}

impl Bar {
    /// A bar for work called `title`.
    pub(crate) fn new(title: &str, quiet: bool) -> Self {
        let bar = fhe_diagnostics::Bar::new(title, quiet);
        Self { bar, items: (0..1, 1), done_before: 0, began: Instant::now() }
    }

    /// Goes over to the next piece of work, of which so many inputs are done already.
    pub(crate) fn begin(&mut self, title: &str, done_before: usize) {
        self.bar.begin(title);
        (self.done_before, self.began) = (done_before, Instant::now());
    }

    /// Writes something else without tearing the bar.
    pub(crate) fn suspend(&self, write: impl FnOnce()) {
        self.bar.suspend(write);
    }

    /// Goes over to the next inputs, counted from 0, which are evaluated at once.
    pub(crate) fn items(&mut self, items: Range<usize>, of: usize) {
        self.items = (items, of.max(1));
    }

    /// Shows a part of the work done, from 0 to 1, and what is at hand.
    pub(crate) fn set(&self, part: f64, detail: String) {
        self.bar.set(part, &detail);
    }
}

impl Observer for Bar {
    fn progress(&self, progress: Progress<'_>) {
        let memory = rss_bytes().map_or(String::new(), |bytes| format!(", {}", show_bytes(bytes)));
        let (Range { start, end }, of) = self.items.clone();
        match of {
            1 => {
                let detail = format!("{}{memory}", progress.layer);
                self.bar.set_left(progress.fraction, progress.remaining(), &detail);
            }
            _ => {
                let done = start as f64 + (end - start) as f64 * progress.fraction;
                let part = done / of as f64;
                let factor = (of as f64 - done) / (done - self.done_before as f64);
                let left = factor.is_finite().then(|| self.began.elapsed().mul_f64(factor.max(0.0)));
                let inputs = match end - start {
                    1 => format!("input {end}"),
                    _ => format!("inputs {} to {end}", start + 1),
                };
                let detail = format!("{inputs} of {of}, {}{memory}", progress.layer);
                self.bar.set_left(part, left, &detail);
            }
        }
    }
}
