//! A rehearsal: a program evaluated once under real encryption, before anybody relies on it.
//!
//! The compiler knows no keys and no ring arithmetic, so whoever calls it brings what encrypts ([`Rehearse`]). It is asked
//! for scores and for nothing else: no key reaches this crate.

use std::time::Instant;

use fhe_bytecode::clear::ClearProgram;
use fhe_bytecode::{CheckedProgram, Classes};
use serde::Serialize;

use super::Compiled;

/// Seconds that a rehearsal may be expected to take on one core.
const QUICK_SECONDS: f64 = 4.0;
/// Seconds that making a byte of evaluation keys takes on one core.
const KEY_SECONDS_PER_BYTE: f64 = 4e-9;

/// Evaluates programs under encryption, with keys of its own.
pub trait Rehearse {
    /// Encrypts an input under fresh keys, evaluates, decrypts, and forgets the keys.
    ///
    /// # Errors
    /// When there is no result at all.
    fn scores(
        &self,
        program: &CheckedProgram,
        input: &[f64],
        memory: u64,
    ) -> Result<Vec<f64>, RehearsalError>;
}

/// An encrypted evaluation that gave no result.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct RehearsalError(Box<dyn std::error::Error + Send + Sync>);

impl RehearsalError {
    /// Says why.
    pub fn new(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self(cause.into())
    }
}

/// An encrypted evaluation beside the same in the clear.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Rehearsal {
    /// Largest error of a score.
    pub max_abs_error: f64,
    /// What the program promises.
    pub predicted_max_abs_error: f64,
    /// Whether the best class is the same.
    pub is_same_class: bool,
    /// How far the best class in the clear is ahead of the next, if there are two.
    pub margin: Option<f64>,
    /// Seconds that keys and evaluation took.
    pub seconds: f64,
}

impl Rehearsal {
    /// Whether the program kept its promise. Where two classes are closer than twice the bound, either may win.
    #[must_use]
    pub fn is_passed(&self) -> bool {
        let is_tie = self.margin.is_some_and(|margin| margin <= 2.0 * self.predicted_max_abs_error);
        self.max_abs_error <= self.predicted_max_abs_error && (self.is_same_class || is_tie)
    }

    fn new(
        classes: &Classes,
        found: &[f64],
        clear: &[f64],
        predicted_max_abs_error: f64,
        seconds: f64,
    ) -> Self {
        let errors = found.iter().zip(clear).map(|(a, b)| (a - b).abs());
        // An error that is no number is the largest of all.
        let worst = |m: f64, e: f64| if e.is_nan() { f64::INFINITY } else { m.max(e) };
        let lead = classes.lead(clear);
        Self {
            max_abs_error: errors.fold(if found.len() == clear.len() { 0.0 } else { f64::INFINITY }, worst),
            predicted_max_abs_error,
            is_same_class: classes.best(found) == classes.best(clear),
            margin: lead.is_finite().then_some(lead),
            seconds,
        }
    }
}

impl Compiled {
    /// Whether keys and one evaluation are a matter of seconds.
    #[must_use]
    pub fn is_quick(&self) -> bool {
        let prediction = &self.built.program.spec().prediction;
        let keys = self.built.program.key_bytes() as f64 * KEY_SECONDS_PER_BYTE;
        keys + prediction.seconds + prediction.encode_seconds <= QUICK_SECONDS
    }

    /// Evaluates the program under encryption on one of the inputs it was calibrated on.
    ///
    /// # Errors
    /// When there is no result at all.
    pub fn rehearse(&self, by: &dyn Rehearse, memory: u64) -> Result<Rehearsal, RehearsalError> {
        let program = &self.built.program;
        let batch = self.sample.repeat(program.batch());
        let mut clear = ClearProgram::new(program).run(&batch, &mut ()).map_err(RehearsalError::new)?;
        clear.truncate(clear.len() / program.batch());
        let began = Instant::now();
        let found = by.scores(program, &self.sample, memory)?;
        let bound = program.spec().prediction.max_abs_error;
        let classes = program.spec().output.classes(program.output_layout().shape());
        Ok(Rehearsal::new(&classes, &found, &clear, bound, began.elapsed().as_secs_f64()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn promise_is_kept_within_the_bound_and_with_the_same_class() {
        let classes = Classes::Scores(0..2);
        let judged =
            |found: &[f64], clear: &[f64]| Rehearsal::new(&classes, found, clear, 0.1, 1.0).is_passed();
        assert!(judged(&[1.0, 2.05], &[1.0, 2.0]));
        assert!(!judged(&[1.0, 2.2], &[1.0, 2.0]));
        assert!(!judged(&[f64::NAN, 2.0], &[1.0, 2.0]));
        assert!(!judged(&[1.0], &[1.0, 2.0]));
        // A tie that noise may decide.
        assert!(judged(&[2.05, 2.0], &[1.98, 2.0]));
    }
}
