//! `cargo xtask golden`: rewrites the golden and corrupt program files from their text, and the golden key and ciphertext
//! files from fixed seeds.

use std::io;

use crate::workspace;

pub(crate) fn run() -> io::Result<()> {
    for (package, test) in [("fhe-bytecode", "files"), ("fhe-machine", "golden")] {
        let test = ["test", "--release", "--package", package, "--test", test, "write_files"];
        let args: Vec<&str> = test.into_iter().chain(["--", "--ignored"]).collect();
        workspace::run("cargo", &args, &[("FHEC_WRITE_GOLDEN", "1")])?;
    }
    Ok(())
}
