//! `fhec report` as a command: what is on the page, and that nothing on it can act.

mod common;

use std::path::Path;

use common::{HOSTILE, fhec, fhec_does, hostile_model, repository};

/// The page about a model or program, written with further options.
fn page(folder: &Path, model: &str, options: &[&str]) -> String {
    fhec_does(folder, &[&["report", model, "-o", "report.html"], options].concat());
    std::fs::read_to_string(folder.join("report.html")).expect("the page was written")
}

#[test]
fn a_model_is_shown_before_and_after_every_pass_and_as_a_program() {
    let folder = tempfile::tempdir().unwrap();
    let html = page(folder.path(), &repository("onnx-models/lenet-mnist-0.onnx"), &[]);
    for stage in ["imported", "fuse", "redistribute", "equalize-channels", "program"] {
        assert!(html.contains(&format!(">{stage}</button>")), "{stage}");
    }
    assert_eq!(html.matches("<svg class=\"graph\"").count(), html.matches("<button role=\"tab\"").count());
    for part in [
        "batch norm",
        "square",
        "linear map",
        "modulus of the keys",
        "keep their class",
        "class=\"head\"",
        "Slots",
        "Noise",
        "stair-line",
        ">FRT<",
    ] {
        assert!(html.contains(part), "{part}");
    }
}

#[test]
fn a_program_file_tells_as_much_about_its_layers_as_the_build_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let model = repository("onnx-models/lenet-mnist-0.onnx");
    let layers = |html: &str| {
        let start = html.find("<section id=\"layers\"").expect("a section about layers");
        html[start..].to_owned()
    };
    let of_model = page(folder.path(), &model, &["--layout", "packed"]);
    fhec_does(folder.path(), &["build", &model, "-o", "lenet.fhebc", "--layout", "packed"]);
    let of_program = page(folder.path(), "lenet.fhebc", &[]);
    assert_eq!(layers(&of_model), layers(&of_program));
}

#[test]
fn the_page_refers_to_nothing_outside_itself() {
    let folder = tempfile::tempdir().unwrap();
    let html = page(folder.path(), &repository("onnx-models/lenet-mnist-0.onnx"), &[]);
    for reference in ["http:", "https:", "//cdn", "src=", "href=", "url(", "@import", "import("] {
        assert!(!html.contains(reference), "{reference}");
    }
}

#[test]
fn names_from_the_model_are_text_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let model = format!("{}.onnx", HOSTILE.replace('/', "_"));
    std::fs::write(folder.path().join(&model), hostile_model()).unwrap();
    let html = page(folder.path(), &model, &["--toy"]);
    assert!(html.contains("&lt;script&gt;window.harm=1"), "the names are shown");
    assert!(!html.contains("<script>window.harm") && !html.contains("<img"), "as text");
    assert_eq!(html.matches("<script").count(), 1);
}

#[test]
fn a_profile_is_shown_beside_the_predictions_and_must_be_of_this_program() {
    let folder = tempfile::tempdir().unwrap();
    let model = repository("onnx-models/lenet-mnist-0.onnx");
    fhec_does(folder.path(), &["build", &model, "-o", "lenet.fhebc"]);
    let inspected = fhec_does(folder.path(), &["inspect", "lenet.fhebc", "--format", "json"]);
    let program: serde_json::Value = serde_json::from_slice(&inspected.stdout).unwrap();
    let instructions = program["instructions"].as_array().expect("instructions");
    let event = |instruction: &serde_json::Value| {
        let layer = &program["layers"][instruction["layer"].as_u64().unwrap() as usize]["name"];
        let variant = instruction["op"].as_object().unwrap().keys().next().unwrap();
        let kebab = variant.chars().enumerate().fold(String::new(), |name, (i, c)| {
            let dash = if i > 0 && c.is_uppercase() { "-" } else { "" };
            format!("{name}{dash}{}", c.to_ascii_lowercase())
        });
        serde_json::json!({ "layer": layer, "operation": kebab, "seconds": 0.25, "resident_bytes": 77 << 20 })
    };
    let mut events: Vec<_> = instructions.iter().map(event).collect();
    let write = |events: &[serde_json::Value]| {
        let profile = serde_json::json!({ "total_seconds": 12.5, "events": events });
        std::fs::write(folder.path().join("profile.json"), profile.to_string()).unwrap();
    };
    write(&events);
    let html = page(folder.path(), "lenet.fhebc", &["--profile", "profile.json"]);
    for part in ["Time, measured", "12.5 s", "77.0 MiB", "m-line"] {
        assert!(html.contains(part), "{part}");
    }
    events.swap_remove(0);
    write(&events);
    let output =
        fhec(folder.path(), &["report", "lenet.fhebc", "-o", "other.html", "--profile", "profile.json"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("operations"));
    assert!(!folder.path().join("other.html").exists());
}
