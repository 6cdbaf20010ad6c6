//! One form for everything that is said about trouble: what, where, why, and what to do.

use std::error::Error;
use std::fmt;

use fhe_input::InputError;

use crate::remedy;

/// Who has to act, which decides the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The model, the file or the request cannot be served.
    Cannot,
    /// The command line is wrong.
    Usage,
    /// We are wrong.
    Bug,
}

impl Kind {
    /// The exit code: 1 cannot do that, 2 usage, 3 our bug.
    #[must_use]
    pub fn exit_code(self) -> u8 {
        match self {
            Kind::Cannot => 1,
            Kind::Usage => 2,
            Kind::Bug => 3,
        }
    }
}

/// A message for people.
#[derive(Clone, Debug, PartialEq)]
pub struct Diagnostic {
    /// Who has to act.
    pub kind: Kind,
    /// What is wrong, in one line.
    pub what: String,
    /// The places, each with its own reason and remedy.
    pub places: Vec<Place>,
    /// What to do about all of it.
    pub help: Option<String>,
}

/// One place something is wrong at.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// Where.
    pub at: String,
    /// Why.
    pub why: String,
    /// What to do.
    pub help: Option<String>,
}

impl Diagnostic {
    /// A message without places.
    pub fn new(kind: Kind, what: impl Into<String>) -> Self {
        Diagnostic { kind, what: what.into(), places: Vec::new(), help: None }
    }

    /// The same with a remedy.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Something only we can repair.
    pub fn bug(what: impl Into<String>) -> Self {
        Diagnostic::new(Kind::Bug, what).with_help(remedy::BUG)
    }

    /// Images that cannot be used.
    #[must_use]
    pub fn input(error: &InputError) -> Self {
        Diagnostic::new(Kind::Cannot, error.to_string()).with_help(remedy::input(&error.kind))
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.what)?;
        for place in &self.places {
            write!(f, "\n  at {}\n    why:  {}", place.at, place.why)?;
            if let Some(help) = &place.help {
                write!(f, "\n    help: {help}")?;
            }
        }
        if let Some(help) = &self.help {
            write!(f, "\n  help: {help}")?;
        }
        Ok(())
    }
}

/// An error and its causes on one line.
#[must_use]
pub fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        // A transparent wrapper repeats its cause.
        if !text.ends_with(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_says_what_where_why_and_what_to_do() {
        let place = Place { at: "/relu".into(), why: "no polynomial".into(), help: Some("retrain".into()) };
        let message = Diagnostic {
            places: vec![place],
            ..Diagnostic::new(Kind::Cannot, "m.onnx: refused").with_help("see docs")
        };
        let expected = "error: m.onnx: refused\n  at /relu\n    why:  no polynomial\n    help: retrain\n  help: see docs";
        assert_eq!(message.to_string(), expected);
    }

    #[test]
    fn causes_stand_on_one_line_and_none_twice() {
        let cause = std::io::Error::other("disk full");
        let error = std::io::Error::other(cause);
        assert_eq!(chain(&error), "disk full");
    }
}
