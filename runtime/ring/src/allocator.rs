//! What programs ask of the allocator.

/// Keeps memory that is freed for the next who asks, where the C library would give it back to the operating system and then
/// get it again page by page, each cleared: keys and polynomials come and go by megabytes. All threads use one heap: what one
/// frees serves the others, and the heaps of threads give back whatever is empty. The first thing in a program of its own; a
/// library leaves its host's memory alone.
pub fn keep_freed_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // As much as can be set: larger pieces always go back.
        const LEAST_MAPPED: libc::c_int = 1 << 25;
        // SAFETY: each sets a number of the allocator, before there are threads.
        unsafe {
            libc::mallopt(libc::M_MMAP_THRESHOLD, LEAST_MAPPED);
            libc::mallopt(libc::M_TRIM_THRESHOLD, libc::c_int::MAX);
            libc::mallopt(libc::M_ARENA_MAX, 1);
        }
    }
}
