//! `cargo xtask bless`: runs the tests and accepts every snapshot they produce.

use std::io;

use crate::workspace;

pub(crate) fn run() -> io::Result<()> {
    workspace::run("cargo", &["test", "--release", "--workspace"], &[("INSTA_UPDATE", "always")])
}
