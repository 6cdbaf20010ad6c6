//! `cargo xtask golden`: rewrites the golden and corrupt program files from their text.

use std::io;

use crate::workspace;

pub(crate) fn run() -> io::Result<()> {
    let test = ["test", "--release", "--package", "fhe-bytecode", "--test", "files", "write_files"];
    let args: Vec<&str> = test.into_iter().chain(["--", "--ignored"]).collect();
    workspace::run("cargo", &args, &[("FHEC_WRITE_GOLDEN", "1")])
}
