//! The commands of the documents, run as they are written.
//!
//! A block marked `sh` is run; `sh skip (reason)` is shown with its reason instead. All blocks of a document run in order in
//! one temporary folder that looks like the root of the repository, with the built commands on the path. A block of `cargo`
//! commands runs in the repository itself.

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::workspace;

/// What of the repository a document's commands see.
const VISIBLE: [&str; 5] = ["onnx-models", "examples", "docs", "target", "tests"];

/// A fenced block of a document.
#[derive(Debug, PartialEq, Eq)]
struct Block {
    /// Line of the first command, from one.
    line: usize,
    /// Why it is not run, if it is not.
    skip: Option<String>,
    commands: String,
}

/// The documents with commands: the README, and every page below `docs`.
pub(crate) fn documents() -> io::Result<Vec<PathBuf>> {
    let mut found = vec![PathBuf::from("README.md")];
    let mut folders = vec![PathBuf::from("docs")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(workspace::root().join(&folder))? {
            let path = folder.join(entry?.file_name());
            if workspace::root().join(&path).is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "md") {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Runs the blocks of a document; the first command that fails ends it.
pub(super) fn execute(document: &Path) -> io::Result<()> {
    let root = workspace::root();
    let blocks = blocks(&std::fs::read_to_string(root.join(document))?);
    let mut script = String::new();
    let place = |line: usize| format!("{}:{line}", document.display());
    for block in &blocks {
        match &block.skip {
            Some(reason) => println!("{}: skipped ({reason})", place(block.line)),
            None => {
                let _ = writeln!(script, "echo '--- {}'", place(block.line));
                script.push_str(&in_place(&block.commands, &root));
            }
        }
    }
    if script.is_empty() {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    for name in VISIBLE {
        std::os::unix::fs::symlink(root.join(name), folder.path().join(name))?;
    }
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", root.join("target/release").display());
    let status =
        Command::new("sh").args(["-euc", &script]).env("PATH", path).current_dir(folder.path()).status()?;
    if status.success() {
        Ok(())
    } else {
        Err(io::Error::other(format!("{}: a command failed, the last one above", document.display())))
    }
}

/// Commands of cargo belong to the repository, all others to the folder.
fn in_place(commands: &str, root: &Path) -> String {
    let lines = commands.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#'));
    if lines.into_iter().all(|line| line.starts_with("cargo ")) {
        format!("(cd '{}'\n{commands})\n", root.display())
    } else {
        commands.to_owned()
    }
}

fn blocks(text: &str) -> Vec<Block> {
    let mut found: Vec<Block> = Vec::new();
    let mut inside = false;
    for (index, line) in text.lines().enumerate() {
        match (inside, line.strip_prefix("```")) {
            (false, Some(info)) if info == "sh" || info.starts_with("sh ") => {
                let skip = info.strip_prefix("sh skip").map(|r| r.trim().trim_matches(['(', ')']).to_owned());
                found.push(Block { line: index + 2, skip, commands: String::new() });
                inside = true;
            }
            (true, Some(_)) => inside = false,
            (true, None) => {
                if let Some(block) = found.last_mut() {
                    block.commands.push_str(line);
                    block.commands.push('\n');
                }
            }
            (false, _) => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_blocks_marked_as_shell_are_found() {
        let text = "a\n```sh\nls\npwd\n```\n```text\nno\n```\n```sh skip (takes hours)\ntrain\n```\n";
        let skip = Some("takes hours".to_owned());
        assert_eq!(
            blocks(text),
            [
                Block { line: 3, skip: None, commands: "ls\npwd\n".into() },
                Block { line: 10, skip, commands: "train\n".into() }
            ]
        );
    }

    #[test]
    fn every_block_that_is_skipped_says_why() {
        for document in documents().unwrap() {
            let text = std::fs::read_to_string(workspace::root().join(&document)).unwrap();
            for block in blocks(&text) {
                assert_ne!(block.skip.as_deref(), Some(""), "{}:{}", document.display(), block.line);
            }
        }
    }
}
