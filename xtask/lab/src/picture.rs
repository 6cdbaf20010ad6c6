//! The pictures of pages that the documents show: a report, and the client in a browser.

use std::io;

use fhec_tests::browser::Browser;
use serde_json::json;

use crate::workspace;

/// Size of the part of a report that is shown.
const SIZE: [u32; 2] = [1280, 2000];

/// Takes both pictures anew.
pub(crate) fn take() -> io::Result<()> {
    let missing = |what| io::Error::other(format!("the pictures need {what} (`.ci/browser` installs it)"));
    let browser = Browser::installed().map_err(missing)?;
    workspace::run("cargo", &["build", "--release", "--workspace", "--quiet"], &[])?;
    report(&browser)?;
    client(&browser)
}

/// The report of the ResNet-20 that is here.
fn report(browser: &Browser) -> io::Result<()> {
    let folder = tempfile::tempdir()?;
    let page = folder.path().join("report.html").display().to_string();
    workspace::run(
        "target/release/fhec",
        &["report", "onnx-models/resnet20-cifar10.onnx", "-o", &page],
        &[],
    )?;
    let settings = json!({
        "page": page,
        "picture": workspace::root().join("docs/report.png"),
        "width": SIZE[0],
        "height": SIZE[1],
    });
    browser.try_run("report_picture.mjs", &settings).map_err(io::Error::other)
}

/// The client after it was asked about a digit; `cargo xtask web` must have built it.
fn client(browser: &Browser) -> io::Result<()> {
    let (root, folder) = (workspace::root(), tempfile::tempdir()?);
    let program = folder.path().join("lenet.fhebc").display().to_string();
    let build = ["build", "onnx-models/lenet-mnist-0.onnx", "-o", &program, "--calibrate", "examples/digits"];
    workspace::run("target/release/fhec", &build, &[])?;
    let settings = json!({
        "folder": folder.path(),
        "page": root.join("target/web"),
        "binaries": root.join("target/release"),
        "digits": root.join("examples/digits"),
        "picture": root.join("docs/browser.png"),
    });
    browser.try_run("picture.mjs", &settings).map_err(io::Error::other)
}
