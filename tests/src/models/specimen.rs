//! A network to be damaged.

use crate::onnx::{Attr, OnnxWriter};

/// A small ONNX network with most operators.
pub fn specimen() -> Vec<u8> {
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
