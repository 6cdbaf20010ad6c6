//! One page per command: the grammar from clap, between two marks; what stands after them is written by hand.

use std::fmt::Write as _;
use std::io;
use std::path::PathBuf;

use clap::{Arg, Command};

use crate::workspace;

const FOLDER: &str = "docs/commands";
const BEGIN: &str = "<!-- from the command line's own help; `cargo xtask docs` keeps it up to date -->";
const END: &str = "<!-- by hand from here -->";

/// Writes the pages; returns those that changed.
pub(crate) fn write() -> io::Result<Vec<String>> {
    let mut changed = Vec::new();
    for (path, text) in pages()? {
        if std::fs::read_to_string(workspace::root().join(&path)).ok().as_deref() != Some(&text) {
            std::fs::write(workspace::root().join(&path), text)?;
            changed.push(path.display().to_string());
        }
    }
    Ok(changed)
}

/// Every page as it should be.
fn pages() -> io::Result<Vec<(PathBuf, String)>> {
    let mut pages = Vec::new();
    let mut index = "# Commands\n\nEvery command prints results to standard output and everything else to standard error. Exit codes: 0 done, \
         1 cannot do that,\n2 usage, 3 a bug of ours, 130 interrupted. `NO_COLOR` switches colors off, \
         `--quiet` everything\nbut results and errors, and `--format json` gives results that programs can read.\n\n\
         | command | what it does |\n|---|---|\n"
        .to_owned();
    for mut command in [fhec::cli::command(), fhe_runtime::cli::command()] {
        command.build();
        let program = command.get_name().to_owned();
        for sub in command.get_subcommands().filter(|s| !s.is_hide_set() && s.get_name() != "help") {
            let name = format!("{program}-{}", sub.get_name());
            let about = sub.get_about().map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(index, "| [`{program} {}`]({name}.md) | {about} |", sub.get_name());
            let path = PathBuf::from(FOLDER).join(format!("{name}.md"));
            let old = std::fs::read_to_string(workspace::root().join(&path)).unwrap_or_default();
            let by_hand = old.split_once(END).map_or("\n", |(_, rest)| rest);
            pages.push((path, format!("{}{END}{by_hand}", generated(&program, sub))));
        }
    }
    pages.push((PathBuf::from(FOLDER).join("README.md"), index));
    Ok(pages)
}

/// The part of a page that follows from the grammar.
fn generated(program: &str, command: &Command) -> String {
    let title = format!("{program} {}", command.get_name());
    let mut text = format!("# {title}\n\n{BEGIN}\n\n");
    let about = command.get_long_about().or(command.get_about());
    let _ = writeln!(text, "{}.\n", about.map(ToString::to_string).unwrap_or_default());
    let usage = command.clone().render_usage().to_string();
    let _ = writeln!(text, "```text\n{}\n```\n", usage.trim_start_matches("Usage: "));
    text.push_str("| argument | meaning |\n|---|---|\n");
    let shown = |arg: &&Arg| !arg.is_hide_set() && arg.get_id() != "help" && arg.get_id() != "version";
    let (positional, options): (Vec<&Arg>, Vec<&Arg>) =
        command.get_arguments().filter(shown).partition(|arg| arg.is_positional());
    for arg in positional.into_iter().chain(options) {
        let _ = writeln!(text, "| {} | {} |", spelled(arg), meaning(arg));
    }
    if let Some(after) = command.get_after_help() {
        let after = after.to_string();
        let after = after.trim_start_matches("Examples:").trim_start_matches("Example:");
        let lines: Vec<&str> = after.lines().map(|l| l.strip_prefix("  ").unwrap_or(l)).collect();
        let _ = writeln!(text, "\n```text\n{}\n```", lines.join("\n").trim());
    }
    text.push('\n');
    text
}

fn spelled(arg: &Arg) -> String {
    let value = arg.get_value_names().and_then(|names| names.first()).map(ToString::to_string);
    let value = value.unwrap_or_else(|| arg.get_id().to_string().to_uppercase());
    let takes_value = arg.get_action().takes_values();
    match (arg.get_short(), arg.get_long()) {
        (None, None) => format!("`<{value}>`"),
        (short, long) => {
            let names = short.map(|s| format!("-{s}")).into_iter().chain(long.map(|l| format!("--{l}")));
            let names: Vec<String> = names.collect();
            let value = if takes_value { format!(" <{value}>") } else { String::new() };
            format!("`{}{value}`", names.join("`, `"))
        }
    }
}

fn meaning(arg: &Arg) -> String {
    let mut text = arg.get_help().map(ToString::to_string).unwrap_or_default().replace('|', "\\|");
    let values: Vec<String> = arg
        .get_possible_values()
        .iter()
        .filter(|v| arg.get_action().takes_values() && !v.is_hide_set())
        .map(|v| match v.get_help() {
            Some(help) => format!("`{}` ({})", v.get_name(), lower(&help.to_string())),
            None => format!("`{}`", v.get_name()),
        })
        .collect();
    if !values.is_empty() {
        let _ = write!(text, ": {}", values.join(", "));
    }
    let defaults: Vec<_> =
        arg.get_default_values().iter().map(|d| d.to_string_lossy().into_owned()).collect();
    if !defaults.is_empty() && arg.get_action().takes_values() {
        let _ = write!(text, "; default `{}`", defaults.join(" "));
    }
    text
}

/// A remark inside a sentence; an abbreviation keeps its capitals.
fn lower(text: &str) -> String {
    let text = text.trim_end_matches('.');
    if text.chars().take(2).all(char::is_uppercase) {
        return text.to_owned();
    }
    let mut chars = text.chars();
    let first = chars.next().map(|c| c.to_lowercase().collect::<String>()).unwrap_or_default();
    first + chars.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_pages_are_fresh() {
        for (path, text) in pages().unwrap() {
            let found = std::fs::read_to_string(workspace::root().join(&path)).unwrap_or_default();
            assert!(found == text, "{} is out of date: run `cargo xtask docs --pages`", path.display());
        }
    }
}
