//! Runs commands in the root of the workspace.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder of the workspace's `Cargo.toml`.
pub(crate) fn root() -> PathBuf {
    let mut above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    above
        .find(|folder| folder.join("Cargo.lock").exists())
        .map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}

/// Runs `program` there; anything but success is an error.
pub(crate) fn run(program: &str, args: &[&str], env: &[(&str, &str)]) -> io::Result<()> {
    let status = Command::new(program).args(args).envs(env.iter().copied()).current_dir(root()).status()?;
    match status.success() {
        true => Ok(()),
        false => Err(io::Error::other(format!("`{program} {}` ended with {status}", args.join(" ")))),
    }
}
