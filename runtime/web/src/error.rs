//! Refusals: a word for programs, a sentence for people.

use std::error::Error;

/// Why the module does not do something.
#[derive(Debug)]
pub struct Refusal {
    /// A word for programs.
    pub code: &'static str,
    /// A sentence for people.
    pub message: String,
}

impl Refusal {
    pub(crate) fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// From an error with all its causes; `what` is the thing that is wrong.
    pub(crate) fn of(code: &'static str, what: &str) -> impl Fn(&dyn Error) -> Self {
        move |error| {
            let mut message = format!("{what} {error}");
            let mut cause = error.source();
            while let Some(error) = cause {
                message = format!("{message}: {error}");
                cause = error.source();
            }
            Self::new(code, message)
        }
    }
}
