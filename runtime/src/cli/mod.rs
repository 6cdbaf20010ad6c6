//! The `fhe-run` command line: parses, calls one function, maps the result to an exit code.
//!
//! Results go to standard output, everything else to standard error. Exit codes: 0 done, 1 cannot do that, 2 usage,
//! 3 a bug of ours, 130 interrupted.

mod args;
mod batches;
mod bench;
mod demo;
mod error;
mod info;
mod join;
mod prediction;
mod profile;
mod program;
mod progress;
mod remote;
mod rows;
mod run;
mod samples;
mod selection;
mod show;
mod steps;

use std::ffi::OsString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use fhe_bytecode::text::harmless_lines;
use fhe_diagnostics::{chain, complain, remedy};
use fhe_host::{memory, show_bytes};

use self::args::{Cli, Command, TextFormat};
pub use self::error::CliError;
pub use self::profile::to_json as profile_json;
pub use self::program::insecurity;
pub use self::remote::RemoteError;

/// Runs the command line and gives the exit code of the process.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    // Before the first file is begun: an interrupted process leaves no half-written file behind.
    fhe_diagnostics::catch_interrupts();
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are results, not errors; clap knows.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    match catch_unwind(AssertUnwindSafe(|| dispatch(&cli))) {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(error)) => {
            complain(&format!("error: {}\n  help: {}", chain(&error), error.help()));
            error.exit_code()
        }
        // The panic has printed where it happened.
        Err(_) => {
            complain(&format!("error: fhe-run stopped\n  help: {}", remedy::BUG));
            ExitCode::from(3)
        }
    }
}

fn dispatch(cli: &Cli) -> Result<(), CliError> {
    // Now, where it can still be an error; zero means as many as there are cores.
    let n_threads = cli.threads.map(usize::from).filter(|&n| n > 0).unwrap_or_else(memory::default_threads);
    let (left, needed) = (memory::address_space_left(), memory::thread_bytes(n_threads));
    if let Some(left) = left.filter(|&left| left < needed) {
        let (needed, left) = (show_bytes(needed), show_bytes(left));
        return Err(CliError::Threads(format!(
            "{n_threads} take {needed} of address space, limits leave {left}"
        )));
    }
    rayon::ThreadPoolBuilder::new()
        .num_threads(n_threads)
        .build_global()
        .map_err(|e| CliError::Threads(e.to_string()))?;
    if !matches!(cli.command, Command::Join(_) | Command::Eval(_) | Command::Info(_)) {
        // All others hold secrets, if only for a moment.
        fhe_host::forbid_core_dumps();
    }
    let quiet = cli.quiet;
    match &cli.command {
        Command::Keygen(args) => steps::keygen(args, quiet),
        Command::Encrypt(args) => steps::encrypt(args, quiet),
        Command::Join(args) => join::join(args, quiet),
        Command::Eval(args) => steps::eval(args, quiet),
        Command::Decrypt(args) => steps::decrypt(args, quiet),
        Command::Infer(args) => demo::infer(args, quiet),
        Command::Demo(args) => demo::demo(args, quiet),
        Command::Bench(args) => bench::bench(args, quiet),
        Command::Info(args) => info::info(args),
        Command::Remote(args) => remote::remote(args, quiet),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "fhe-run", &mut script);
            Ok(fhe_host::print(&String::from_utf8_lossy(&script))?)
        }
        Command::Man => {
            let mut page = Vec::new();
            clap_mangen::Man::new(Cli::command()).render(&mut page)?;
            Ok(fhe_host::print(&String::from_utf8_lossy(&page))?)
        }
    }
}

/// The whole grammar of the command line, for documents.
#[must_use]
pub fn command() -> clap::Command {
    Cli::command()
}

/// Sums up what a command did that has no other result: in words unless `quiet`, or as JSON.
fn sum_up(format: TextFormat, quiet: bool, words: &str, fields: &serde_json::Value) -> Result<(), CliError> {
    match format {
        TextFormat::Json => return print(&show::pretty(fields)),
        TextFormat::Text if !quiet => eprintln!("{}", harmless_lines(words)),
        TextFormat::Text => {}
    }
    Ok(())
}

/// Writes a result to standard output.
fn print(text: &str) -> Result<(), CliError> {
    Ok(fhe_host::print(&format!("{}\n", harmless_lines(text)))?)
}
