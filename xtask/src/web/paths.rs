//! Folders of the machine that builds, kept out of what it builds: the same sources give the same bytes in any folder.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// What cargo takes flags of the compiler from, whatever is in them.
pub(super) const FLAGS: &str = "CARGO_ENCODED_RUSTFLAGS";
/// What stands between two of them.
pub(super) const SEPARATOR: &str = "\u{1f}";

/// Flags that replace the folders of registries, which panics would name.
pub(super) fn hidden() -> io::Result<Vec<String>> {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| env::home_dir().map(|home| home.join(".cargo"))).unwrap_or_default();
    let registries = fs::read_dir(home.join("registry/src"))?;
    registries.map(|entry| Ok(replaced(&entry?.path(), "crates"))).collect()
}

/// A flag that writes `name` instead of a folder.
pub(super) fn replaced(folder: &Path, name: &str) -> String {
    format!("--remap-path-prefix={}={name}", folder.display())
}
