//! The client in a real browser (`tests/browser/page.mjs`), on the page that `cargo xtask web` wrote.

use std::path::{Path, PathBuf};

use fhec_tests::binaries::{binary, succeed};
use fhec_tests::browser::{Browser, root, skip};
use fhec_web::Client;
use serde_json::{Value, json};

/// The modules of the client, from the fastest on.
const MODULES: [&str; 3] = ["fhec_web_relaxed.wasm", "fhec_web_simd.wasm", "fhec_web.wasm"];

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

/// Asserts that files of evaluation keys have the bytes that the secret key of a file gives here.
fn assert_native(folder: &Path, key: &str, made: &[impl AsRef<Path>]) {
    let read = |name: &Path| std::fs::read(folder.join(name)).unwrap();
    let client = Client::new(&read(Path::new("lenet.fhei")), Some(&read(Path::new(key))), false).unwrap();
    let mut stream = client.evaluation_keys().unwrap();
    let native: Vec<u8> = std::iter::from_fn(|| stream.next_bytes().unwrap()).flatten().collect();
    for name in made {
        let name = name.as_ref();
        assert!(read(name) == native, "{} has other bytes than the keys that are made here", name.display());
    }
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
    browser.run("page.mjs", &settings(folder.path(), &page));
    assert_native(folder.path(), "page.key", &["page.evk"]);
}

#[test]
#[ignore = "needs Chromium and `cargo xtask web`; run with cargo xtask slow"]
fn the_page_of_the_document_works_as_it_is_written() {
    let (Some(browser), Some(page)) = (Browser::required(), page()) else { return };
    let folder = tempfile::tempdir().unwrap();
    build(folder.path(), "lenet-mnist-0.onnx", "lenet", "");
    let mut settings = settings(folder.path(), &page);
    settings["example"] = json!(root().join("docs/browser.md").canonicalize().unwrap());
    browser.run("embed.mjs", &settings);
}

#[test]
#[ignore = "needs Chromium and `cargo xtask web`; run with cargo xtask slow"]
fn what_breaks_is_told_and_what_is_hostile_is_refused() {
    let (Some(browser), Some(page)) = (Browser::required(), page()) else { return };
    let folder = tempfile::tempdir().unwrap();
    build(folder.path(), "lenet-mnist-0.onnx", "lenet", "");
    build(folder.path(), "lenet-mnist-1.onnx", "other", "");
    build(folder.path(), "lenet-mnist-0.onnx", "toy", "--toy");
    browser.run("trouble.mjs", &settings(folder.path(), &page));
}

#[test]
#[ignore = "needs Chromium and `cargo xtask web`; run with cargo xtask slow"]
fn all_modules_give_the_same_bits() {
    let (Some(browser), Some(page)) = (Browser::required(), page()) else { return };
    let folder = tempfile::tempdir().unwrap();
    build(folder.path(), "lenet-mnist-0.onnx", "lenet", "");
    browser.run("modules.mjs", &settings(folder.path(), &page));
    let files: Vec<_> = MODULES.iter().chain(&["preferred"]).map(|module| format!("{module}.evk")).collect();
    assert_native(folder.path(), "module.key", &files);
}

/// `FHE_BENCH_PROGRAM` names another program than the LeNet, `FHE_BENCH_MODULE` a part of the name of the modules to try.
#[test]
#[ignore = "measures: FHE_BENCH_PROGRAM=r20.fhebc cargo test --release --workspace --test page_browser -- --ignored --nocapture bench"]
fn bench_of_the_client() {
    let (Some(browser), Some(page)) = (Browser::required(), page()) else { return };
    let folder = tempfile::tempdir().unwrap();
    match std::env::var_os("FHE_BENCH_PROGRAM") {
        None => build(folder.path(), "lenet-mnist-0.onnx", "program", ""),
        Some(program) => {
            std::fs::copy(root().join(program), folder.path().join("program.fhebc")).unwrap();
        }
    }
    let wanted = std::env::var("FHE_BENCH_MODULE").unwrap_or_default();
    for module in MODULES.into_iter().filter(|module| module.contains(&wanted)) {
        let mut settings = settings(folder.path(), &page);
        settings["module"] = module.into();
        settings["memory"] = "8GiB".into();
        browser.run("bench.mjs", &settings);
    }
}
