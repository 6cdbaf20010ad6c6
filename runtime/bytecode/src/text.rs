//! Text from files, as it may reach a terminal.

/// Whether a terminal would act on the character instead of showing it.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Whether a terminal would show every character of the text.
pub fn is_harmless(text: &str) -> bool {
    !text.contains(is_hidden)
}

/// The text with every character that a terminal would obey written as its number, such as `\u{1b}`.
pub fn harmless(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut out, c| {
        match is_hidden(c) {
            true => out.extend(c.escape_unicode()),
            false => out.push(c),
        }
        out
    })
}

/// As [`harmless`], line by line: the lines of a text stay lines.
pub fn harmless_lines(text: &str) -> String {
    text.split('\n').map(harmless).collect::<Vec<_>>().join("\n")
}

/// JSON text with every character that a terminal would obey, line ends aside, escaped as JSON escapes it.
pub fn harmless_json(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut out, c| {
        match is_hidden(c) && c != '\n' {
            // All of them are below 0x10000, so four digits do.
            true => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            false => out.push(c),
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_obeys_is_left() {
        assert_eq!(harmless("a\u{1b}[31mb\u{9b}\u{202e}c\n"), "a\\u{1b}[31mb\\u{9b}\\u{202e}c\\u{a}");
        assert_eq!(harmless_lines("a\nb\r\n"), "a\nb\\u{d}\n");
        assert_eq!(harmless_json("\"a\u{9b}\u{202e}\"\n"), "\"a\\u009b\\u202e\"\n");
        assert!(!is_harmless("a\nb") && !is_harmless("\u{202e}") && is_harmless("Größe 数 ✓"));
        assert_eq!(harmless("Größe 数 ✓"), "Größe 数 ✓");
    }
}
