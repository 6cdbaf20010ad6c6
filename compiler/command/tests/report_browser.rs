//! The page of `fhec report` in a real browser (`tests/browser/report.mjs`).

mod common;

use std::path::{Path, PathBuf};

use common::{HOSTILE, fhec_does, hostile_model};
use fhec_tests::browser::Browser;
use fhec_tests::models::{Network, Spec, generate};
use serde_json::json;

/// The page of a model.
fn page_of(folder: &Path, model: &[u8], options: &[&str]) -> PathBuf {
    std::fs::write(folder.join("model.onnx"), model).unwrap();
    fhec_does(folder, &[&["report", "model.onnx", "-o", "report.html"], options].concat());
    folder.join("report.html")
}

#[test]
#[ignore = "needs Chromium and builds ResNet-20; run with cargo xtask slow"]
fn the_page_renders_and_answers_without_a_word_in_the_console() {
    let Some(browser) = Browser::required() else { return };
    let folder = tempfile::tempdir().unwrap();
    let page = page_of(folder.path(), &generate(&Spec::new(Network::Resnet20)), &[]);
    browser.run("report.mjs", &json!({ "page": page }));
}

#[test]
#[ignore = "needs Chromium; run with cargo xtask slow"]
fn hostile_names_do_nothing() {
    let Some(browser) = Browser::required() else { return };
    let folder = tempfile::tempdir().unwrap();
    let page = page_of(folder.path(), &hostile_model(), &["--toy"]);
    browser.run("report.mjs", &json!({ "page": page, "hostile": HOSTILE }));
}

#[test]
#[ignore = "needs Chromium; run with cargo xtask slow"]
fn the_first_screen_has_the_figures_on_a_phone_a_tablet_and_a_desk() {
    let Some(browser) = Browser::required() else { return };
    let folder = tempfile::tempdir().unwrap();
    let model = std::fs::read(common::repository("onnx-models/lenet-mnist-0.onnx")).unwrap();
    let page = page_of(folder.path(), &model, &["--calibrate", &common::repository("examples/digits")]);
    browser.run("widths.mjs", &json!({ "page": page }));
}
