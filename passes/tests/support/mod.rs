//! Networks as tensor graphs with seeded weights, and helpers to compare graphs.

#![allow(dead_code, unreachable_pub)]

pub mod nets;
pub mod random;

use fhec_ir::spec::Uniform;
use fhec_ir::{Graph, MemberIdx, evaluate};

/// Uniform numbers in [-1, 1).
pub fn random(seed: u64, n: usize) -> Vec<f64> {
    let mut stream = Uniform::new(seed);
    (0..n).map(|_| stream.between(-1.0, 1.0)).collect()
}

/// All outputs of a graph for seeded inputs.
pub fn outputs(graph: &Graph, seed: u64, member: MemberIdx) -> Vec<Vec<f64>> {
    let inputs: Vec<Vec<f64>> = graph
        .inputs()
        .iter()
        .enumerate()
        .map(|(i, &id)| random(seed + 1000 * i as u64, graph.shape(id).len()))
        .collect();
    let slices: Vec<&[f64]> = inputs.iter().map(Vec::as_slice).collect();
    evaluate(graph, &slices, member).unwrap().into_iter().map(|v| v.data).collect()
}

/// Largest difference of two output lists, relative to the largest output.
pub fn difference(a: &[Vec<f64>], b: &[Vec<f64>]) -> f64 {
    let flat = |v: &[Vec<f64>]| v.concat();
    let (a, b) = (flat(a), flat(b));
    assert_eq!(a.len(), b.len(), "the number of outputs changed");
    let range = a.iter().fold(f64::MIN_POSITIVE, |m, x| m.max(x.abs()));
    a.iter().zip(&b).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max) / range
}
