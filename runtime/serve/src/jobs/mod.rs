//! Jobs: what one is, the queue, and the workers that evaluate.

mod evaluate;
mod queue;
mod recover;
mod turns;
mod worker;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::ids::{JobId, KeyName, ProgramId};

#[cfg(feature = "cluster")]
pub(crate) use evaluate::evaluate;
pub use evaluate::{Evaluation, Evaluator, Failure, Report, Source};
pub(crate) use evaluate::{read_input, read_keys};
pub use queue::{Jobs, NewJob, Setup, Submitted};
#[cfg(feature = "cluster")]
pub(crate) use worker::Reporter;

/// What is wrong, for people and for programs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// One word that does not change from release to release.
    #[schema(example = "queue-full")]
    pub code: String,
    /// A sentence.
    pub message: String,
}

/// Where a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum JobState {
    /// Waits.
    Queued,
    /// Is evaluated.
    Running,
    /// Has a result.
    Done,
    /// Has none and will have none.
    Failed,
    /// Was not wanted any more.
    Cancelled,
}

impl JobState {
    /// Whether it stays so.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Done | Self::Failed | Self::Cancelled)
    }
}

/// A job, as clients see it and as the store keeps it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Job {
    /// Hash of program, key and encrypted input: the same request is the same job.
    #[schema(value_type = String)]
    pub id: JobId,
    /// Hash of the program.
    #[schema(value_type = String)]
    pub program: ProgramId,
    /// Id of the key that the input is encrypted under.
    #[schema(value_type = String)]
    pub key: KeyName,
    /// Where it is.
    pub state: JobState,
    /// Jobs before it, while it waits.
    pub position: Option<u64>,
    /// The layer that is evaluated.
    pub layer: Option<String>,
    /// Part of the work that is done, from 0 to 1.
    pub fraction: f64,
    /// Seconds until the end if the rest goes as the work so far.
    pub eta_seconds: Option<f64>,
    /// Times that it was begun.
    pub attempts: u32,
    /// Milliseconds since 1970 when it was accepted.
    pub submitted_ms: u64,
    /// Milliseconds since 1970 when it ended.
    pub finished_ms: Option<u64>,
    /// Seconds that the evaluation took.
    pub seconds: Option<f64>,
    /// Why there is no result.
    pub error: Option<Problem>,
}

impl Job {
    /// A job that waits.
    pub fn new(id: JobId, program: ProgramId, key: KeyName) -> Self {
        Self {
            id,
            program,
            key,
            state: JobState::Queued,
            position: None,
            layer: None,
            fraction: 0.0,
            eta_seconds: None,
            attempts: 0,
            submitted_ms: now_ms(),
            finished_ms: None,
            seconds: None,
            error: None,
        }
    }

    /// The same job at its end.
    pub(crate) fn ended(mut self, state: JobState, error: Option<Problem>) -> Self {
        self.state = state;
        self.error = error;
        (self.position, self.layer, self.eta_seconds) = (None, None, None);
        if state == JobState::Done {
            self.fraction = 1.0;
        }
        self.finished_ms = Some(now_ms());
        self
    }
}

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |time| time.as_millis() as u64)
}

pub(crate) fn problem(code: &str, message: impl Into<String>) -> Problem {
    Problem { code: code.to_owned(), message: message.into() }
}
