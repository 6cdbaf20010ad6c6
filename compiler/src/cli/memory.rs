//! Whether the limits of the process leave enough memory to compile in.

use std::path::PathBuf;

use fhe_host::memory::{address_space_left, default_threads, limit_bytes, thread_bytes};
use fhe_host::show_bytes;

use crate::diagnostics::{Diagnostic, Kind};

/// Memory that every compilation takes, and more for every byte of the models, as measured on small and middling ones.
const BASE_BYTES: u64 = 64 << 20;
const BYTES_PER_MODEL_BYTE: u64 = 160;

/// Refuses to begin what limits of the process would end: a failed allocation cannot be answered any more.
pub(super) fn check(models: &[PathBuf]) -> Result<(), Diagnostic> {
    let model_bytes: u64 = models.iter().filter_map(|path| path.metadata().ok()).map(|m| m.len()).sum();
    let needed = BASE_BYTES + BYTES_PER_MODEL_BYTE.saturating_mul(model_bytes);
    let mapped = needed.saturating_add(thread_bytes(default_threads().saturating_add(1)));
    let short =
        |left: Option<u64>, needed: u64| left.filter(|&left| left < needed).map(|left| (left, needed));
    match short(limit_bytes(), needed).or_else(|| short(address_space_left(), mapped)) {
        Some((left, needed)) => {
            let what = format!(
                "compiling takes about {} of memory, but limits leave this process {}",
                show_bytes(needed),
                show_bytes(left)
            );
            Err(Diagnostic::new(Kind::Cannot, what)
                .with_help("raise the limit of the address space (ulimit -v) or of the control group"))
        }
        None => Ok(()),
    }
}
