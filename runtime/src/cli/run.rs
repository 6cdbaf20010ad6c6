//! What all commands that evaluate share: the memory budget and the profile.

use std::path::Path;

use fhe_bytecode::text::harmless_lines;
use fhe_host::memory::budget;
use fhe_host::{Text, show_bytes};
use fhe_machine::{Profile, Session};

use super::args::RunArgs;
use super::error::CliError;
use super::profile;
use super::show::{pretty, write};
use crate::store::check_target;

/// The memory budget: what is asked for, or most of what is available, within the limits of the process.
pub(crate) fn memory_budget(args: &RunArgs) -> u64 {
    budget(args.memory, rayon::current_num_threads())
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

/// Refuses a file for the profile before the work for it is done.
pub(crate) fn check_profile(args: &RunArgs) -> Result<(), CliError> {
    match &args.profile {
        Some(Some(path)) => Ok(check_target(path, fhe_diagnostics::text(Text::Json))?),
        Some(None) | None => Ok(()),
    }
}

/// Prints or writes the profile if it was asked for.
pub(crate) fn report_profile(args: &RunArgs, found: &Profile) -> Result<(), CliError> {
    match &args.profile {
        None => {}
        Some(None) => eprintln!("{}", harmless_lines(&profile::to_table(found))),
        Some(Some(path)) if is_trace(path) => {
            write(
                path,
                fhe_diagnostics::text(Text::Json),
                pretty(&profile::to_chrome_trace(found)).as_bytes(),
            )?;
        }
        Some(Some(path)) => {
            write(path, fhe_diagnostics::text(Text::Json), pretty(&profile::to_json(found)).as_bytes())?
        }
    }
    Ok(())
}

fn is_trace(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(".trace.json"))
}
