//! Links between documents, and paths that documents and comments name.

use super::tree::{Tree, numbered};

/// Top-level folders whose files are named by their path.
const FOLDERS: [&str; 9] =
    ["compiler/", "docs/", "examples/", "onnx-models/", "passes/", "runtime/", "tests/", "xtask/", ".ci/"];
/// Endings that make a word a path.
const ENDINGS: [&str; 8] = [".rs", ".md", ".py", ".toml", ".ron", ".onnx", ".svg", ".csv"];

pub(super) fn check(tree: &Tree) -> Vec<String> {
    let mut found = Vec::new();
    for (path, text) in tree.under("", ".md") {
        for (line, target) in links(text) {
            if let Some(why) = broken(tree, path, target) {
                found.push(format!("{path}:{line}: {why}"));
            }
        }
    }
    let prose = tree.texts.iter().filter(|(path, _)| path.ends_with(".md") || path.ends_with(".rs"));
    for (path, text) in prose {
        for (line, words) in numbered(text) {
            let comment =
                if path.ends_with(".md") { words } else { words.split_once("//").map_or("", |(_, c)| c) };
            let missing = named_paths(comment).filter(|named| !tree.has(named));
            found.extend(missing.map(|named| format!("{path}:{line}: there is no {named}")));
        }
    }
    found
}

/// Targets of the links of a document outside its code blocks, with their lines.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut is_code = false;
    let mut found = Vec::new();
    for (line, words) in numbered(text) {
        is_code ^= words.trim_start().starts_with("```");
        if !is_code {
            let targets = words.split("](").skip(1).filter_map(|rest| rest.split(')').next());
            found.extend(targets.map(|target| (line, target)));
        }
    }
    found
}

/// Why a link of a document leads nowhere, if it does.
fn broken(tree: &Tree, document: &str, target: &str) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    let file = if file.is_empty() { document.to_owned() } else { joined(document, file) };
    if !tree.has(&file) {
        return Some(format!("`{target}` leads to no file"));
    }
    let is_there = anchor.is_empty() || anchors(tree.text(&file)).any(|found| found == anchor);
    (!is_there).then(|| format!("`{target}`: {file} has no such heading"))
}

/// The path of a link from its document.
pub(super) fn joined(document: &str, link: &str) -> String {
    let mut parts: Vec<&str> = document.split('/').collect();
    parts.pop();
    for part in link.split('/').filter(|part| !part.is_empty() && *part != ".") {
        match part {
            ".." => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

/// What headings are called in links.
fn anchors(text: &str) -> impl Iterator<Item = String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    headings.map(|line| {
        let title = line.trim_start_matches('#').trim().to_lowercase();
        let kept = title.chars().filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    })
}

/// Paths of the repository that a line names.
fn named_paths(line: &str) -> impl Iterator<Item = &str> {
    let is_path = |c: char| c.is_ascii_alphanumeric() || "._/-".contains(c);
    let words = line.split(move |c: char| !is_path(c)).map(|word| word.trim_end_matches('.'));
    words.filter(|word| {
        FOLDERS.iter().any(|folder| word.starts_with(folder)) && ENDINGS.iter().any(|end| word.ends_with(end))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dead_links_anchors_and_paths_are_found() {
        let text = "# A b\n[x](b.md) [y](#a-b) [z](#no) [w](c.md)\nsee `docs/none.rs`, docs/b.md.\n```\n[no](q.md)\n```\n";
        let tree = Tree::of(&[("docs/a.md", text), ("docs/b.md", "# B\n")]);
        let found = check(&tree);
        let wrong = ["docs/a.md:2: `#no`", "docs/a.md:2: `c.md`", "docs/a.md:3: there is no docs/none.rs"];
        assert_eq!(found.len(), wrong.len(), "{found:?}");
        assert!(wrong.iter().all(|start| found.iter().any(|f| f.starts_with(start))), "{found:?}");
    }

    #[test]
    fn links_are_relative_to_their_document() {
        assert_eq!(joined("docs/notes/a.md", "../b.md"), "docs/b.md");
        assert_eq!(joined("README.md", "docs/b.md"), "docs/b.md");
    }
}
