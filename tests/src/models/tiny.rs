//! A network small enough for a ring of degree 32.

use crate::onnx::OnnxWriter;

/// Two dense layers with a square between them: four numbers in, two scores out. Another `scale` gives other weights.
pub fn tiny(scale: f32) -> Vec<u8> {
    let mut w = OnnxWriter::new("tiny");
    let x = w.input("x", &[None, Some(4)]);
    let weights = |n: usize| (0..n).map(|i| scale * ((i * 7 % 5) as f32 - 2.0) / 5.0).collect::<Vec<_>>();
    let first = w.tensor("first", &[4, 3], &weights(12));
    let second = w.tensor("second", &[3, 2], &weights(6));
    let y = w.node("MatMul", &[&x, &first]);
    let y = w.node("Mul", &[&y, &y]);
    let y = w.node("MatMul", &[&y, &second]);
    w.finish(&y, &[None, Some(2)])
}
