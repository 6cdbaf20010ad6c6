//! Memory of this process and of the machine, where the operating system tells.

use std::fs;

/// Largest resident set of this process so far, in bytes.
pub fn peak_rss_bytes() -> Option<u64> {
    kib_field("/proc/self/status", "VmHWM:")
}

/// Resident set of this process now, in bytes.
pub fn rss_bytes() -> Option<u64> {
    kib_field("/proc/self/status", "VmRSS:")
}

/// Memory that can be had without swapping, in bytes.
pub fn available_bytes() -> Option<u64> {
    kib_field("/proc/meminfo", "MemAvailable:")
}

fn kib_field(path: &str, field: &str) -> Option<u64> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(field))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? * 1024)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn linux_tells() {
        assert!(peak_rss_bytes().unwrap() >= 1 << 16);
        assert!(rss_bytes().unwrap() >= 1 << 16);
        assert!(available_bytes().is_some());
    }
}
