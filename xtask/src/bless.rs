//! `cargo xtask bless`: runs the tests and accepts every snapshot they produce.

use std::io;

use crate::workspace;

pub(crate) fn run() -> io::Result<()> {
    workspace::run("cargo", &[&["test"], &workspace::WHOLE[..]].concat(), &[("INSTA_UPDATE", "always")])
}
