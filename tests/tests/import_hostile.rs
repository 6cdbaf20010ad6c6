//! Damaged, truncated and hostile files: an error, never a panic, a hang or a memory blow-up.

mod common;

use std::panic::catch_unwind;
use std::path::Path;
use std::time::{Duration, Instant};

use fhec::diagnostics::Diagnostic;
use fhec::import::{ImportError, ImportOptions, Imported, Oracle, import_bytes, import_file};
use fhec_tests::models::random::Random;
use fhec_tests::models::{Network, Spec, generate};
use fhec_tests::onnx::{Attr, OnnxWriter};
use prost::Message;
use tract_onnx::pb::ModelProto;

/// The longest any small file may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// A small network with most operators.
fn specimen() -> Vec<u8> {
    let mut w = OnnxWriter::new("specimen");
    let x = w.input("x", &[None, Some(2), Some(6), Some(6)]);
    let weight = w.tensor("w", &[4, 2, 3, 3], &[0.1; 72]);
    let y = w.node_with("Conv", &[&x, &weight], &[("pads", Attr::Ints(vec![1; 4])), ("group", Attr::Int(1))]);
    let parts = ["scale", "bias", "mean", "var"].map(|n| w.tensor(n, &[4], &[0.5; 4]));
    let y = w.node("BatchNormalization", &[&y, &parts[0], &parts[1], &parts[2], &parts[3]]);
    let (two, half) = (w.scalar(2.0), w.scalar(0.5));
    let square = w.node("Pow", &[&y, &two]);
    let linear = w.node("Mul", &[&half, &y]);
    let y = w.node("Add", &[&square, &linear]);
    let kernel = Attr::Ints(vec![2, 2]);
    let y = w.node_with("AveragePool", &[&y], &[("kernel_shape", kernel.clone()), ("strides", kernel)]);
    let (starts, ends, axes) = (w.ints("starts", &[0]), w.ints("ends", &[3]), w.ints("axes", &[1]));
    let z = w.node("Slice", &[&y, &starts, &ends, &axes]);
    let y = w.node_with("Concat", &[&y, &z], &[("axis", Attr::Int(1))]);
    let pads = w.ints("pads", &[0, 1, 0, 0, 0, 0, 0, 0]);
    let y = w.node("Pad", &[&y, &pads]);
    let shape = w.node("Shape", &[&y]);
    let first = w.ints("first", &[0]);
    let batch = w.node("Gather", &[&shape, &first]);
    let rest = w.ints("rest", &[-1]);
    let shape = w.node_with("Concat", &[&batch, &rest], &[("axis", Attr::Int(0))]);
    let y = w.node("Reshape", &[&y, &shape]);
    let (weight, bias) = (w.tensor("fc", &[72, 3], &[0.01; 216]), w.tensor("fcb", &[3], &[0.0; 3]));
    let y = w.node("MatMul", &[&y, &weight]);
    let y = w.node("Add", &[&y, &bias]);
    let y = w.node_with("Softmax", &[&y], &[("axis", Attr::Int(-1))]);
    w.finish(&y, &[None, Some(3)])
}

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

/// One random change: a byte, a run of bytes, an insertion, a removal, a truncation, or an integer made extreme.
fn mutate(bytes: &[u8], random: &mut Random) -> Vec<u8> {
    let mut mutated = bytes.to_vec();
    for _ in 0..=random.below(3) {
        let at = random.below(mutated.len().max(1));
        match random.below(7) {
            0 => mutated.truncate(at.max(1)),
            1 => {
                mutated.remove(at.min(mutated.len() - 1));
            }
            2 => mutated.insert(at, random.below(256) as u8),
            3 => {
                let end = (at + 1 + random.below(8)).min(mutated.len());
                mutated[at..end].fill(0xff);
            }
            4 => {
                let end = (at + 1 + random.below(64)).min(mutated.len());
                mutated[at..end].reverse();
            }
            5 => {
                let end = (at + random.below(40)).min(mutated.len());
                let copy = mutated[at..end].to_vec();
                mutated.splice(at..at, copy);
            }
            _ => mutated[at] = random.below(256) as u8,
        }
        if mutated.is_empty() {
            break;
        }
    }
    mutated
}

/// One random change of a field of the decoded message: extents, integers, names, operators.
fn mutate_message(proto: &ModelProto, random: &mut Random) -> Vec<u8> {
    const EXTREMES: [i64; 9] = [0, -1, 1, 2, 7, i64::MAX, i64::MIN, 1 << 31, 1 << 40];
    const OPS: [&str; 18] = [
        "Relu",
        "MaxPool",
        "Add",
        "Mul",
        "Gemm",
        "MatMul",
        "Reshape",
        "Transpose",
        "Concat",
        "Slice",
        "Pad",
        "Split",
        "Squeeze",
        "Expand",
        "ConstantOfShape",
        "Loop",
        "Sum",
        "Softmax",
    ];
    let mut proto = proto.clone();
    let Some(graph) = proto.graph.as_mut() else { return proto.encode_to_vec() };
    let extreme = EXTREMES[random.below(EXTREMES.len())];
    let node = random.below(graph.node.len().max(1));
    let tensor = random.below(graph.initializer.len().max(1));
    match random.below(9) {
        0 => {
            let dims = &mut graph.initializer[tensor].dims;
            let at = random.below(dims.len() + 1);
            if at < dims.len() { dims[at] = extreme } else { dims.push(extreme) }
        }
        1 => graph.initializer[tensor].data_type = random.below(25) as i32,
        2 => {
            let raw = &mut graph.initializer[tensor].raw_data;
            let keep = random.below(raw.len() + 1);
            raw.truncate(keep);
        }
        3 => {
            let raw = &mut graph.initializer[tensor].raw_data;
            raw.chunks_exact_mut(8).for_each(|c| c.copy_from_slice(&extreme.to_le_bytes()));
        }
        4 => graph.node[node].op_type = OPS[random.below(OPS.len())].into(),
        5 => {
            let n = graph.node[node].input.len();
            let at = random.below(n.max(1));
            if at < n && random.below(2) == 0 {
                graph.node[node].input.remove(at);
            } else {
                let other = graph.node[random.below(graph.node.len())].output[0].clone();
                let inputs = &mut graph.node[node].input;
                inputs.insert(at.min(inputs.len()), other);
            }
        }
        6 => {
            if let Some(attribute) = graph.node[node].attribute.first_mut() {
                attribute.i = extreme;
                attribute.ints.iter_mut().for_each(|v| *v = extreme);
            }
        }
        7 => {
            graph.node.remove(node);
        }
        _ => {
            let copy = graph.node[node].clone();
            graph.node.push(copy);
        }
    }
    proto.encode_to_vec()
}

fn mutations(n: usize, seed: u64) {
    let exporters = Path::new(env!("CARGO_MANIFEST_DIR")).join("../onnx-models/exporters");
    let file = |name: &str| std::fs::read(exporters.join(name)).expect("a fixture");
    let specimens = [
        specimen(),
        generate(&Spec::new(Network::Lenet).with_width(0.25)),
        file("keras-nhwc.onnx"),
        file("torch-dynamo.onnx"),
        file("sklearn-linear.onnx"),
    ];
    let protos: Vec<_> =
        specimens.iter().map(|b| ModelProto::decode(&b[..]).expect("a sound model")).collect();
    let mut random = Random::new(seed);
    for i in 0..n {
        let which = i % specimens.len();
        let bytes = if i % 2 == 0 {
            mutate(&specimens[which], &mut random)
        } else {
            mutate_message(&protos[which], &mut random)
        };
        let what = format!("mutation {i} of seed {seed}");
        // What got through the import may go to tract, whose panics must stay inside.
        if let Some(imported) = survive(&bytes, &what) {
            let oracle = catch_unwind(|| Oracle::from_bytes(&bytes, &imported).map(|_| ()));
            assert!(oracle.is_ok(), "{what}: a panic of the oracle got out");
        }
    }
}

#[test]
fn the_specimen_itself_imports() {
    common::check("specimen", specimen());
}

#[test]
fn a_thousand_mutations_do_not_panic_or_hang() {
    mutations(1000, 1);
}

#[test]
#[ignore = "ten thousand mutations; run with cargo xtask slow"]
fn ten_thousand_mutations_do_not_panic_or_hang() {
    mutations(10_000, 2);
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
