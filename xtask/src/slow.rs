//! `cargo xtask slow`: runs the tests marked `#[ignore]`.

use std::io;

use crate::workspace;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only tests whose name contains this
    filter: Option<String>,
}

pub(crate) fn run(args: &Args) -> io::Result<()> {
    let mut command = vec!["test", "--release", "--workspace"];
    command.extend(args.filter.as_deref());
    command.extend(["--", "--ignored", "--nocapture"]);
    workspace::run("cargo", &command, &[])
}
