//! `cargo xtask check`: runs the CI script.

use std::io;

use crate::workspace;

pub(crate) fn run() -> io::Result<()> {
    workspace::run("bash", &[".ci/run"], &[])
}
