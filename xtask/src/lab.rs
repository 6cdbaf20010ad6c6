//! Commands that link the whole workspace run in a crate of their own, `xtask-lab`.

use std::io;
use std::process::Command;

#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Args {
    /// What to do, and options; `--help` lists them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<String>,
}

/// Builds the crate and runs one of its commands, from where the user stands, so that paths mean what they say.
pub(crate) fn run(command: &str, args: &Args) -> io::Result<()> {
    call(command, &args.args.iter().map(String::as_str).collect::<Vec<_>>())
}

/// The same with arguments of ours.
pub(crate) fn call(command: &str, args: &[&str]) -> io::Result<()> {
    let lab = ["run", "--release", "--package", "xtask-lab", "--", command];
    let status = Command::new("cargo").args(lab).args(args).status()?;
    match status.success() {
        true => Ok(()),
        false => Err(io::Error::other(format!("`{command}` ended with {status}"))),
    }
}
