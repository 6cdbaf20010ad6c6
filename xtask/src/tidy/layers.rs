//! Crates and folders know what the table of layers allows.

use serde_json::Value;

use super::tree::{Tree, numbered, without_tests};

/// The table stands with the tests, which use it too.
#[allow(dead_code, unreachable_pub)]
#[path = "../../../tests/src/layers.rs"]
mod table;

use table::{FREE, LAYERS, UNKNOWN};

/// Where unsafe code may be: vector kernels, and the counting allocator of the fuzzer.
const WITH_UNSAFE: [&str; 2] = ["runtime/ring/", "tests/fuzz/"];

/// Dependencies between the workspace's crates, tests aside.
pub(super) fn crates(tree: &Tree) -> Vec<String> {
    let mut found = Vec::new();
    for package in &tree.packages {
        let name = package["name"].as_str().unwrap_or_default();
        if FREE.contains(&name) {
            continue;
        }
        let Some((_, allowed)) = LAYERS.iter().find(|(layer, _)| *layer == name) else {
            found.push(format!("tests/src/layers.rs: {name} is missing"));
            continue;
        };
        let ours = package["dependencies"].as_array().into_iter().flatten().filter(|d| is_normal_path(d));
        for dependency in ours.filter_map(|dependency| dependency["name"].as_str()) {
            if !allowed.contains(&dependency) {
                found.push(format!(
                    "{name} depends on {dependency}, which tests/src/layers.rs does not allow"
                ));
            }
        }
    }
    found
}

fn is_normal_path(dependency: &Value) -> bool {
    dependency["kind"].is_null() && dependency["path"].is_string()
}

/// Words that a folder's code must not have.
pub(super) fn modules(tree: &Tree) -> Vec<String> {
    let mut found = Vec::new();
    for (folder, words, why) in UNKNOWN {
        let is_test = |path: &str| path.contains("/tests/") || path.ends_with("tests.rs");
        let below = format!("{folder}/");
        for (path, text) in tree.under(&below, ".rs").filter(|(path, _)| !is_test(path)) {
            for (line, code) in numbered(without_tests(text)) {
                let code = code.split("//").next().unwrap_or_default();
                for word in words.iter().filter(|word| mentions(code, word)) {
                    found.push(format!("{path}:{line}: `{word}`: {why}"));
                }
            }
        }
    }
    found
}

/// Whether code has a word that is not the end or begin of a longer one.
fn mentions(code: &str, word: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(word).any(|(at, _)| {
        let before = code[..at].chars().next_back().is_some_and(is_word);
        let after = code[at + word.len()..].chars().next().is_some_and(is_word);
        !before && (!after || !word.ends_with(is_word) || word.ends_with("tract"))
    })
}

/// Every crate forbids unsafe code, but the one that has kernels.
pub(super) fn unsafe_code(tree: &Tree) -> Vec<String> {
    let roots = |path: &str| path.ends_with("src/lib.rs") || path.ends_with("src/main.rs");
    let ours =
        tree.texts.iter().filter(|(path, _)| roots(path) && !WITH_UNSAFE.iter().any(|f| path.starts_with(f)));
    ours.filter(|(path, text)| !text.contains("forbid(unsafe_code)") && !is_thin(path, tree))
        .map(|(path, _)| format!("{path}: `#![forbid(unsafe_code)]` is missing"))
        .collect()
}

/// A `main.rs` beside a library is its crate only in name.
fn is_thin(path: &str, tree: &Tree) -> bool {
    path.strip_suffix("main.rs").is_some_and(|folder| tree.has(&format!("{folder}lib.rs")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forbidden_words_are_found_outside_comments_and_tests() {
        let code = "use crate::cli::x;\n// crate::cli\n#[cfg(test)]\nmod tests {\nuse crate::cli;\n}\n";
        let tree = Tree::of(&[("compiler/src/report/a.rs", code), ("compiler/src/cli/b.rs", code)]);
        let found = modules(&tree);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("compiler/src/report/a.rs:1:"), "{found:?}");
    }

    #[test]
    fn words_are_whole() {
        assert!(mentions("use tract_onnx::pb;", "tract") && mentions("crate::cli::run()", "crate::cli"));
        assert!(!mentions("fn subtract()", "tract") && !mentions("crate::climate", "crate::cli"));
    }

    #[test]
    fn a_crate_root_without_the_attribute_is_found() {
        let tree = Tree::of(&[("a/src/lib.rs", "//! A."), ("runtime/ring/src/lib.rs", "//! Ring.")]);
        assert_eq!(unsafe_code(&tree), ["a/src/lib.rs: `#![forbid(unsafe_code)]` is missing"]);
    }
}
