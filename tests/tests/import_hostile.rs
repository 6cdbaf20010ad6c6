//! Damaged, truncated and hostile files: an error, never a panic, a hang or a memory blow-up. Random changes are the
//! business of `cargo xtask fuzz`.

mod common;
#[path = "common/stopwatch.rs"]
mod stopwatch;

use std::panic::catch_unwind;
use std::time::Duration;

use fhec::diagnostics::{Diagnostic, Words};
use fhec::import::{ImportError, ImportOptions, Imported, import_bytes, import_file};
use fhec_onnx::ModelProto;
use fhec_tests::models::specimen::specimen;
use fhec_tests::onnx::OnnxWriter;
use prost::Message;
use stopwatch::Stopwatch;

/// The longest any small file may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Imports bytes that may be anything; a panic or a long wait fails the test and says which mutation it was.
fn survive(bytes: &[u8], what: &str) -> Option<Imported> {
    let start = Stopwatch::start();
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
    for dims in [vec![1 << 40], vec![1 << 20, 1 << 20, 1 << 30], vec![0, 1 << 50]] {
        let error = huge(&dims);
        assert!(error.contains("(ConstantOfShape) needs constants of"), "{error}");
    }
    let mut w = OnnxWriter::new("wide");
    let x = w.input("x", &[None, Some(1 << 20), Some(1 << 20), Some(1 << 20)]);
    let y = w.node("Mul", &[&x, &x]);
    survive(&w.finish(&y, &[]), "a huge input");
}

#[test]
fn a_tensor_without_elements_costs_nothing() {
    let started = Stopwatch::start();
    let mut w = OnnxWriter::new("empty");
    let x = w.input("x", &[None, Some(4)]);
    w.tensor("w", &[0, 1 << 50], &[]);
    let y = w.node("MatMul", &[&x, "w"]);
    let error = message(w.finish(&y, &[]));
    assert!(error.contains("tensor `w` has no elements, but extents of [0, 1125899906842624]"), "{error}");
    // The same extents from a reshape.
    let mut w = OnnxWriter::new("reshaped");
    let x = w.input("x", &[None, Some(4)]);
    w.tensor("w", &[0, 4], &[]);
    let shape = w.ints("shape", &[0, 1 << 50]);
    let reshaped = w.node("Reshape", &["w", &shape]);
    let y = w.node("MatMul", &[&x, &reshaped]);
    let error = message(w.finish(&y, &[]));
    assert!(error.contains("(Reshape) changes the number of elements"), "{error}");
    assert!(started.elapsed() < PATIENCE);
}

/// The specimen with the type of its first weight changed to strings, of which it then has so many.
fn with_strings(n: usize, dims: Vec<i64>) -> String {
    damaged(|p| {
        let tensor = &mut p.graph.as_mut().expect("a graph").initializer[0];
        tensor.data_type = 8;
        tensor.raw_data.clear();
        tensor.dims = dims;
        tensor.string_data = vec![b"0.5".to_vec(); n];
    })
}

#[test]
fn strings_are_no_numbers() {
    let error = with_strings(0, vec![1 << 40]);
    assert!(error.contains("has 0 strings for 1099511627776 elements"), "{error}");
    let error = with_strings(72, vec![4, 2, 3, 3]);
    assert!(error.contains("(Conv) reads strings where numbers are meant"), "{error}");
    let mut w = OnnxWriter::new("strings");
    let x = w.input("x", &[None, Some(4)]);
    w.tensor("w", &[4], &[0.5; 4]);
    let y = w.node("Add", &[&x, "w"]);
    let mut proto = ModelProto::decode(&w.finish(&y, &[])[..]).expect("a sound model");
    let tensor = &mut proto.graph.as_mut().expect("a graph").initializer[0];
    (tensor.data_type, tensor.raw_data, tensor.string_data) = (8, Vec::new(), vec![b"1".to_vec(); 4]);
    let error = message(proto.encode_to_vec());
    assert!(error.contains("(Add) reads strings where numbers are meant"), "{error}");
}

#[test]
fn constants_read_again_and_again_are_charged_for() {
    // One constant of the file meets ten thousand nodes; each of them would walk through all of it.
    let mut w = OnnxWriter::new("again");
    let x = w.input("x", &[None, Some(1), Some(512), Some(512)]);
    let values: Vec<f32> = (0..512 * 512).map(|i| i as f32).collect();
    w.tensor("w", &[512, 512], &values);
    let y = (0..10_000).fold(x, |y, _| w.node("Add", &[&y, "w"]));
    let started = Stopwatch::start();
    let error = message(w.finish(&y, &[]));
    assert!(error.contains("a model of this size may compute with"), "{error}");
    assert!(started.elapsed() < PATIENCE, "{:?}", started.elapsed());
}

#[test]
fn many_inputs_and_outputs_take_no_square_of_the_time() {
    let mut w = OnnxWriter::new("ends");
    let x = w.input("x", &[None, Some(4)]);
    let outputs: Vec<String> = (0..50_000).map(|_| w.node("Neg", &[&x])).collect();
    let mut proto = ModelProto::decode(&w.finish(&outputs[0], &[])[..]).expect("a sound model");
    let graph = proto.graph.as_mut().expect("a graph");
    let ends = outputs[1..]
        .iter()
        .map(|name| fhec_onnx::ValueInfoProto { name: name.clone(), ..graph.output[0].clone() });
    let ends: Vec<_> = ends.collect();
    graph.output.extend(ends);
    for i in 0..50_000 {
        let input = fhec_onnx::ValueInfoProto { name: format!("x{i}"), ..graph.input[0].clone() };
        graph.input.push(input);
    }
    survive(&proto.encode_to_vec(), "many inputs and outputs");
}

#[test]
fn names_reach_a_message_without_control_characters() {
    let hostile = "evil\u{1b}]0;title\u{7}\u{202e}\n";
    let proto = |change: &dyn Fn(&mut fhec_onnx::GraphProto)| {
        let mut proto = ModelProto::decode(&specimen()[..]).expect("a sound model");
        change(proto.graph.as_mut().expect("a graph"));
        proto.encode_to_vec()
    };
    let models = [
        proto(&|g| (g.node[0].name, g.node[0].op_type) = (hostile.into(), "Relu".into())),
        proto(&|g| g.node[0].op_type = hostile.into()),
        proto(&|g| g.node[0].domain = hostile.into()),
        proto(&|g| g.node[0].input[0] = hostile.into()),
        proto(&|g| {
            g.initializer[0].name = hostile.into();
            g.initializer[0].raw_data.truncate(3);
        }),
        proto(&|g| {
            g.initializer[0].data_location = Some(1);
            let entry =
                |key: &str| fhec_onnx::StringStringEntryProto { key: key.into(), value: hostile.into() };
            g.initializer[0].external_data = vec![entry("location")];
        }),
        proto(&|g| {
            let text = |name: &str| fhec_onnx::AttributeProto {
                name: name.into(),
                r#type: 3,
                s: hostile.into(),
                ..Default::default()
            };
            g.node[0].attribute.push(text("auto_pad"));
        }),
    ];
    for (i, bytes) in models.into_iter().enumerate() {
        let error = import_bytes(bytes, &ImportOptions::default()).expect_err("a damaged model");
        let shown = Diagnostic::import("model", &error).to_string();
        let obeyed = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!shown.contains(obeyed) && !shown.contains("title\n"), "{i}: {shown:?}");
    }
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
    use fhec_onnx::StringStringEntryProto;
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
    std::fs::create_dir(inside.join(".ssh")).expect("a folder");
    std::fs::write(inside.join(".ssh/id_x"), [0_u8; 288]).expect("a file");
    let outside = outside.to_str().expect("a plain path");
    for location in ["../w.bin", outside, ".ssh/id_x", "./w.bin"] {
        let error = with_location(location).expect_err("outside").to_string();
        assert!(error.contains("not the plain name of a file in the model's folder"), "{error}");
    }
    std::fs::write(inside.join(".w.bin"), [0_u8; 288]).expect("a file");
    #[cfg(unix)]
    std::os::unix::fs::symlink(outside, inside.join("link.bin")).expect("a link");
    for location in [".w.bin", "link.bin", ".ssh", "..", ""] {
        with_location(location).expect_err(location);
    }
}
