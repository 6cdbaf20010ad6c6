//! Standard error, in color where somebody looks.

use anstyle::{AnsiColor, Style};
use fhe_bytecode::text::harmless_lines;

/// Says something on standard error; its first word is colored on a terminal, unless `NO_COLOR` is set. What else a terminal
/// would obey is spelled out.
pub fn complain(text: &str) {
    let text = &harmless_lines(text);
    let color = match text.split(':').next() {
        Some("error") => AnsiColor::Red,
        Some("warning") => AnsiColor::Yellow,
        _ => AnsiColor::Cyan,
    };
    let style = Style::new().bold().fg_color(Some(color.into()));
    let (word, rest) = text.split_at(text.find(':').map_or(0, |at| at + 1));
    anstream::eprintln!("{style}{word}{style:#}{rest}");
}
