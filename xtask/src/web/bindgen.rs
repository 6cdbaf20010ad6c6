//! The tool that writes the JavaScript beside a module: `xtask/bindgen`, which has a lock file of its own.

use std::io;
use std::path::{Path, PathBuf};

use crate::workspace;

const FOLDER: &str = "xtask/bindgen";

/// Builds the tool below `tools`, unless that was done before; gives its file.
pub(super) fn build(tools: &Path) -> io::Result<PathBuf> {
    let (manifest, target) = (format!("{FOLDER}/Cargo.toml"), tools.join("bindgen"));
    let to = target.display().to_string();
    let args = ["build", "--release", "--locked", "--manifest-path", &manifest, "--target-dir", &to];
    workspace::run("cargo", &args, &[])?;
    Ok(target.join("release").join("xtask-bindgen"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The version of a package in a lock file.
    fn locked<'l>(lock: &'l str, name: &str) -> Option<&'l str> {
        let mut lines = lock.lines().skip_while(|line| *line != format!("name = \"{name}\""));
        lines.nth(1)?.strip_prefix("version = ")
    }

    #[test]
    fn the_tool_is_of_the_version_that_modules_are_built_with() {
        let read = |folder: &str| {
            std::fs::read_to_string(workspace::root().join(folder).join("Cargo.lock")).unwrap()
        };
        let (modules, tool) = (read("."), read(FOLDER));
        assert_eq!(locked(&tool, "wasm-bindgen-shared"), locked(&modules, "wasm-bindgen-shared"));
        assert!(locked(&modules, "wasm-bindgen-shared").is_some());
    }
}
