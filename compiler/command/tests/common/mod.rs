//! The real `fhec` binary in temporary folders, and models to give it.
#![allow(dead_code, reason = "every test file uses its own part")]

use std::path::Path;
use std::process::{Command, Output};

use fhec_tests::onnx::OnnxWriter;
use prost::Message as _;

/// A name that would do harm if it reached a page as it is.
pub(crate) const HOSTILE: &str =
    "</script><script>window.harm=1</script><img src=x onerror=\"window.harm=1\">'&";

/// Runs `fhec` in a folder.
pub(crate) fn fhec(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fhec")).args(args).current_dir(folder).output().expect("the binary runs")
}

/// Runs `fhec` and demands success.
pub(crate) fn fhec_does(folder: &Path, args: &[&str]) -> Output {
    let output = fhec(folder, args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

/// A file of the repository.
pub(crate) fn repository(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the workspace");
    root.join(path).display().to_string()
}

/// A dense layer and a square: two multiplications.
pub(crate) fn square_model() -> Vec<u8> {
    let mut w = OnnxWriter::new("square");
    let x = w.input("x", &[Some(1), Some(4)]);
    let weights: Vec<f32> = (0..16).map(|i| (i as f32 * 0.37).sin()).collect();
    let weights = w.tensor("weights", &[4, 4], &weights);
    let y = w.node("MatMul", &[&x, &weights]);
    let y = w.node("Mul", &[&y, &y]);
    w.finish(&y, &[Some(1), Some(4)])
}

/// Two dense layers, each with a square: four multiplications.
pub(crate) fn squares_model() -> Vec<u8> {
    let mut w = OnnxWriter::new("squares");
    let mut y = w.input("x", &[Some(1), Some(4)]);
    for name in ["first", "second"] {
        let weights: Vec<f32> = (0..16).map(|i| (i as f32 * 0.37).sin() * 0.5).collect();
        let weights = w.tensor(name, &[4, 4], &weights);
        y = w.node("MatMul", &[&y, &weights]);
        y = w.node("Mul", &[&y, &y]);
    }
    w.finish(&y, &[Some(1), Some(4)])
}

/// A small network with a skip, all of whose nodes have a hostile name.
pub(crate) fn hostile_model() -> Vec<u8> {
    let mut w = OnnxWriter::new(HOSTILE);
    let x = w.input("x", &[Some(1), Some(4)]);
    let weights: Vec<f32> = (0..16).map(|i| (i as f32 * 0.37).sin()).collect();
    let first = w.tensor("first", &[4, 4], &weights);
    let y = w.node("MatMul", &[&x, &first]);
    let y = w.node("Mul", &[&y, &y]);
    let second = w.tensor("second", &[4, 4], &weights);
    let z = w.node("MatMul", &[&y, &second]);
    let z = w.node("Add", &[&z, &y]);
    let mut model = w.finish_proto(&z, &[Some(1), Some(4)]);
    let graph = model.graph.as_mut().expect("a graph was written");
    for (i, node) in graph.node.iter_mut().enumerate() {
        node.name = format!("{HOSTILE}{i}");
    }
    model.encode_to_vec()
}
