//! Which samples of a file: `3`, `0..8` or `4..=6`.

use std::ops::Range;
use std::str::FromStr;

/// A range of sample numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Selection(pub Range<usize>);

impl FromStr for Selection {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| {
            text.trim().parse::<usize>().map_err(|_| format!("{text:?} is no sample number: try 3 or 0..8"))
        };
        let range = match text.split_once("..") {
            None => {
                let first = number(text)?;
                first..first.saturating_add(1)
            }
            Some((first, last)) => match last.strip_prefix('=') {
                Some(last) => number(first)?..number(last)?.saturating_add(1),
                None => number(first)?..number(last)?,
            },
        };
        if range.is_empty() {
            return Err(format!("{text:?} selects nothing"));
        }
        Ok(Self(range))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_ranges_parse() {
        for (text, range) in [("3", 3..4), ("0..8", 0..8), ("4..=6", 4..7)] {
            assert_eq!(text.parse(), Ok(Selection(range)), "{text}");
        }
        for text in ["", "x", "3..3", "5..2", "..", "-1"] {
            assert!(text.parse::<Selection>().is_err(), "{text}");
        }
    }
}
