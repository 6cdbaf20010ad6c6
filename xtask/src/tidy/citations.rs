//! Citations have the form `paper §4.2`, and the paper has such a section.

use super::tree::{Tree, numbered};

/// Sections of the paper; `docs/STYLE.md` says what they are about.
const SECTIONS: &[&str] = &[
    "2", "2.1", "2.2", "2.3", "3", "3.1", "3.2", "4", "4.1", "4.2", "4.3", "4.4", "5", "5.1", "5.2", "5.3",
    "5.4", "6", "6.1", "6.2", "D", "E", "F", "G",
];

/// Where sections are listed, not cited.
const LISTS: &[&str] = &["docs/STYLE.md", "xtask/src/tidy/citations.rs"];

pub(super) fn check(tree: &Tree) -> Vec<String> {
    let mut found = Vec::new();
    for (path, text) in tree.texts.iter().filter(|(path, _)| !LISTS.contains(&path.as_str())) {
        for (line, words) in numbered(text) {
            found.extend(complaint(words).map(|why| format!("{path}:{line}: {why}")));
        }
    }
    found
}

/// What is wrong with the citations of a line, if anything.
fn complaint(line: &str) -> Option<String> {
    let mut is_cited = false;
    let mut rest = line;
    while let Some(at) = rest.find('§') {
        let before = &rest[..at];
        let after = &rest[at + '§'.len_utf8()..];
        let end = after.find(|c: char| !c.is_ascii_alphanumeric() && c != '.').unwrap_or(after.len());
        let section = after[..end].trim_end_matches('.');
        // A list goes on after its first section: `paper §4.1, §4.2 and §E`.
        is_cited = before.ends_with("paper ") || (is_cited && [", ", " and ", " to "].contains(&before));
        if !is_cited {
            return Some(format!("`§{section}` is no citation: write `paper §{section}`, or `ours`"));
        }
        if !SECTIONS.contains(&section) {
            return Some(format!("the paper has no §{section}"));
        }
        rest = &after[section.len()..];
    }
    None
}

#[cfg(test)]
mod tests {
    use super::complaint;

    #[test]
    fn citations_have_one_form() {
        for good in ["paper §4.1", "(paper §4.1, §E)", "see paper §5.2. Then", "no section", "\"paper §F\""]
        {
            assert_eq!(complaint(good), None, "{good}");
        }
        for bad in
            ["§4.1", "DESIGN §4", "paper §9", "paper §4.9", "paper section §4.1", "(paper §4.1) and (§4.2)"]
        {
            assert!(complaint(bad).is_some(), "{bad}");
        }
    }
}
