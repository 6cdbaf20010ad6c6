//! Real files of real exporters: each imports, and the graph gives the trainer's own answer.

use std::path::{Path, PathBuf};

use fhec::diagnostics::{Diagnostic, Words};
use fhec::fit::FitSpec;
use fhec::import::{ImportOptions, Imported, import_file};
use fhec::levels::{LevelsOptions, agreement, analyze};
use fhec_ir::{MemberIdx, evaluate};
use fhec_oracle::Oracle;

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../onnx-models/exporters").join(name)
}

fn import(name: &str, options: &ImportOptions) -> Imported {
    import_file(&file(name), options).unwrap_or_else(|e| panic!("{}", Diagnostic::import(name, &e)))
}

/// One input (in the model's order) and the trainer's output.
fn sample(name: &str) -> (Vec<f64>, Vec<f64>) {
    let text = std::fs::read_to_string(file(name)).expect("a sample beside the model");
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let numbers = |key: &str| -> Vec<f64> {
        json[key].as_array().expect("a list").iter().map(|v| v.as_f64().expect("a number")).collect()
    };
    (numbers("input"), numbers("output"))
}

fn softmax(scores: &[f64]) -> Vec<f64> {
    let top = scores.iter().fold(f64::MIN, |m, v| m.max(*v));
    let powers: Vec<f64> = scores.iter().map(|v| (v - top).exp()).collect();
    let sum: f64 = powers.iter().sum();
    powers.iter().map(|p| p / sum).collect()
}

/// Evaluates the imported graph, before and after all passes, on the sample.
fn check(stem: &str, has_softmax: bool) -> Imported {
    let imported = import(&format!("{stem}.onnx"), &ImportOptions::default());
    let (input, expected) = sample(&format!("{stem}.json"));
    // Invert the re-ordering: a graph input of its own positions tells where every number of the file goes.
    let info = &imported.inputs[0];
    let places = info.to_onnx_order(&(0..input.len()).map(|i| i as f64).collect::<Vec<_>>());
    let mut ordered = vec![0.0; input.len()];
    for (value, place) in input.iter().zip(&places) {
        ordered[*place as usize] = *value;
    }
    let optimized = analyze(stem, &imported.graph, &LevelsOptions { compare: 2, ..Default::default() });
    let optimized = optimized.unwrap_or_else(|e| panic!("{stem}: {e}")).graph;
    for graph in [&imported.graph, &optimized] {
        let scores = evaluate(graph, &[&ordered], MemberIdx::FIRST).expect("the sample fits")[0].data.clone();
        let found = if has_softmax { softmax(&scores) } else { scores };
        assert_eq!(found.len(), expected.len());
        for (f, e) in found.iter().zip(&expected) {
            assert!((f - e).abs() < 1e-4, "{stem}: {found:?} instead of {expected:?}");
        }
    }
    imported
}

fn check_with_tract(stem: &str, has_softmax: bool) {
    let imported = check(stem, has_softmax);
    let oracle =
        Oracle::from_file(&file(&format!("{stem}.onnx")), &imported).unwrap_or_else(|e| panic!("{e}"));
    let found = agreement(&imported.graph, &oracle, 5).unwrap_or_else(|e| panic!("{e}"));
    assert!(found.error < 1e-4, "{stem}: {}", found.error);
}

#[test]
fn torchscript_export_gives_pytorchs_answer() {
    check_with_tract("torch-script", false);
}

#[test]
fn dynamo_export_gives_pytorchs_answer() {
    check("torch-dynamo", false);
}

#[test]
fn keras_channels_last_export_gives_tensorflows_answer() {
    check_with_tract("keras-nhwc", true);
}

#[test]
fn scikit_learn_export_gives_its_own_probabilities() {
    // tract has no Scaler operator, so scikit-learn's answer is the only oracle here.
    check("sklearn-linear", true);
}

#[test]
fn scikit_learn_relu_is_refused_until_a_replacement_is_asked_for() {
    let refused = import_file(&file("sklearn-mlp.onnx"), &ImportOptions::default()).unwrap_err();
    insta::assert_snapshot!(Diagnostic::import("sklearn-mlp.onnx", &refused), @r"
    error: sklearn-mlp.onnx: 2 nodes of the model cannot be evaluated on encrypted data
      at 2 nodes (Relu): Relu, Relu1
        why:  ReLU is not a polynomial
        help: add `--approximate --calibrate IMAGES`, which fits a polynomial to every layer, or retrain with a polynomial activation
    ");
    let relu = Some(FitSpec { c: 6.0, ..FitSpec::default() });
    let options = ImportOptions { relu, ..ImportOptions::default() };
    let imported = import("sklearn-mlp.onnx", &options);
    assert!(imported.has_replacements());
    // The fit is coarse, but the class of an easy sample survives it.
    let (input, expected) = sample("sklearn-mlp.json");
    let scores =
        evaluate(&imported.graph, &[&input], MemberIdx::FIRST).expect("the sample fits")[0].data.clone();
    let top = |v: &[f64]| (0..v.len()).max_by(|&a, &b| v[a].total_cmp(&v[b]));
    assert_eq!(top(&scores), top(&expected));
}

#[test]
fn trained_models_bring_their_labels_and_preprocessing() {
    let imported = import("../lenet-pneumonia.onnx", &ImportOptions::default());
    assert_eq!(imported.labels, Some(vec!["normal".into(), "pneumonia".into()]));
    let preprocessing = imported.preprocessing.expect("mean and deviation");
    assert_eq!((preprocessing.mean, preprocessing.std), (vec![0.5719], vec![0.1684]));
}
