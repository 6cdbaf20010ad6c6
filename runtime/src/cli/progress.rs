//! An evaluation as a bar: the layer, the time left and the memory in use.

use fhe_host::memory::rss_bytes;
use fhe_host::show_bytes;
use fhe_machine::{Observer, Progress};

/// A bar on standard error; hidden when that is no terminal, or by `--quiet`.
pub(crate) struct Bar(fhe_diagnostics::Bar);

impl Bar {
    /// A bar for work called `title`.
    pub(crate) fn new(title: &str, quiet: bool) -> Self {
        Self(fhe_diagnostics::Bar::new(title, quiet))
    }

    /// Shows a part of the work done, from 0 to 1, and what is at hand.
    pub(crate) fn set(&self, part: f64, detail: String) {
        self.0.set(part, &detail);
    }
}

impl Observer for Bar {
    fn progress(&self, progress: Progress<'_>) {
        let memory = rss_bytes().map_or(String::new(), |bytes| format!(", {}", show_bytes(bytes)));
        let detail = format!("{}{memory}", progress.layer);
        self.0.set_left(progress.fraction, progress.remaining(), &detail);
    }
}
