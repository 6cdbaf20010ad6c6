//! Memory and processor time of this process, and memory of the machine, where the operating system tells.

use std::fs;

/// Part of the available memory that is used when nothing is said.
const DEFAULT_PART: f64 = 0.85;

/// Address space that the allocator reserves for every thread.
const THREAD_BYTES: u64 = 64 << 20;

/// The memory that work may take: what is asked for, or most of what is available, and never more than the limits of the
/// process leave beside `n_threads` threads.
pub fn budget(asked: Option<u64>, n_threads: usize) -> u64 {
    let part = |bytes: u64| (bytes as f64 * DEFAULT_PART) as u64;
    let available = || available_bytes().map_or(u64::MAX, part);
    // The main thread and those that watch come besides.
    let reserved = thread_bytes(n_threads.saturating_add(2));
    let limit = limit_bytes().map_or(u64::MAX, |left| part(left.saturating_sub(reserved)));
    asked.unwrap_or_else(available).min(limit)
}

/// Threads that a pool has when nothing is said, without starting it.
pub fn default_threads() -> usize {
    // The rule of rayon: the variable where it is a number above zero, or else what the system tells.
    let asked = std::env::var("RAYON_NUM_THREADS").ok().and_then(|number| number.parse().ok());
    asked
        .filter(|&n: &usize| n > 0)
        .or_else(|| std::thread::available_parallelism().ok().map(usize::from))
        .unwrap_or(1)
}

/// Address space that `n_threads` threads take whatever they do.
pub fn thread_bytes(n_threads: usize) -> u64 {
    (n_threads as u64).saturating_mul(THREAD_BYTES)
}

/// Largest resident set of this process so far, in bytes.
pub fn peak_rss_bytes() -> Option<u64> {
    kib_field("/proc/self/status", "VmHWM:")
}

/// Resident set of this process now, in bytes.
pub fn rss_bytes() -> Option<u64> {
    kib_field("/proc/self/status", "VmRSS:")
}

/// Memory that the machine can give without swapping, in bytes.
pub fn available_bytes() -> Option<u64> {
    kib_field("/proc/meminfo", "MemAvailable:")
}

/// Seconds that all threads of this process have spent on processors.
pub fn processor_seconds() -> Option<f64> {
    // Field 14 and 15 of the line; the name before them is in parentheses and may contain anything.
    let text = fs::read_to_string("/proc/self/stat").ok()?;
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |field: usize| fields.get(field - 3)?.parse::<f64>().ok();
    // Linux counts these in hundredths of a second whatever its own clock.
    Some((ticks(14)? + ticks(15)?) / 100.0)
}

/// Memory that limits leave this process, in bytes: of its address space (`ulimit -v`) and of its control group.
pub fn limit_bytes() -> Option<u64> {
    [address_space_left(), group_left()].into_iter().flatten().min()
}

/// The limit of the address space less what is mapped already, in bytes.
pub fn address_space_left() -> Option<u64> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find(|line| line.starts_with("Max address space"))?;
    let limit: u64 = line.split_whitespace().nth(3)?.parse().ok()?;
    Some(limit.saturating_sub(kib_field("/proc/self/status", "VmSize:")?))
}

/// The limit of the control group less what its processes hold, caches aside.
fn group_left() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let group = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let folder = format!("/sys/fs/cgroup{group}");
    let limit: u64 = fs::read_to_string(format!("{folder}/memory.max")).ok()?.trim().parse().ok()?;
    let held = fs::read_to_string(format!("{folder}/memory.stat")).ok()?;
    let held: u64 = held.lines().find_map(|line| line.strip_prefix("anon "))?.parse().ok()?;
    Some(limit.saturating_sub(held))
}

fn kib_field(path: &str, field: &str) -> Option<u64> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(field))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn linux_tells() {
        assert!(peak_rss_bytes().unwrap() >= 1 << 16);
        assert!(rss_bytes().unwrap() >= 1 << 16);
        assert!(available_bytes().is_some());
        assert!(processor_seconds().is_some());
        // No limit is as good as one.
        assert!(limit_bytes().is_none_or(|left| left > 0));
    }
}
