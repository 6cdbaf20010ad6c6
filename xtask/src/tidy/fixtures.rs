//! Every pass has fixtures, and every fixture its snapshot.

use std::collections::BTreeSet;

use super::tree::Tree;

const PASSES: &str = "passes/src/";
const FIXTURES: &str = "tests/passes";
/// Passes that record facts about every graph, so that there is nothing they must leave alone.
const ANALYSES: [&str; 1] = ["record-ranges"];

pub(super) fn check(tree: &Tree) -> Vec<String> {
    let names: BTreeSet<&str> = tree.under(PASSES, ".rs").filter_map(|(_, text)| pass_name(text)).collect();
    if names.is_empty() {
        return vec![format!("{PASSES}: no pass was found, so this check sees nothing")];
    }
    let fixtures = |name: &str, ending: &str| -> BTreeSet<String> {
        let folder = format!("{FIXTURES}/{name}/");
        let files = tree.files.iter().filter_map(|file| file.strip_prefix(&folder)?.strip_suffix(ending));
        files.map(str::to_owned).collect()
    };
    let mut found = Vec::new();
    for name in &names {
        let (graphs, snapshots) = (fixtures(name, ".ron"), fixtures(name, ".snap"));
        if graphs.is_empty() {
            found.push(format!("{FIXTURES}/{name}: the pass has no fixture"));
        }
        if !ANALYSES.contains(name) && !graphs.iter().any(|graph| graph.starts_with("near-miss")) {
            found.push(format!("{FIXTURES}/{name}: the pass has no near miss"));
        }
        let alone = graphs.symmetric_difference(&snapshots);
        found.extend(alone.map(|file| format!("{FIXTURES}/{name}/{file}: fixture or snapshot is missing")));
    }
    let folders = tree.files.iter().filter_map(|file| file.strip_prefix(FIXTURES)?.split('/').nth(1));
    let strays: BTreeSet<&str> = folders.filter(|folder| !names.contains(folder)).collect();
    found.extend(strays.iter().map(|folder| format!("{FIXTURES}/{folder}: there is no such pass")));
    found
}

/// The name of the pass that a file implements.
fn pass_name(text: &str) -> Option<&str> {
    let (_, body) = text.split_once("impl Pass for ")?;
    let (_, body) = body.split_once("fn name(&self) -> &'static str {")?;
    let named = match body.trim_start().starts_with("NAME") {
        true => text.split_once("const NAME: &str = ")?.1,
        false => body,
    };
    named.split('"').nth(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_without_fixtures_and_fixtures_without_passes_are_found() {
        let pass = "impl Pass for A {\n fn name(&self) -> &'static str {\n \"a\"\n }\n}";
        let tree = Tree::of(&[
            ("passes/src/a.rs", pass),
            ("tests/passes/b/x.ron", ""),
            ("tests/passes/a/y.ron", ""),
        ]);
        let found = check(&tree).join("\n");
        for part in ["a: the pass has no near miss", "a/y: fixture or snapshot", "b: there is no such pass"] {
            assert!(found.contains(part), "{found}");
        }
    }
}
