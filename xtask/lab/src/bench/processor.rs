//! Processor time of the calling thread.

use std::time::Duration;

/// Time that the calling thread has spent on a processor, where the kernel tells.
pub(super) fn processor_time() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds = text.split_whitespace().next()?.parse().ok()?;
    Some(Duration::from_nanos(nanoseconds))
}
