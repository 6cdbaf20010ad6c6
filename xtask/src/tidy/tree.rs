//! The files that checks look at: what git tracks, or would track.

use std::collections::BTreeMap;
use std::io;
use std::process::Command;

use serde_json::Value;

use crate::workspace;

/// Endings of files that are text and ours.
const TEXTS: [&str; 10] = ["rs", "md", "py", "toml", "ron", "css", "js", "ipynb", "csv", "run"];

/// The tree as checks see it.
pub(super) struct Tree {
    /// Text files by their path from the root.
    pub(super) texts: BTreeMap<String, String>,
    /// All files, text or not.
    pub(super) files: Vec<String>,
    /// What cargo knows of the workspace's crates.
    pub(super) packages: Vec<Value>,
}

impl Tree {
    /// Reads the repository.
    pub(super) fn read() -> io::Result<Self> {
        let listed = output("git", &["ls-files", "--cached", "--others", "--exclude-standard"])?;
        let mut files: Vec<String> = listed.lines().map(str::to_owned).collect();
        files.sort();
        files.dedup();
        files.retain(|file| workspace::root().join(file).exists());
        let mut texts = BTreeMap::new();
        for file in files.iter().filter(|file| is_text(file)) {
            let bytes = std::fs::read(workspace::root().join(file))?;
            texts.insert(file.clone(), String::from_utf8_lossy(&bytes).into_owned());
        }
        let metadata = output("cargo", &["metadata", "--offline", "--no-deps", "--format-version", "1"])?;
        let metadata: Value = serde_json::from_str(&metadata).map_err(io::Error::other)?;
        let packages = metadata["packages"].as_array().cloned().unwrap_or_default();
        Ok(Self { texts, files, packages })
    }

    /// Text files below a folder with an ending.
    pub(super) fn under<'t>(
        &'t self,
        folder: &'t str,
        ending: &'t str,
    ) -> impl Iterator<Item = (&'t str, &'t str)> {
        let wanted = move |path: &str| path.starts_with(folder) && path.ends_with(ending);
        self.texts.iter().filter(move |(path, _)| wanted(path)).map(|(p, t)| (p.as_str(), t.as_str()))
    }

    /// A file's text; empty if there is none, which the check then complains about.
    pub(super) fn text(&self, path: &str) -> &str {
        self.texts.get(path).map_or("", String::as_str)
    }

    /// Whether a file or folder exists in the repository.
    pub(super) fn has(&self, path: &str) -> bool {
        let folder = format!("{}/", path.trim_end_matches('/'));
        self.files.iter().any(|file| file == path || file.starts_with(&folder))
    }

    /// A tree made of texts alone, for tests.
    #[cfg(test)]
    pub(super) fn of(texts: &[(&str, &str)]) -> Self {
        let texts: BTreeMap<_, _> = texts.iter().map(|(p, t)| ((*p).to_owned(), (*t).to_owned())).collect();
        Self { files: texts.keys().cloned().collect(), texts, packages: Vec::new() }
    }
}

fn is_text(path: &str) -> bool {
    path.rsplit(['.', '/']).next().is_some_and(|ending| TEXTS.contains(&ending))
}

fn output(program: &str, args: &[&str]) -> io::Result<String> {
    let output = Command::new(program).args(args).current_dir(workspace::root()).output()?;
    if !output.status.success() {
        return Err(io::Error::other(format!("`{program}`: {}", String::from_utf8_lossy(&output.stderr))));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The lines of a text with their numbers, from one.
pub(super) fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().map(|(index, line)| (index + 1, line))
}

/// The text before the tests of a file.
pub(super) fn without_tests(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod tests {").next().unwrap_or(text)
}
