//! Sound inputs that are small enough to be read many times a second.

use fhe_bytecode::CheckedProgram;
use fhec::emit::Labels;
use fhec::pipeline::{BuildOptions, LayoutChoice, build};
use fhec_ir::spec::GraphSpec;
use fhec_ir::{Graph, verify};
use fhec_passes::{Config, Manager, ManagerOptions, PassCx, pipeline};
use fhec_tests::onnx::{Attr, OnnxWriter};

/// A network with a convolution, squares, a pool, a residual join and a dense layer.
pub(super) const BRANCHED: &str = r#"(nodes: [
    (name: "x", op: Input(1, 4, 4)),
    (name: "c", of: ["x"], op: Conv2d(weight: Between([2, 1, 3, 3], 1, -0.4, 0.4), bias: Some(Seed([2], 2)), pads: (top: 1, left: 1, bottom: 1, right: 1))),
    (name: "s", of: ["c"], op: Poly(Values([3, 1], [0.3, 0.5, 0.2]))),
    (name: "d", of: ["s"], op: Conv2d(weight: Between([2, 2, 1, 1], 3, -0.3, 0.3))),
    (name: "a", of: ["d", "s"], op: Add),
    (name: "t", of: ["a"], op: Poly(Values([3, 1], [0.3, 0.5, 0.2]))),
    (name: "p", of: ["t"], op: Pool(kernel: (2, 2), stride: (2, 2), divisor: Some(4.0))),
    (name: "f", of: ["p"], op: Flatten),
    (name: "l", of: ["f"], op: Linear(weight: Between([3, 8], 7, -0.4, 0.4), bias: Some(Seed([3], 8)))),
    (name: "o", of: ["l"], op: Output),
])"#;

/// Two dense layers with a square between them.
pub(super) const DENSE: &str = r#"(nodes: [
    (name: "x", op: Input(4, 1, 1)),
    (name: "d", of: ["x"], op: Linear(weight: Between([3, 4], 5, -0.4, 0.4), bias: Some(Seed([3], 6)))),
    (name: "s", of: ["d"], op: Poly(Values([3, 1], [0.0, 0.0, 1.0]))),
    (name: "e", of: ["s"], op: Linear(weight: Between([2, 3], 7, -0.4, 0.4))),
    (name: "o", of: ["e"], op: Output),
])"#;

/// A graph after all passes.
///
/// # Panics
/// When the specification is not one of this file's.
pub(super) fn graph(spec: &str) -> Graph {
    let spec: GraphSpec = ron::from_str(spec).expect("a sound specification");
    let mut graph = spec.build().expect("a sound graph");
    let manager = Manager::new(pipeline(Config::ALL), ManagerOptions::default()).expect("the usual passes");
    manager.run(&mut graph, &mut PassCx::default()).expect("a graph the passes know");
    graph
}

/// A program in a ring as small as it goes.
///
/// # Panics
/// When the specification is not one of this file's.
pub(super) fn program(spec: &str, layout: LayoutChoice, log_n: u32) -> CheckedProgram {
    let graph = graph(spec);
    let options =
        BuildOptions { layout, log_n: log_n..=log_n, precision: 6.0..=6.0, ..BuildOptions::default() };
    let verified = verify(&graph).expect("a sound graph");
    build(verified, &options, Labels::default()).expect("a program of a small graph").program
}

/// A small ONNX network with most operators.
pub fn onnx_specimen() -> Vec<u8> {
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
