//! Every target for a few thousand executions. `cargo xtask fuzz` runs as many as wanted.

use fhec_fuzz::memory::Counting;
use fhec_fuzz::{Config, targets};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// One test for all targets, one after the other: time and memory are those of the process.
#[test]
fn changed_files_cause_no_panic_hang_or_memory_blow_up() {
    rayon::ThreadPoolBuilder::new().num_threads(1).build_global().unwrap();
    let folder = tempfile::tempdir().unwrap();
    for name in targets::NAMES {
        let executions = if name == "secret-key" { 5000 } else { 2000 };
        let config =
            Config { executions, start: 0, seed: 1, folder: folder.path().to_path_buf(), quiet: true };
        let outcome = targets::run_named(name, &config).unwrap();
        assert!(outcome.findings.is_empty(), "{name}: {:#?}", outcome.findings);
        assert!(outcome.accepted > 0, "{name}: nothing was accepted");
        assert!(outcome.peak_bytes > 0, "{name}: memory is not counted");
    }
}
