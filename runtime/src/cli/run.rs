//! What all commands that evaluate share: the memory budget and the profile.

use std::path::Path;

use super::args::RunArgs;
use super::error::CliError;
use super::show::{pretty, write};
use crate::files::Audience;
use crate::vm::memory::{available_bytes, show_bytes};
use crate::vm::{Machine, Profile};

/// Part of the available memory that is used when nothing is said.
const DEFAULT_PART: f64 = 0.85;

/// The memory budget: what is asked for, or most of what is available.
pub(crate) fn memory_budget(args: &RunArgs) -> u64 {
    let available = || available_bytes().map_or(u64::MAX, |bytes| (bytes as f64 * DEFAULT_PART) as u64);
    args.memory.unwrap_or_else(available)
}

/// Says what the evaluation is going to need.
pub(crate) fn note_memory(machine: &Machine<'_>, quiet: bool) {
    if !quiet {
        let memory = machine.memory();
        eprintln!(
            "memory: keys {}, ciphertexts and sums up to {}, cached plaintexts {}",
            show_bytes(memory.key_bytes),
            show_bytes(memory.working_bytes),
            show_bytes(memory.plaintext_bytes)
        );
    }
}

/// Prints or writes the profile if it was asked for.
pub(crate) fn report_profile(args: &RunArgs, profile: &Profile) -> Result<(), CliError> {
    match &args.profile {
        None => {}
        Some(None) => eprintln!("{}", profile.to_table()),
        Some(Some(path)) if is_trace(path) => {
            write(path, Audience::Public, pretty(&profile.to_chrome_trace()).as_bytes())?;
        }
        Some(Some(path)) => write(path, Audience::Public, pretty(&profile.to_json()).as_bytes())?,
    }
    Ok(())
}

fn is_trace(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(".trace.json"))
}
