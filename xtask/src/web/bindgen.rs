//! The command of wasm-bindgen, in the version that the lock file names.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::workspace;

/// The command: one on the path that has the right version, or one that is installed below `tools`.
pub(super) fn find(tools: &Path) -> Result<PathBuf, String> {
    let version = version()?;
    let own = tools.join("bin").join("wasm-bindgen");
    if let Some(found) = [PathBuf::from("wasm-bindgen"), own.clone()].into_iter().find(|p| is(p, &version)) {
        return Ok(found);
    }
    println!("installing wasm-bindgen {version} below {}", tools.display());
    let root = tools.display().to_string();
    let args = ["install", "wasm-bindgen-cli", "--version", &version, "--root", &root, "--force"];
    workspace::run("cargo", &args, &[]).map_err(|error| error.to_string())?;
    match is(&own, &version) {
        true => Ok(own),
        false => Err(format!("{} is not wasm-bindgen {version}", own.display())),
    }
}

fn is(command: &Path, version: &str) -> bool {
    let said = Command::new(command).arg("--version").output().ok();
    said.is_some_and(|done| String::from_utf8_lossy(&done.stdout).trim() == format!("wasm-bindgen {version}"))
}

/// The version in the lock file.
fn version() -> Result<String, String> {
    let lock = std::fs::read_to_string(workspace::root().join("Cargo.lock")).map_err(|e| e.to_string())?;
    locked(&lock, "wasm-bindgen").ok_or_else(|| "Cargo.lock has no wasm-bindgen".to_owned())
}

fn locked(lock: &str, name: &str) -> Option<String> {
    let mut lines = lock.lines().skip_while(|line| *line != format!("name = \"{name}\""));
    let version = lines.nth(1)?.strip_prefix("version = \"")?;
    Some(version.trim_end_matches('"').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_the_one_of_the_package_itself() {
        let lock = "[[package]]\nname = \"a-b\"\nversion = \"1.0.0\"\n\n[[package]]\nname = \"a\"\nversion = \"2.0.0\"\n";
        assert_eq!(locked(lock, "a").as_deref(), Some("2.0.0"));
        assert_eq!(locked(lock, "c"), None);
    }
}
