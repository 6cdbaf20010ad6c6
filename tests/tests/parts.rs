//! A model with several inputs, each encrypted by itself, as somebody with a command line does it.

use std::fs;
use std::path::{Path, PathBuf};

use fhec_tests::binaries::{output, succeed};
use serde_json::Value;

const MODEL: &str = "pt-image-and-facts";

fn zoo(ending: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../onnx-models/zoo").join(format!("{MODEL}.{ending}"))
}

fn rows(value: &Value) -> Vec<Vec<f64>> {
    let numbers = |row: &Value| row.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect();
    value.as_array().unwrap().iter().map(numbers).collect()
}

fn table(path: &Path, rows: &[Vec<f64>]) {
    let line = |row: &Vec<f64>| row.iter().map(f64::to_string).collect::<Vec<_>>().join(",");
    fs::write(path, rows.iter().map(line).collect::<Vec<_>>().join("\n")).unwrap();
}

/// A folder with the program, keys of two clients, and tables of the model's inputs; gives what the original runtime
/// answered.
fn prepared(folder: &Path) -> Vec<Vec<f64>> {
    fs::copy(zoo("onnx"), folder.join("model.onnx")).unwrap();
    let card: Value = serde_json::from_str(&fs::read_to_string(zoo("json")).unwrap()).unwrap();
    for name in ["x0", "x1"] {
        table(&folder.join(format!("{name}.csv")), &rows(&card["inputs"][name]["samples"]));
    }
    succeed(folder, "fhec build model.onnx -o model.fhebc -q");
    for key in ["me", "you"] {
        let keygen = format!("fhe-run keygen model.fhebc --secret-key {key}.key --eval-keys {key}.evk -q");
        succeed(folder, &keygen);
    }
    rows(&card["outputs"]["y"])
}

fn encrypt(folder: &Path, name: &str, index: &str, key: &str, to: &str) {
    let line = format!(
        "fhe-run encrypt model.fhei {name}.csv --model-input {name} --index {index} --secret-key {key}.key -o {to} -q"
    );
    succeed(folder, &line);
}

/// A command that must be refused, in these words.
fn refused(folder: &Path, line: &str, words: &str) {
    let output = output(folder, line);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{line}: {said}");
    assert!(said.contains(words) && said.contains("help: "), "{line}: {said}");
}

#[test]
fn inputs_that_are_encrypted_one_by_one_give_the_original_answers() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let answers = prepared(folder);
    encrypt(folder, "x0", "0..2", "me", "x0.ct");
    encrypt(folder, "x1", "0..2", "me", "x1.ct");
    succeed(folder, "fhe-run join model.fhei x1.ct x0.ct -o both.ct -q");
    succeed(folder, "fhe-run eval model.fhebc both.ct --eval-keys me.evk -o result.ct -q");
    let shown = succeed(
        folder,
        "fhe-run decrypt model.fhei result.ct --request both.ct --secret-key me.key --raw --format json -q",
    );
    let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
    let info = succeed(folder, "fhe-run info model.fhei --format json");
    let info: Value = serde_json::from_slice(&info.stdout).unwrap();
    let bound = info["claimed_max_abs_error"].as_f64().unwrap();
    let found = rows(&shown["scores"]);
    assert_eq!(found.len(), answers.len());
    for (found, answer) in found.iter().zip(&answers) {
        let off = found.iter().zip(answer).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(found.len() == answer.len() && off <= bound + 1e-4, "off by {off}, predicted {bound}");
    }

    // What is no whole input is not evaluated as one.
    let eval = |file: &str| format!("fhe-run eval model.fhebc {file} --eval-keys me.evk -o no.ct -q");
    refused(folder, &eval("x0.ct"), "holds one of several encrypted inputs");
    let join = |files: &str| format!("fhe-run join model.fhebc {files} -o no.ct -q");
    refused(folder, &join("x0.ct"), "no file has input x1");
    refused(folder, &join("x0.ct x1.ct x0.ct"), "has input x0, as one before it does");
    refused(folder, &join("x0.ct both.ct"), "is a whole input already");
    refused(folder, &join("x0.ct result.ct"), "is a result");
    encrypt(folder, "x1", "0", "me", "one.ct");
    refused(folder, &join("x0.ct one.ct"), "has 1 samples, and what is before it has 2");
    encrypt(folder, "x1", "0..2", "you", "yours.ct");
    refused(folder, &join("x0.ct yours.ct"), "belongs to key");
    let named = "fhe-run encrypt model.fhebc x0.csv --model-input x2 --secret-key me.key -o no.ct";
    refused(folder, named, "the model has no input x2: it has x0, x1");
    assert!(!folder.join("no.ct").exists());
}
