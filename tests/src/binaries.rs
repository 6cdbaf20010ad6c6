//! The real binaries, for tests that start them.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Path of a binary of this workspace; the tests of the whole workspace build it.
///
/// # Panics
/// Panics if it was not built.
pub fn binary(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a test knows its own path");
    let folders = test.ancestors().skip(1).take(2);
    let found = folders.map(|folder| folder.join(format!("{name}{}", std::env::consts::EXE_SUFFIX)));
    let found: Vec<PathBuf> = found.filter(|path| path.is_file()).collect();
    found
        .into_iter()
        .next()
        .unwrap_or_else(|| panic!("run cargo build --release --workspace first: no {name}"))
}

/// A command line such as `fhe-run info a.key`, to be run in `folder`.
pub fn command(folder: &Path, line: &str) -> Command {
    let mut words = line.split_whitespace();
    let mut command = Command::new(binary(words.next().unwrap_or_default()));
    command.current_dir(folder).args(words).env("NO_COLOR", "1");
    command
}

/// Runs a command line in `folder`.
///
/// # Panics
/// Panics if it cannot be started.
pub fn output(folder: &Path, line: &str) -> Output {
    command(folder, line).output().unwrap_or_else(|e| panic!("{line}: {e}"))
}

/// Runs a command line that must succeed.
///
/// # Panics
/// Panics if it does not.
pub fn succeed(folder: &Path, line: &str) -> Output {
    let output = output(folder, line);
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    output
}
