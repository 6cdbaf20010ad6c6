//! `fhec build`, `inspect` and `simulate` as commands, on a trained model of the repository.

mod common;

use std::path::{Path, PathBuf};
use std::process::Output;

fn fhec(args: &[&str]) -> Output {
    common::fhec(Path::new("."), args)
}

fn model() -> String {
    common::repository("onnx-models/lenet-mnist-0.onnx")
}

/// Builds the model with further options and returns the program.
fn build(folder: &Path, name: &str, options: &[&str]) -> PathBuf {
    let program = folder.join(name);
    let (model, path) = (model(), program.display().to_string());
    let output = fhec(&[&["build", &model, "-o", &path, "--quiet", "--no-check"], options].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}

#[test]
fn report_names_parameters_security_and_layers() {
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("report.json");
    build(folder.path(), "a.fhebc", &["--report", report.to_str().unwrap()]);
    let report: serde_json::Value = serde_json::from_slice(&std::fs::read(report).unwrap()).unwrap();
    assert_eq!((&report["levels"], &report["extra_levels"]), (&4.into(), &serde_json::Value::Null));
    assert_eq!(report["secure"], true);
    assert_eq!(report["layout"], "packed");
    for key in ["n", "log2_q", "log2_pq", "security_cap_log2_pq", "predicted_seconds", "key_bytes"] {
        assert!(report[key].as_f64().is_some_and(|v| v > 0.0), "{key}");
    }
    assert!(report["layers"].as_array().is_some_and(|l| l.len() == 11));
}

#[test]
fn the_report_is_printed_on_request_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.fhebc").display().to_string();
    let output = fhec(&["build", &model(), "-o", &path, "--format", "json"]);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&report["levels"], output.stderr.len()), (&serde_json::json!(4), 0));
}

#[test]
fn the_version_names_the_format_of_programs() {
    let text = String::from_utf8(fhec(&["--version"]).stdout).unwrap();
    assert!(text.starts_with(concat!("fhec ", env!("CARGO_PKG_VERSION"), " (program format ")), "{text}");
}

#[test]
fn colors_stay_on_terminals() {
    for args in [&["build", "no-such-file", "-o", "x"][..], &["--help"], &["levels"]] {
        let output = fhec(args);
        let all = [output.stdout, output.stderr].concat();
        assert!(!all.is_empty() && !all.contains(&0x1b), "{args:?}");
    }
}

#[test]
fn same_command_gives_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let [a, b] = ["a.fhebc", "b.fhebc"].map(|name| std::fs::read(build(folder.path(), name, &[])).unwrap());
    assert_eq!(a, b);
}

#[test]
fn inspect_prints_a_program_in_three_forms() {
    let folder = tempfile::tempdir().unwrap();
    let program = build(folder.path(), "a.fhebc", &[]).display().to_string();
    for (form, expected) in
        [("text", "128-bit security"), ("json", "\"rotation_keys\""), ("ron", "rotation_keys:")]
    {
        let output = fhec(&["inspect", &program, "--format", form]);
        assert!(String::from_utf8_lossy(&output.stdout).contains(expected), "{form}");
    }
}

#[test]
fn the_interface_lies_beside_the_program_and_is_extracted_from_it() {
    let folder = tempfile::tempdir().unwrap();
    let program = build(folder.path(), "a.fhebc", &[]);
    let beside = std::fs::read(folder.path().join("a.fhei")).unwrap();
    let extracted = folder.path().join("b.fhei");
    let output = fhec(&["interface", program.to_str().unwrap(), "-o", extracted.to_str().unwrap()]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(std::fs::read(&extracted).unwrap(), beside);
    assert!(beside.len() < 32 << 10, "{} bytes", beside.len());
    // Neither replaces the other.
    let output = fhec(&["interface", program.to_str().unwrap(), "-o", program.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    let output = fhec(&["build", &model(), "-o", extracted.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(std::fs::read(&extracted).unwrap(), beside);
}

#[test]
fn simulation_reports_agreement_on_a_table_of_inputs() {
    let folder = tempfile::tempdir().unwrap();
    let program = build(folder.path(), "a.fhebc", &[]).display().to_string();
    let images = folder.path().join("images.csv");
    let row = |k: usize| {
        (0..784).map(|i| format!("{:.3}", ((i * k) % 17) as f64 / 9.0 - 0.4)).collect::<Vec<_>>().join(",")
    };
    std::fs::write(&images, (1..6).map(row).collect::<Vec<_>>().join("\n")).unwrap();
    let output = fhec(&["simulate", &program, images.to_str().unwrap(), "--format", "json", "--quiet"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["samples"], 5);
    assert!(result["agreement"].as_f64().is_some_and(|a| a >= 0.8));
    assert!(result["max_abs_error"].as_f64().is_some_and(|e| e > 0.0));
}

#[test]
fn impossible_precision_says_how_many_bits_are_missing() {
    let folder = tempfile::tempdir().unwrap();
    let (model, path) = (model(), folder.path().join("a.fhebc"));
    let output = fhec(&["build", &model, "-o", path.to_str().unwrap(), "--precision", "15", "--log-n", "13"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("the 128-bit bound at N = 2^13 is 214"));
    assert!(!path.exists());
}

#[test]
fn toy_ring_without_the_toy_flag_is_a_usage_error() {
    let output = fhec(&["build", &model(), "-o", "unused.fhebc", "--log-n", "11"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn inputs_that_lead_out_of_range_are_refused_by_layer() {
    let folder = tempfile::tempdir().unwrap();
    let (images, program) = (folder.path().join("images.csv"), folder.path().join("a.fhebc"));
    std::fs::write(&images, vec!["1e12"; 784].join(",")).unwrap();
    let (images, path) = (images.display().to_string(), program.display().to_string());
    let output = fhec(&["build", &model(), "-o", &path, "--calibrate", &images, "--quiet"]);
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("values overflow at layer"), "{message}");
    assert!(message.contains("clip-range penalty"), "{message}");
    assert!(!program.exists());
}

/// The file is a small network whose last weights are denormal numbers; the fuzzer made it.
#[test]
fn scores_too_small_for_any_scale_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("a.fhebc");
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/models/vanishing.onnx");
    let output = fhec(&["build", model, "-o", program.to_str().unwrap(), "--quiet"]);
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("values vanish: the largest score is"), "{message}");
    assert!(!program.exists());
}

#[test]
fn wide_levels_are_as_many_as_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("m.onnx"), common::squares_model()).unwrap();
    let run = |args: &[&str]| common::fhec_does(folder.path(), args);
    let json = |bytes: &[u8]| serde_json::from_slice::<serde_json::Value>(bytes).unwrap();
    let counted = json(&run(&["levels", "m.onnx", "--format", "json"]).stdout)[0]["levels"]["FRT"].clone();
    assert_eq!(counted, 2);
    run(&["build", "m.onnx", "-o", "m.fhebc", "--toy", "--precision", "20", "--report", "report.json"]);
    let report = json(&std::fs::read(folder.path().join("report.json")).unwrap());
    assert_eq!(report["levels"], counted);
    assert!(report["tower_bits"].as_array().is_some_and(|towers| towers.len() > 3), "{report}");
}

#[test]
fn level_wider_than_a_prime_needs_no_advice() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("m.onnx"), common::square_model()).unwrap();
    let run = |args: &[&str]| common::fhec_does(folder.path(), args);
    run(&["build", "m.onnx", "-o", "m.fhebc", "--toy", "--precision", "20", "--report", "report.json"]);
    let report = std::fs::read(folder.path().join("report.json")).unwrap();
    let report: serde_json::Value = serde_json::from_slice(&report).unwrap();
    assert_eq!(report["levels"], 1);
    assert_eq!(report["tower_bits"].as_array().map(Vec::len), Some(3));
    assert!(report["headroom_bits"].as_f64().is_some_and(|bits| bits >= 3.0));
}

#[test]
fn memory_that_does_not_hold_the_keys_is_refused_with_what_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.fhebc").display().to_string();
    let output = fhec(&["build", &model(), "-o", &path, "--memory", "1M", "--quiet"]);
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains(" more than the 1.00 MiB allowed; layer"), "{message}");
}

#[test]
fn profile_of_something_else_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let [program, profile] = ["a.fhebc", "profile.json"].map(|name| folder.path().join(name));
    std::fs::write(&profile, r#"{"total_seconds": 1.0, "events": []}"#).unwrap();
    let [path, profile] = [&program, &profile].map(|path| path.display().to_string());
    let output = fhec(&["build", &model(), "-o", &path, "--profile", &profile, "--quiet"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("the profile has 0 operations"));
    assert!(!program.exists());
}

#[test]
fn build_ends_with_an_encrypted_evaluation_unless_told_otherwise() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("m.onnx"), common::squares_model()).unwrap();
    let run = |args: &[&str]| common::fhec_does(folder.path(), args);
    let built = run(&["build", "m.onnx", "-o", "m.fhebc", "--toy", "--report", "report.json"]);
    let message = String::from_utf8_lossy(&built.stderr);
    assert!(message.contains("note: evaluated under encryption: largest error"), "{message}");
    let report: serde_json::Value =
        serde_json::from_slice(&std::fs::read(folder.path().join("report.json")).unwrap()).unwrap();
    let number = |key: &str| report["rehearsal"][key].as_f64().unwrap();
    assert!(number("max_abs_error") > 0.0);
    assert!(number("max_abs_error") <= number("predicted_max_abs_error"));
    let built = run(&["build", "m.onnx", "-o", "m.fhebc", "--toy", "--no-check", "--report", "report.json"]);
    let message = String::from_utf8_lossy(&built.stderr);
    assert!(message.contains("note: not evaluated under encryption, as asked for"), "{message}");
    let report = std::fs::read_to_string(folder.path().join("report.json")).unwrap();
    assert!(!report.contains("rehearsal"), "{report}");
}
