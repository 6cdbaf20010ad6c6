//! Core dumps, which would write secrets to the disk.

/// From now on a crash of this process leaves no core dump. Where the operating system does not tell, nothing happens.
pub fn forbid_core_dumps() {
    #[cfg(all(unix, feature = "files"))]
    {
        use nix::sys::resource::{Resource, setrlimit};
        // A lower limit is always allowed.
        let _ = setrlimit(Resource::RLIMIT_CORE, 0, 0);
    }
}
