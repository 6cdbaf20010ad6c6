//! The client in a real browser (`tests/browser/page.mjs`), on the page that `cargo xtask web` wrote.

use std::path::{Path, PathBuf};

use fhec_tests::binaries::{binary, succeed};
use fhec_tests::browser::{Browser, root, skip};
use fhec_web::Client;
use serde_json::{Value, json};

/// The page, if it was built.
fn page() -> Option<PathBuf> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    let page = target.join("web");
    if page.join("fhec_web.wasm").is_file() {
        return page.canonicalize().ok();
    }
    skip("this test needs the client of a browser, which `cargo xtask web` builds");
    None
}

/// A program; the compiler writes its interface beside it.
fn build(folder: &Path, model: &str, name: &str, options: &str) {
    let model = root().join("onnx-models").join(model);
    let digits = root().join("examples/digits");
    let line = format!("fhec build {} -o {name}.fhebc --calibrate {}", model.display(), digits.display());
    succeed(folder, &format!("{line} --no-check {options}"));
}

fn settings(folder: &Path, page: &Path) -> Value {
    let binaries = binary("fhe-serve").parent().map(Path::to_path_buf);
    let digits = root().join("examples/digits").canonicalize().unwrap();
    json!({ "folder": folder, "page": page, "binaries": binaries, "digits": digits })
}

/// The evaluation keys of the key that the page exported, made here.
fn native_keys(folder: &Path) -> Vec<u8> {
    let read = |name: &str| std::fs::read(folder.join(name)).unwrap();
    let client = Client::new(&read("lenet.fhei"), Some(&read("page.key")), false).unwrap();
    let mut stream = client.evaluation_keys().unwrap();
    std::iter::from_fn(|| stream.next_bytes().unwrap()).flatten().collect()
}

#[test]
#[ignore = "needs Node and typescript; run with cargo xtask slow"]
fn the_types_are_those_of_the_client() {
    let Some(browser) = Browser::required() else { return };
    let (module, example) = (root().join("runtime/web/module"), root().join("docs/browser.md"));
    let [module, example] = [module, example].map(|path| path.canonicalize().unwrap());
    browser.run("types.mjs", &json!({ "module": module, "example": example }));
}

#[test]
#[ignore = "needs Chromium and `cargo xtask web`; run with cargo xtask slow"]
fn a_person_asks_with_the_page() {
    let (Some(browser), Some(page)) = (Browser::required(), page()) else { return };
    let folder = tempfile::tempdir().unwrap();
    build(folder.path(), "lenet-mnist-0.onnx", "lenet", "");
    build(folder.path(), "lenet-mnist-1.onnx", "other", "");
    build(folder.path(), "lenet-mnist-0.onnx", "toy", "--toy");
    browser.run("page.mjs", &settings(folder.path(), &page));
    // The same bits from both modules and from here.
    let native = native_keys(folder.path());
    for name in ["page.evk", "plain.evk"] {
        let made = std::fs::read(folder.path().join(name)).unwrap();
        assert!(made == native, "{name} has other bytes than the keys that are made here");
    }
}

/// `FHE_BENCH_PROGRAM` names another program than the LeNet.
#[test]
#[ignore = "measures: FHE_BENCH_PROGRAM=r20.fhebc cargo test --release --workspace --test page_browser -- --ignored --nocapture bench"]
fn bench_of_the_client() {
    let (Some(browser), Some(page)) = (Browser::required(), page()) else { return };
    let folder = tempfile::tempdir().unwrap();
    match std::env::var_os("FHE_BENCH_PROGRAM") {
        None => build(folder.path(), "lenet-mnist-0.onnx", "program", ""),
        Some(program) => {
            std::fs::copy(root().join(program), folder.path().join("program.fhebc")).unwrap();
            succeed(folder.path(), "fhec interface program.fhebc -o program.fhei");
        }
    }
    for is_plain in [false, true] {
        let mut settings = settings(folder.path(), &page);
        settings["plain"] = is_plain.into();
        browser.run("bench.mjs", &settings);
    }
}
