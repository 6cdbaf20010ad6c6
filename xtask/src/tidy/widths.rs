//! Widths of comments, and paths that only one machine has.

use super::tree::{Tree, numbered};

/// Most characters of a line that is a comment; rustfmt leaves these alone.
const WIDEST: usize = 130;

/// Lines of comments that are too wide.
pub(super) fn comments(tree: &Tree) -> Vec<String> {
    let mut found = Vec::new();
    for (path, text) in tree.under("", ".rs") {
        let comments = numbered(text).filter(|(_, line)| line.trim_start().starts_with("//"));
        let wide = comments.map(|(n, line)| (n, line.chars().count())).filter(|(_, width)| *width > WIDEST);
        found.extend(wide.map(|(n, width)| format!("{path}:{n}: {width} characters, more than {WIDEST}")));
    }
    found
}

/// Folders in which people and machines keep their own things.
fn private_folders() -> Vec<String> {
    // Put together here, so that this file does not name them itself.
    let unix = ["home", "root", "Users", "work", "tmp", "mnt"].map(|name| format!("/{name}/"));
    unix.into_iter().chain([format!("C:{}", '\\')]).collect()
}

/// Absolute paths in sources and documents.
pub(super) fn machine_paths(tree: &Tree) -> Vec<String> {
    let folders = private_folders();
    let mut found = Vec::new();
    for (path, text) in &tree.texts {
        for (line, words) in numbered(text) {
            for folder in folders.iter().filter(|folder| starts_a_path(words, folder)) {
                found.push(format!("{path}:{line}: a path below {folder}"));
            }
        }
    }
    found
}

/// Whether a line has a word that begins with the folder.
fn starts_a_path(line: &str, folder: &str) -> bool {
    let inside = |c: char| c.is_alphanumeric() || "._-/}~$".contains(c);
    line.match_indices(folder).any(|(at, _)| !line[..at].chars().next_back().is_some_and(inside))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_comments_are_found_and_wide_code_is_rustfmts() {
        let wide = "x".repeat(WIDEST);
        let tree = Tree::of(&[("a.rs", &format!("// {wide}\nlet {wide} = 1;\n/// fine\n"))]);
        assert_eq!(comments(&tree), [format!("a.rs:1: {} characters, more than {WIDEST}", WIDEST + 3)]);
    }

    #[test]
    fn paths_of_machines_are_found_and_parts_of_paths_are_not() {
        let folder = &private_folders()[4];
        let bad = format!("see {folder}file\n");
        let good = format!("see target{folder}file and $X{folder}file\n");
        let tree = Tree::of(&[("a.md", &bad), ("b.md", &good)]);
        let found = machine_paths(&tree);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("a.md:1:"));
    }
}
