//! What all commands that evaluate share: the memory budget and the profile.

use std::path::Path;

use fhe_bytecode::text::harmless_lines;
use fhe_host::memory::{available_bytes, limit_bytes};
use fhe_host::show_bytes;
use fhe_machine::{Profile, Session};

use super::args::RunArgs;
use super::error::CliError;
use super::profile;
use super::show::{pretty, write};

/// Part of the available memory that is used when nothing is said.
const DEFAULT_PART: f64 = 0.85;

/// Address space that the allocator reserves for every thread.
const THREAD_BYTES: u64 = 64 << 20;

/// The memory budget: what is asked for, or most of what is available, and never more than the limits of the process leave.
pub(crate) fn memory_budget(args: &RunArgs) -> u64 {
    let part = |bytes: u64| (bytes as f64 * DEFAULT_PART) as u64;
    let available = || available_bytes().map_or(u64::MAX, part);
    let asked = args.memory.unwrap_or_else(available);
    // Threads of the pool, the main one and those that watch.
    let n_threads = rayon::current_num_threads() as u64 + 2;
    let limit = limit_bytes().map_or(u64::MAX, |left| part(left.saturating_sub(n_threads * THREAD_BYTES)));
    asked.min(limit)
}

/// Says what the evaluation is going to need.
pub(crate) fn note_memory(session: &Session, quiet: bool) {
    if !quiet {
        let memory = session.memory();
        eprintln!(
            "memory: keys {}, ciphertexts and sums up to {}, cached plaintexts {}",
            show_bytes(memory.key_bytes),
            show_bytes(memory.working_bytes),
            show_bytes(memory.plaintext_bytes)
        );
    }
}

/// Prints or writes the profile if it was asked for.
pub(crate) fn report_profile(args: &RunArgs, found: &Profile) -> Result<(), CliError> {
    match &args.profile {
        None => {}
        Some(None) => eprintln!("{}", harmless_lines(&profile::to_table(found))),
        Some(Some(path)) if is_trace(path) => {
            write(path, fhe_diagnostics::TEXT, pretty(&profile::to_chrome_trace(found)).as_bytes())?;
        }
        Some(Some(path)) => write(path, fhe_diagnostics::TEXT, pretty(&profile::to_json(found)).as_bytes())?,
    }
    Ok(())
}

fn is_trace(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(".trace.json"))
}
