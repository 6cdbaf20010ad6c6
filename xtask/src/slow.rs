//! `cargo xtask slow`: runs the tests marked `#[ignore]`.

use std::io;

use crate::{web, workspace};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only tests whose name contains this
    filter: Option<String>,
}

pub(crate) fn run(args: &Args) -> io::Result<()> {
    // What the tests in a browser are about; without its tools it says so, and so do they.
    web::run(&web::Args::default())?;
    let mut command = vec!["test", "--release", "--workspace"];
    command.extend(args.filter.as_deref());
    // One at a time: some take most of the memory.
    command.extend(["--", "--ignored", "--nocapture", "--test-threads=1"]);
    workspace::run("cargo", &command, &[])
}
