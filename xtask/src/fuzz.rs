//! `cargo xtask fuzz`: builds the mutation harness and runs it.

use std::io;

use crate::workspace;

#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Args {
    /// Target and options; `--help` lists them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<String>,
}

pub(crate) fn run(args: &Args) -> io::Result<()> {
    workspace::run("cargo", &["build", "--release", "--workspace", "--quiet"], &[])?;
    let args: Vec<&str> = args.args.iter().map(String::as_str).collect();
    workspace::run("target/release/fhec-fuzz", &args, &[])
}
