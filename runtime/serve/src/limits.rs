//! The bounds of a server.

use std::time::Duration;

/// Everything that is bounded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Jobs that wait.
    pub queue: usize,
    /// Time that a job may wait.
    pub queue_wait: Duration,
    /// Time that a job may run.
    pub job: Duration,
    /// Time for which jobs whose keys are in memory may overtake others.
    pub patience: Duration,
    /// Time that jobs and their results are kept after their end.
    pub keep: Duration,
    /// Time without a byte of a request's body.
    pub idle: Duration,
    /// Least bytes a second of a request's body, on average over [`Limits::idle`].
    pub body_rate: u64,
    /// Time for a request's head, and for the handshake of TLS.
    pub head: Duration,
    /// Longest time that a request may wait for its job.
    pub wait: Duration,
    /// Connections at a time.
    pub connections: usize,
    /// Time for running jobs when the server is told to end.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            queue: 256,
            queue_wait: Duration::from_secs(3600),
            job: Duration::from_secs(3600),
            patience: Duration::from_secs(5),
            keep: Duration::from_secs(24 * 3600),
            idle: Duration::from_secs(30),
            body_rate: 1024,
            head: Duration::from_secs(10),
            wait: Duration::from_secs(300),
            connections: 1024,
            drain: Duration::from_secs(60),
        }
    }
}
