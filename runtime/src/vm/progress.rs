//! How far an evaluation is, for whoever wants to show it.

use std::time::Duration;

/// The state between two instructions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress<'a> {
    /// Name of the layer that comes next.
    pub layer: &'a str,
    /// Part of the predicted work that is done, from 0 to 1.
    pub fraction: f64,
    /// Time since the start.
    pub elapsed: Duration,
    /// Bytes of plaintexts in the cache.
    pub cached_bytes: u64,
}

impl Progress<'_> {
    /// Time until the end if the rest goes as the work so far.
    pub fn remaining(&self) -> Option<Duration> {
        let factor = (1.0 - self.fraction) / self.fraction;
        (self.fraction > 0.0 && factor.is_finite()).then(|| self.elapsed.mul_f64(factor.max(0.0)))
    }
}

/// Is told how far an evaluation is.
pub trait Observer {
    /// Called between instructions, from one thread.
    fn progress(&self, progress: Progress<'_>);
}

/// Looks away.
#[derive(Debug, Clone, Copy)]
pub struct Silent;

impl Observer for Silent {
    fn progress(&self, _: Progress<'_>) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remaining_time_follows_the_work_done() {
        let at =
            |fraction| Progress { layer: "", fraction, elapsed: Duration::from_secs(3), cached_bytes: 0 };
        assert_eq!(at(0.75).remaining(), Some(Duration::from_secs(1)));
        assert_eq!(at(0.0).remaining(), None);
        assert_eq!(at(1.0).remaining(), Some(Duration::ZERO));
    }
}
