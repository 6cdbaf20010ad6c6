//! Which samples of a file: `3`, `0..8`, `4..=6` or `all`.

use std::ops::Range;
use std::str::FromStr;

/// Samples that a file may hold to be taken without being asked for.
pub(crate) const FEW: usize = 100;

/// Sample numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Selection {
    /// Every sample there is.
    All,
    /// Those of a range.
    Some(Range<usize>),
}

impl Selection {
    /// The sample numbers of a file that holds `n`. Without a selection all of a few are meant; of more than that nobody
    /// knows how many.
    pub(crate) fn of(selection: Option<&Self>, n: usize) -> Option<Range<usize>> {
        match selection {
            Some(Self::Some(range)) => Some(range.clone()),
            Some(Self::All) => Some(0..n),
            None => (n <= FEW).then_some(0..n),
        }
    }
}

impl FromStr for Selection {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| {
            text.trim()
                .parse::<usize>()
                .map_err(|_| format!("{text:?} is no sample number: try 3, 0..8 or all"))
        };
        if text == "all" {
            return Ok(Self::All);
        }
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
        Ok(Self::Some(range))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_ranges_parse() {
        for (text, range) in [("3", 3..4), ("0..8", 0..8), ("4..=6", 4..7)] {
            assert_eq!(text.parse(), Ok(Selection::Some(range)), "{text}");
        }
        assert_eq!("all".parse(), Ok(Selection::All));
        for text in ["", "x", "3..3", "5..2", "..", "-1"] {
            assert!(text.parse::<Selection>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_few_samples_are_all_taken_and_more_are_asked_about() {
        assert_eq!(Selection::of(None, FEW), Some(0..FEW));
        assert_eq!(Selection::of(None, FEW + 1), None);
        assert_eq!(Selection::of(Some(&Selection::All), 10_000), Some(0..10_000));
        assert_eq!(Selection::of(Some(&Selection::Some(2..4)), 10_000), Some(2..4));
    }
}
