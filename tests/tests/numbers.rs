//! A model that computes a number, and no class, shows it to who asks for scores, and to nobody else.

use std::fs;

use fhec_tests::binaries::output;
use fhec_tests::onnx::OnnxWriter;

#[test]
fn a_number_is_a_score() {
    let folder = tempfile::tempdir().unwrap();
    let mut w = OnnxWriter::new("number");
    let x = w.input("x", &[Some(1), Some(4)]);
    w.tensor("w", &[4, 4], &[0.3; 16]);
    w.tensor("v", &[4, 1], &[0.5; 4]);
    let y = w.node("MatMul", &[&x, "w"]);
    let y = w.node("Mul", &[&y, &y]);
    let y = w.node("MatMul", &[&y, "v"]);
    fs::write(folder.path().join("model.onnx"), w.finish(&y, &[Some(1), Some(1)])).unwrap();
    fs::write(folder.path().join("input.csv"), "1,0.5,0.5,0.1\n").unwrap();
    let said = |line: &str| {
        let output = output(folder.path(), line);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{line}: {error}");
        (String::from_utf8(output.stdout).unwrap(), error.into_owned())
    };
    said("fhec build model.onnx -o model.fhebc --toy --quiet");
    let infer = "fhe-run infer model.fhebc input.csv --insecure --quiet";
    let (text, _) = said(infer);
    assert_eq!(text.trim(), "input.csv: a number, which --scores shows rounded");
    let json = |line: &str| serde_json::from_str::<serde_json::Value>(&said(line).0).unwrap();
    let told = json(&format!("{infer} --format json"));
    assert_eq!(told["predictions"][0]["top"], serde_json::json!([]));
    assert!(told["predictions"][0].get("value").is_none() && told.get("warning").is_none(), "{told}");
    let (rows, _) = said(&format!("{infer} --format csv"));
    assert!(!rows.contains("value"), "{rows}");
    // (0.3 * 2.1)^2 * 0.5 * 4, rounded to a power of ten
    let asked = json(&format!("{infer} --format json --scores"));
    let value = asked["predictions"][0]["value"].as_f64().unwrap();
    assert!((value - 0.79).abs() < 0.3, "{value}");
    assert!(asked["warning"].as_str().unwrap().contains("give the secret key away"));
    let (rows, error) = said(&format!("{infer} --format csv --scores"));
    assert!(rows.contains("value") && error.contains("give the secret key away"), "{rows} {error}");
}
