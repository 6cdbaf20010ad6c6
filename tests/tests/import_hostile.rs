//! Damaged, truncated and hostile files: an error, never a panic, a hang or a memory blow-up. Random changes are the
//! business of `cargo xtask fuzz`.

mod common;

use std::panic::catch_unwind;
use std::time::{Duration, Instant};

use fhec::diagnostics::Diagnostic;
use fhec::import::{ImportError, ImportOptions, Imported, import_bytes, import_file};
use fhec_tests::models::specimen::specimen;
use fhec_tests::onnx::OnnxWriter;
use prost::Message;
use tract_onnx::pb::ModelProto;

/// The longest any small file may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Imports bytes that may be anything; a panic or a long wait fails the test and says which mutation it was.
fn survive(bytes: &[u8], what: &str) -> Option<Imported> {
    let start = Instant::now();
    let accepted = match catch_unwind(|| import_bytes(bytes.to_vec(), &ImportOptions::default())) {
        Ok(Ok(imported)) => Some(imported),
        Ok(Err(ImportError::Verify(errors))) => panic!("{what}: an invalid graph got out: {errors}"),
        Ok(Err(error)) => {
            // Every error must be printable.
            assert!(!Diagnostic::import(what, &error).to_string().is_empty());
            None
        }
        Err(_) => panic!("{what}: panic"),
    };
    assert!(start.elapsed() < PATIENCE, "{what}: took {:?}", start.elapsed());
    accepted
}

#[test]
fn the_specimen_itself_imports() {
    common::check("specimen", specimen());
}

#[test]
fn every_truncation_is_an_error() {
    let bytes = specimen();
    for end in (0..bytes.len()).step_by(7) {
        survive(&bytes[..end], &format!("truncated to {end}"));
    }
}

fn message(bytes: Vec<u8>) -> String {
    import_bytes(bytes, &ImportOptions::default()).expect_err("a damaged model").to_string()
}

fn damaged(damage: impl FnOnce(&mut ModelProto)) -> String {
    let mut proto = ModelProto::decode(&specimen()[..]).expect("a sound model");
    damage(&mut proto);
    message(proto.encode_to_vec())
}

#[test]
fn damage_is_named() {
    let graph = |p: &mut ModelProto| p.graph.take().expect("a graph");
    let cases: [(&str, String); 8] = [
        ("has no graph", message(Vec::new())),
        ("protobuf does not decode", message(b"this is not a model".to_vec())),
        ("has no graph", damaged(|p| p.graph = None)),
        (
            "has 10 bytes of data for 72 elements of 4",
            damaged(|p| {
                let mut g = graph(p);
                g.initializer[0].raw_data.truncate(10);
                p.graph = Some(g);
            }),
        ),
        (
            "which nothing makes",
            damaged(|p| {
                let mut g = graph(p);
                g.node[0].input[0] = "ghost".into();
                p.graph = Some(g);
            }),
        ),
        (
            "has no weight",
            damaged(|p| {
                let mut g = graph(p);
                g.node[0].input.truncate(1);
                p.graph = Some(g);
            }),
        ),
        (
            "is made twice",
            damaged(|p| {
                let mut g = graph(p);
                let copy = g.node[0].clone();
                g.node.push(copy);
                p.graph = Some(g);
            }),
        ),
        (
            "cycle",
            damaged(|p| {
                let mut g = graph(p);
                let last = g.node[1].output[0].clone();
                g.node[0].input[0] = last;
                p.graph = Some(g);
            }),
        ),
    ];
    for (expected, found) in cases {
        assert!(found.contains(expected), "expected `{expected}` in `{found}`");
    }
}

#[test]
fn a_small_file_cannot_ask_for_a_large_memory() {
    let huge = |dims: &[i64]| {
        let mut w = OnnxWriter::new("huge");
        let x = w.input("x", &[None, Some(4)]);
        let dims = w.ints("dims", dims);
        let big = w.node("ConstantOfShape", &[&dims]);
        let y = w.node("Add", &[&x, &big]);
        message(w.finish(&y, &[]))
    };
    assert!(huge(&[1 << 40]).contains("one constant too many"));
    assert!(huge(&[1 << 20, 1 << 20, 1 << 30]).contains("one constant too many"));
    let mut w = OnnxWriter::new("wide");
    let x = w.input("x", &[None, Some(1 << 20), Some(1 << 20), Some(1 << 20)]);
    let y = w.node("Mul", &[&x, &x]);
    survive(&w.finish(&y, &[]), "a huge input");
}

#[test]
fn long_chains_are_fine() {
    let mut w = OnnxWriter::new("chain");
    let x = w.input("x", &[None, Some(4)]);
    let y = (0..20_000).fold(x.clone(), |y, _| w.node("Add", &[&y, &x]));
    survive(&w.finish(&y, &[]), "a chain of sums");
    let mut w = OnnxWriter::new("squares");
    let x = w.input("x", &[None, Some(4)]);
    let y = (0..500).fold(x, |y, _| w.node("Mul", &[&y, &y]));
    survive(&w.finish(&y, &[]), "a chain of squares");
}

#[test]
fn external_data_stays_in_the_models_folder() {
    use tract_onnx::pb::StringStringEntryProto;
    let folder = tempfile::tempdir().expect("a folder");
    let outside = folder.path().join("w.bin");
    std::fs::write(&outside, [0_u8; 288]).expect("a file");
    let inside = folder.path().join("model");
    std::fs::create_dir(&inside).expect("a folder");
    std::fs::write(inside.join("w.bin"), [0_u8; 288]).expect("a file");
    let with_location = |location: &str| {
        let mut proto = ModelProto::decode(&specimen()[..]).expect("a sound model");
        let tensor = &mut proto.graph.as_mut().expect("a graph").initializer[0];
        tensor.raw_data.clear();
        tensor.data_location = Some(1);
        tensor.external_data =
            vec![StringStringEntryProto { key: "location".into(), value: location.into() }];
        let path = inside.join("m.onnx");
        std::fs::write(&path, proto.encode_to_vec()).expect("a file");
        import_file(&path, &ImportOptions::default())
    };
    assert!(with_location("w.bin").is_ok());
    for location in ["../w.bin", outside.to_str().expect("a plain path")] {
        let error = with_location(location).expect_err("outside").to_string();
        assert!(error.contains("outside the model's folder"), "{error}");
    }
}
