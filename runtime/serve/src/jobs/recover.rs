//! After a restart: jobs that waited or ran go on, and what is old is thrown away.

use std::io;

use super::queue::Jobs;
use super::{JobState, now_ms, problem};

/// Times that a job is begun before it is given up: one that kills the server must not do so for ever.
const MAX_ATTEMPTS: u32 = 3;

impl Jobs {
    /// Puts the jobs of an earlier process back into the queue, oldest first. Gives their number.
    ///
    /// # Errors
    /// If the store cannot be read or written.
    pub fn recover(&self) -> io::Result<usize> {
        let store = &self.setup.store;
        let mut found = Vec::new();
        for at in store.jobs(None)? {
            if let Some(job) = store.job(&at)?.filter(|job| !job.state.is_final()) {
                found.push((at, job));
            }
        }
        found.sort_by_key(|(_, job)| job.submitted_ms);
        let mut n_resumed = 0;
        for (at, mut job) in found {
            let has_result = store.result_path(&at).is_file();
            if has_result {
                store.put_job(&at, &job.ended(JobState::Done, None))?;
                store.remove_input(&at)?;
            } else if job.attempts >= MAX_ATTEMPTS {
                let message = format!("the server ended {MAX_ATTEMPTS} times while it evaluated this job");
                store.put_job(&at, &job.ended(JobState::Failed, Some(problem("gave-up", message))))?;
                store.remove_input(&at)?;
            } else {
                job.state = JobState::Queued;
                (job.layer, job.fraction, job.eta_seconds) = (None, 0.0, None);
                self.resume(at, job);
                n_resumed += 1;
            }
        }
        Ok(n_resumed)
    }

    /// Throws away jobs that ended long ago. Gives their number.
    ///
    /// # Errors
    /// If the store cannot be read or written.
    pub fn sweep(&self) -> io::Result<usize> {
        let store = &self.setup.store;
        let limit = now_ms().saturating_sub(self.setup.limits.keep.as_millis() as u64);
        let mut n_removed = 0;
        for at in store.jobs(None)? {
            let is_old = |ended: Option<u64>| ended.is_some_and(|ended| ended < limit);
            if store.job(&at)?.is_some_and(|job| is_old(job.finished_ms)) {
                store.remove_job(&at)?;
                n_removed += 1;
            }
        }
        Ok(n_removed)
    }
}
