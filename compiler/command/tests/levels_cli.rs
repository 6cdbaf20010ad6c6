//! The real `fhec levels` binary on files in a temporary folder.

mod common;

use std::process::Output;

use common::fhec;
use fhec_tests::models::{Network, Spec, generate};
use fhec_tests::onnx::OnnxWriter;

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn folder_with_models() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for network in [Network::Lenet, Network::Resnet20] {
        let spec = Spec::new(network).with_width(0.125);
        std::fs::write(folder.path().join(spec.file_name()), generate(&spec)).expect("a file");
    }
    let mut w = OnnxWriter::new("relu");
    let x = w.input("x", &[None, Some(4), Some(4), Some(4)]);
    let y = w.node("Relu", &[&x]);
    let y = w.node_with("MaxPool", &[&y], &[("kernel_shape", fhec_tests::onnx::Attr::Ints(vec![2, 2]))]);
    let y = w.node("Tanh", &[&y]);
    std::fs::write(folder.path().join("relu.onnx"), w.finish(&y, &[])).expect("a file");
    folder
}

#[test]
fn json_is_a_list_with_one_object_per_model() {
    let folder = folder_with_models();
    let output = fhec(folder.path(), &["levels", "--format", "json", "lenet.onnx", "resnet20.onnx"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let json: serde_json::Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert_eq!(json.as_array().map(Vec::len), Some(2));
    assert_eq!(json[1]["model"], "resnet20.onnx");
    assert_eq!(json[1]["degree"], 2);
    let expected = serde_json::json!({"none": 78, "F": 59, "R": 39, "FR": 39, "FRT": 20});
    assert_eq!(json[1]["levels"], expected);
}

#[test]
fn every_format_shows_the_levels() {
    let folder = folder_with_models();
    for format in ["table", "json", "ron", "markdown"] {
        let output = fhec(folder.path(), &["levels", "--format", format, "resnet20.onnx"]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert!(stdout(&output).contains("78"), "{format}: {}", stdout(&output));
    }
}

#[test]
fn switches_take_passes_away() {
    let folder = folder_with_models();
    let levels = |args: &[&str]| {
        let output = fhec(folder.path(), &[&["levels", "--format", "json", "resnet20.onnx"], args].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let json: serde_json::Value = serde_json::from_str(&stdout(&output)).expect("JSON");
        ["none", "F", "R", "FR"].map(|name| json[0]["levels"][name].as_u64().expect("a number"))
    };
    assert_eq!(levels(&["--no-fuse", "--no-redistribute"]), [78, 78, 78, 78]);
    assert_eq!(levels(&["--no-redistribute"]), [78, 59, 78, 59]);
    assert_eq!(levels(&["--no-fuse"]), [78, 78, 39, 39]);
    assert_eq!(levels(&["--degree", "4"])[0], 97);
}

#[test]
fn the_graph_prints_and_stops_after_any_pass() {
    let folder = folder_with_models();
    let listed = stdout(&fhec(folder.path(), &["levels", "--list-passes"]));
    let first = listed.split_whitespace().next().expect("a pass").to_owned();
    let args = ["levels", "--print-after", &first, "--stop-after", &first, "--timings", "lenet.onnx"];
    let output = fhec(folder.path(), &args);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output);
    assert!(text.contains(&format!("lenet.onnx after {first}:")) && text.contains("= conv2d"), "{text}");
}

#[cfg(not(feature = "oracle"))]
#[test]
fn verify_without_the_oracle_is_refused_with_the_way_to_have_it() {
    let folder = folder_with_models();
    let output = fhec(folder.path(), &["levels", "--verify", "lenet.onnx"]);
    assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
    assert!(stderr(&output).contains("--features oracle"), "{}", stderr(&output));
}

#[cfg(feature = "oracle")]
#[test]
fn verify_compares_with_the_original_model() {
    let folder = folder_with_models();
    let output = fhec(folder.path(), &["levels", "--verify", "lenet.onnx"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).contains("verified: 5 random inputs"), "{}", stdout(&output));
}

#[test]
fn refusals_come_in_one_report_with_exit_code_one() {
    let folder = folder_with_models();
    let output = fhec(folder.path(), &["levels", "relu.onnx"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
    let text = stderr(&output);
    for expected in
        ["3 nodes of the model", "(Relu, [1, 4, 4, 4])", "(MaxPool, [1, 4, 3, 3])", "(Tanh", "help: "]
    {
        assert!(text.contains(expected), "{expected} is not in\n{text}");
    }
}

#[test]
fn a_replacement_is_reported_with_coefficients_and_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut w = OnnxWriter::new("relu");
    let x = w.input("x", &[None, Some(4)]);
    let y = w.node("Relu", &[&x]);
    std::fs::write(folder.path().join("relu.onnx"), w.finish(&y, &[])).expect("a file");
    let output = fhec(folder.path(), &["levels", "--relu", "quadratic,c=2,b=10", "relu.onnx"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stderr(&output);
    assert!(text.contains("ReLU on [-2, 2] replaced by") && text.contains("511/1024·x"), "{text}");
    assert!(text.contains("retraining is expected"), "{text}");
}

#[test]
fn wrong_usage_has_exit_code_two_and_missing_files_one() {
    let folder = folder_with_models();
    assert_eq!(fhec(folder.path(), &["levels"]).status.code(), Some(2));
    assert_eq!(fhec(folder.path(), &["levels", "--relu", "cubic", "lenet.onnx"]).status.code(), Some(2));
    assert_eq!(
        fhec(folder.path(), &["levels", "--print-after", "nothing", "lenet.onnx"]).status.code(),
        Some(2)
    );
    let missing = fhec(folder.path(), &["levels", "missing.onnx"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(stderr(&missing).contains("missing.onnx: cannot be read"), "{}", stderr(&missing));
}

#[test]
fn the_answer_comes_first_and_fits_a_terminal() {
    let folder = folder_with_models();
    let output = fhec(folder.path(), &["levels", "lenet.onnx", "--core-hour", "0.05"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output);
    let first = text.lines().next().unwrap_or_default();
    assert!(first.starts_with("lenet.onnx needs 5 levels (17 as imported)"), "{first}");
    assert!(
        first.contains("N = 2^") && text.contains("a client uploads") && text.contains("1000 images"),
        "{text}"
    );
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let long = stdout(&fhec(folder.path(), &["levels", "lenet.onnx", "--nodes", "--no-cost"]));
    assert!(long.contains("nodes of the last configuration") && !long.contains("N = 2^"), "{long}");
}
