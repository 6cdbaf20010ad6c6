//! Text in HTML and SVG. Names come from models, so nothing reaches the page but through [`escape`].

/// Text that stands for itself, between tags and in quoted attributes.
#[must_use]
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' => out.push_str("&#10;"),
            '\t' => out.push_str("&#9;"),
            // Other control characters are no part of a document.
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// Text of at most `most` characters, with an ellipsis where something is missing.
#[must_use]
pub(super) fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

/// What a pointer over a thing shows: a title, and names with values. Tabs and line breaks in it are ours alone.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Tip(String);

impl Tip {
    pub(super) fn new(title: &str) -> Self {
        Self(flat(title))
    }

    /// Adds a line; nothing for an empty value.
    pub(super) fn line(mut self, name: &str, value: impl AsRef<str>) -> Self {
        let value = value.as_ref();
        if !value.is_empty() {
            self.0.push_str(&format!("\n{}\t{}", flat(name), flat(value)));
        }
        self
    }

    /// The attribute of an element.
    pub(super) fn attribute(&self) -> String {
        format!("data-tip=\"{}\"", escape(&self.0))
    }
}

fn flat(text: &str) -> String {
    shortened(text, 240).replace(['\n', '\t', '\r'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_inert() {
        assert_eq!(escape("<script>\"&'\u{0}"), "&lt;script&gt;&quot;&amp;&#39;\u{fffd}");
    }

    #[test]
    fn tips_keep_names_on_one_line() {
        let tip = Tip::new("a\nb").line("shape", "[1]\t\"").line("none", "");
        assert_eq!(tip.attribute(), "data-tip=\"a b&#10;shape&#9;[1] &quot;\"");
    }

    #[test]
    fn long_text_ends_in_an_ellipsis() {
        assert_eq!([shortened("abcdef", 4), shortened("abcd", 4)], ["abc…", "abcd"]);
    }
}
