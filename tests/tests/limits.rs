//! Memory: a budget is kept, and a limit that is too low is an error before it is an abort.
#![cfg(target_os = "linux")]

use std::path::Path;
use std::process::Command;

use fhec_tests::binaries::{binary, succeed};

fn model() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../onnx-models/lenet-mnist-0.onnx").display().to_string()
}

fn picture() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/digits/broad-7.png").display().to_string()
}

/// The exit code of a command under a limit of its address space; `None` for a signal.
fn code_under(folder: &Path, megabytes: usize, line: &str) -> Option<i32> {
    let mut shell = Command::new("sh");
    let binaries = binary("fhec").parent().unwrap().display().to_string();
    let path = format!("{binaries}:{}", std::env::var("PATH").unwrap_or_default());
    let script = format!("ulimit -v {}; exec {line}", megabytes << 10);
    // Every thread takes address space: their number must not be that of the machine's processors.
    let shell = shell.current_dir(folder).env("PATH", path).env("RAYON_NUM_THREADS", "2");
    let output = shell.arg("-c").arg(script).output().unwrap();
    output.status.code()
}

#[test]
fn low_limits_of_the_address_space_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let build = format!("fhec build {} -o model.fhebc -q", model());
    let infer = format!("fhe-run --threads 2 infer model.fhebc {} -q", picture());
    succeed(folder.path(), &build);
    for (line, limits) in [(build, [60, 130, 200, 280, 400, 1500]), (infer, [60, 100, 180, 250, 350, 1500])] {
        let codes = limits.map(|megabytes| code_under(folder.path(), megabytes, &line));
        assert!(codes.iter().all(|code| matches!(code, Some(0 | 1))), "{line}: {codes:?}");
        assert_eq!(codes.first(), Some(&Some(1)), "{line}");
        assert_eq!(codes.last(), Some(&Some(0)), "{line}");
    }
}

#[test]
fn peak_memory_stays_within_the_budget() {
    let folder = tempfile::tempdir().unwrap();
    succeed(folder.path(), &format!("fhec build {} -o model.fhebc -q", model()));
    for megabytes in [160_u64, 256] {
        let line = format!("fhe-run bench model.fhebc --runs 1 --memory {megabytes}MiB --format json -q");
        let output = succeed(folder.path(), &line);
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let peak = report["peak_rss_bytes"].as_u64().unwrap();
        assert!(peak <= megabytes << 20, "{megabytes} MiB allowed, {} taken", peak >> 20);
    }
}
