//! Every dependency is used by its crate, and has a reason in the architecture.

use serde_json::Value;

use super::links::joined;
use super::tree::{Tree, without_tests};
use crate::workspace;

/// Where the reasons stand.
const REASONS: &str = "docs/ARCHITECTURE.md";
/// Dependencies that a crate names without using: crate, dependency. Its manifest says why.
const ON_PURPOSE: &[(&str, &str)] =
    &[("fhe-input", "npyz"), ("fhec-web", "blake3"), ("fhec-web", "getrandom")];

pub(super) fn check(tree: &Tree) -> Vec<String> {
    let mut found = Vec::new();
    let reasons =
        tree.text(REASONS).split("\n## ").find(|part| part.starts_with("Dependencies")).unwrap_or_default();
    for package in &tree.packages {
        let name = package["name"].as_str().unwrap_or_default();
        let Some(folder) = folder(package) else { continue };
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let wanted = dependency["name"].as_str().unwrap_or_default();
            let spelled = dependency["rename"].as_str().unwrap_or(wanted);
            let is_dev = dependency["kind"] == "dev";
            if !ON_PURPOSE.contains(&(name, wanted)) && !is_used(tree, &folder, spelled, is_dev) {
                found.push(format!("{folder}/Cargo.toml: {spelled} is not used"));
            }
            if dependency["path"].is_null() && !reasons.contains(spelled) {
                found.push(format!("{REASONS}: no reason for {spelled}, which {name} depends on"));
            }
        }
    }
    found.sort();
    found.dedup();
    found
}

/// The folder of a crate from the root.
fn folder(package: &Value) -> Option<String> {
    let manifest = package["manifest_path"].as_str()?;
    let folder = std::path::Path::new(manifest).parent()?;
    Some(folder.strip_prefix(workspace::root()).ok()?.to_string_lossy().into_owned())
}

/// Whether code of a crate names a dependency: its sources, or for tests anything.
fn is_used(tree: &Tree, folder: &str, dependency: &str, is_dev: bool) -> bool {
    let ident = dependency.replace('-', "_");
    let sources = format!("{folder}/src/");
    let tests = format!("{folder}/tests/");
    let in_sources = tree.under(&sources, ".rs").any(|(path, text)| match is_dev {
        true => names(text, &ident) || elsewhere(tree, path, text).any(|text| names(text, &ident)),
        false => names(if path.ends_with("tests.rs") { text } else { without_tests(text) }, &ident),
    });
    in_sources || (is_dev && tree.under(&tests, ".rs").any(|(_, text)| names(text, &ident)))
}

/// Files of other crates that a file takes as its modules.
fn elsewhere<'t>(tree: &'t Tree, path: &'t str, text: &'t str) -> impl Iterator<Item = &'t str> {
    let targets = text.split("#[path = \"").skip(1).filter_map(|rest| rest.split('"').next());
    targets.map(move |target| tree.text(&joined(path, target)))
}

/// Whether code has an identifier, as the begin of a path or in an attribute.
fn names(text: &str, ident: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(ident).any(|(at, _)| {
        let before = text[..at].chars().next_back().is_some_and(is_word);
        let after = &text[at + ident.len()..];
        !before && (after.starts_with("::") || after.starts_with(';') || after.starts_with(" as "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dependency_is_used_where_its_name_begins_a_path() {
        assert!(names("use serde::Serialize;", "serde") && names("#[derive(serde::Serialize)]", "serde"));
        assert!(!names("use serde_json::Value;", "serde") && !names("// of serde", "serde"));
    }

    #[test]
    fn what_only_tests_use_is_no_normal_dependency() {
        let code = "#[cfg(test)]\nmod tests {\n    use ron::from_str;\n}\n";
        let tree = Tree::of(&[("a/src/lib.rs", code)]);
        assert!(!is_used(&tree, "a", "ron", false) && is_used(&tree, "a", "ron", true));
    }
}
