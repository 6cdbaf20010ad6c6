//! Commands that link the whole workspace run in a crate of their own, `xtask-lab`.

use std::io;
use std::path::PathBuf;
use std::process::Command;

use crate::workspace;

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
    // With the features of the whole workspace, so that what its tests have built is not built again.
    workspace::run("cargo", &["build", "--release", "--workspace", "--bin", "xtask-lab"], &[])?;
    let lab = target().join("release/xtask-lab");
    let status = Command::new(lab).arg(command).args(args).status()?;
    match status.success() {
        true => Ok(()),
        false => Err(io::Error::other(format!("`{command}` ended with {status}"))),
    }
}

/// The folder that cargo builds in.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| workspace::root().join("target"), PathBuf::from)
}
