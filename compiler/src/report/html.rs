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

/// Escaped text in which powers of two, as [`units::power`](super::units::power) writes them, have raised exponents.
#[must_use]
pub(super) fn with_powers(text: &str) -> String {
    raised(text, "<sup>", "</sup>")
}

/// The same for text of a picture, which has no element for it.
#[must_use]
pub(super) fn with_powers_drawn(text: &str) -> String {
    raised(text, "<tspan class=\"sup\" dy=\"-0.35em\">", "</tspan><tspan dy=\"0.25em\">\u{200b}</tspan>")
}

fn raised(text: &str, open: &str, close: &str) -> String {
    let escaped = escape(text);
    let mut parts = escaped.split("2^");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end =
            part.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '\u{2212}').unwrap_or(part.len());
        let (exponent, rest) = part.split_at(end);
        out.push_str(&match exponent {
            "" => format!("2^{rest}"),
            exponent => format!("2{open}{exponent}{close}{rest}"),
        });
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
    fn powers_of_two_are_raised_and_nothing_else_is() {
        assert_eq!(with_powers("2^\u{2212}7.2 < 2^15"), "2<sup>\u{2212}7.2</sup> &lt; 2<sup>15</sup>");
        assert_eq!(with_powers("x2^y <b>"), "x2^y &lt;b&gt;");
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
