//! Every instruction stands in the table of the format's specification.

use super::tree::Tree;

const SOURCE: &str = "runtime/bytecode/src/program/instruction.rs";
const PAGE: &str = "docs/FORMAT.md";

pub(super) fn check(tree: &Tree) -> Vec<String> {
    let instructions = variants(tree.text(SOURCE));
    if instructions.is_empty() {
        return vec![format!("{SOURCE}: no instruction was found, so this check sees nothing")];
    }
    let page = tree.text(PAGE);
    let missing = instructions.into_iter().filter(|name| !page.contains(&format!(" | {name} | ")));
    missing.map(|name| format!("{PAGE}: the instruction `{name}` is missing")).collect()
}

/// The variants of `enum Op`, spelled as the page spells them.
fn variants(source: &str) -> Vec<String> {
    let Some((_, body)) = source.split_once("pub enum Op {") else { return Vec::new() };
    let body = body.split("\n}").next().unwrap_or_default();
    let is_variant = |line: &&str| {
        line.strip_prefix("    ").is_some_and(|l| l.starts_with(|c: char| c.is_ascii_uppercase()))
    };
    let name = |line: &str| -> String {
        let name = line.trim().split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
        let spelled = name.chars().map(|c| match c.is_ascii_uppercase() {
            true => format!("-{}", c.to_ascii_lowercase()),
            false => c.to_string(),
        });
        spelled.collect::<String>().trim_start_matches('-').to_owned()
    };
    body.lines().filter(is_variant).map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instruction_without_a_row_is_found() {
        let source = "pub enum Op {\n    /// A.\n    MulPlain {\n        dst: X,\n    },\n    Free,\n}\n";
        let tree = Tree::of(&[(SOURCE, source), (PAGE, "| 0 | free | src |\n")]);
        assert_eq!(check(&tree), ["docs/FORMAT.md: the instruction `mul-plain` is missing"]);
    }
}
