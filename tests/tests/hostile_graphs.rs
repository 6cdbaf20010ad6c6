//! Long, wide and knotted graphs in small files end soon: with their levels, or with a refusal that names the node, the limit and
//! a way out.

#[path = "common/stopwatch.rs"]
mod stopwatch;

use std::time::Duration;

use fhec::diagnostics::{Diagnostic, Words};
use fhec::import::{ImportOptions, import_bytes};
use fhec::levels::{LevelsOptions, analyze};
use fhec_tests::onnx::{Attr, OnnxWriter};
use stopwatch::Stopwatch;

/// The longest that any of these graphs may take, in processor time.
const PATIENCE: Duration = Duration::from_secs(20);

/// Nodes of the largest graphs that are optimized.
const LARGEST: usize = 2000;

/// A writer with an input of four numbers, a dense weight and two factors per channel: one without zeros, one with.
fn writer() -> (OnnxWriter, String) {
    let mut w = OnnxWriter::new("graph");
    let x = w.input("x", &[Some(1), Some(4)]);
    let weight: Vec<f32> = (0..16).map(|i| ((i * 7) % 5) as f32 * 0.2 - 0.4).collect();
    w.tensor("w", &[4, 4], &weight);
    w.tensor("c", &[4], &[0.5, 0.25, 2.0, 1.5]);
    w.tensor("z", &[4], &[0.5, 0.0, 2.0, 1e-9]);
    (w, x)
}

/// Repeats a step for `n` nodes of `per_step` each.
fn chain(n: usize, per_step: usize, step: impl Fn(&mut OnnxWriter, String) -> String) -> Vec<u8> {
    let (mut w, x) = writer();
    let y = (0..n / per_step).fold(x, |y, _| step(&mut w, y));
    w.finish(&y, &[Some(1), Some(4)])
}

fn squares(n: usize) -> Vec<u8> {
    chain(n, 1, |w, y| w.node("Mul", &[&y, &y]))
}

/// A product of `factor`·y and y, and y: a quadratic whose leading coefficients are the factor.
fn quadratics(n: usize, factor: &str) -> Vec<u8> {
    chain(n, 2, |w, y| {
        let z = w.node("Mul", &[&y, factor]);
        let z = w.node("Mul", &[&z, &y]);
        let z = w.node("Add", &[&z, &y]);
        w.node("MatMul", &[&z, "w"])
    })
}

/// Layers that all read one, each squared if that is asked for, and then put together.
fn fan(n: usize, squared: bool, together: impl Fn(&mut OnnxWriter, &[String]) -> String) -> Vec<u8> {
    let (mut w, x) = writer();
    let hub = w.node("MatMul", &[&x, "w"]);
    let arms: Vec<String> = (0..n)
        .map(|_| {
            let arm = w.node("MatMul", &[&hub, "w"]);
            if squared { w.node("Mul", &[&arm, &arm]) } else { arm }
        })
        .collect();
    let y = together(&mut w, &arms);
    w.finish(&y, &[])
}

/// Runs the passes in every configuration, as `fhec levels` does.
fn levels(name: &str, bytes: Vec<u8>) -> Duration {
    assert!(bytes.len() < 1 << 20, "{name}: {} bytes", bytes.len());
    let began = Stopwatch::start();
    let imported = import_bytes(bytes, &ImportOptions::default()).expect(name);
    analyze(name, &imported.graph, &LevelsOptions::default()).expect(name);
    let elapsed = began.elapsed();
    assert!(elapsed < PATIENCE, "{name}: {elapsed:?}");
    elapsed
}

#[test]
fn a_network_of_more_operations_than_can_be_optimized_is_refused() {
    let began = Stopwatch::start();
    let error = import_bytes(squares(20_000), &ImportOptions::default()).expect_err("too many");
    let shown = Diagnostic::import("model", &error).to_string();
    assert!(shown.contains("(Mul) is where the network has more than 2048 operations"), "{shown}");
    assert!(shown.contains("build it in parts"), "{shown}");
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
}

#[test]
fn operations_that_are_one_polynomial_count_once() {
    let sums = chain(20_000, 1, |w, y| w.node("Add", &[&y, "x"]));
    assert!(import_bytes(sums, &ImportOptions::default()).expect("a polynomial").graph.len() < 10);
}

#[test]
fn long_chains_end() {
    levels("squares", squares(LARGEST));
    levels("layers", chain(LARGEST, 1, |w, y| w.node("MatMul", &[&y, "w"])));
    let squared = |w: &mut OnnxWriter, y: String| {
        let y = w.node("MatMul", &[&y, "w"]);
        w.node("Mul", &[&y, &y])
    };
    levels("layers and squares", chain(LARGEST, 2, squared));
    levels(
        "residual blocks",
        chain(LARGEST, 3, |w, y| {
            let z = squared(w, y.clone());
            w.node("Add", &[&z, &y])
        }),
    );
}

#[test]
fn chains_of_quadratics_end() {
    levels("quadratics", quadratics(LARGEST, "c"));
    levels("quadratics that are linear in a channel", quadratics(LARGEST, "z"));
}

#[test]
fn fans_end() {
    let sum = |w: &mut OnnxWriter, arms: &[String]| {
        arms[1..].iter().fold(arms[0].clone(), |y, arm| w.node("Add", &[&y, arm]))
    };
    levels("a sum of layers", fan(LARGEST / 2, false, sum));
    levels("a sum of squares", fan(LARGEST / 3, true, sum));
    let product = |w: &mut OnnxWriter, arms: &[String]| {
        let mut level = arms.to_vec();
        while level.len() > 1 {
            level = level.chunks(2).map(|pair| w.node("Mul", &[&pair[0], &pair[pair.len() - 1]])).collect();
        }
        level[0].clone()
    };
    levels("a product of layers", fan(LARGEST / 2, false, product));
}

#[test]
fn wide_concatenations_end() {
    let concat = |w: &mut OnnxWriter, arms: &[String]| {
        let arms: Vec<&str> = arms.iter().map(String::as_str).collect();
        w.node_with("Concat", &arms, &[("axis", Attr::Int(1))])
    };
    levels("a concatenation of layers", fan(1000, false, concat));
    levels("a concatenation of squares", fan(1000, true, concat));
}

#[test]
fn ways_that_meet_again_are_gone_once() {
    // Every step reads the one before on two ways: 2^60 ways through the whole.
    let mut w = OnnxWriter::new("ways");
    let image = w.input("image", &[Some(1), Some(2), Some(8), Some(8)]);
    let kernel: Vec<f32> = (0..36).map(|i| (i as f32 * 0.7).sin() * 0.2).collect();
    w.tensor("k", &[2, 2, 3, 3], &kernel);
    w.tensor("q", &[2, 1, 1], &[0.5, 0.0]);
    let pads = ("pads", Attr::Ints(vec![1, 1, 1, 1]));
    let mut y = w.node_with("Conv", &[&image, "k"], std::slice::from_ref(&pads));
    for _ in 0..60 {
        let pool = |w: &mut OnnxWriter, y: &str, size: i64| {
            let ints = |n: i64| Attr::Ints(vec![n; 2]);
            let around = Attr::Ints(vec![size / 2; 4]);
            w.node_with(
                "AveragePool",
                &[y],
                &[("kernel_shape", ints(size)), ("pads", around), ("count_include_pad", Attr::Int(1))],
            )
        };
        let (a, b) = (pool(&mut w, &y, 3), pool(&mut w, &y, 5));
        y = w.node("Add", &[&a, &b]);
    }
    let square = w.node("Mul", &[&y, &y]);
    let square = w.node("Mul", &[&square, "q"]);
    let z = w.node("Add", &[&square, &y]);
    let z = w.node_with("Conv", &[&z, "k"], &[pads]);
    levels("pools that meet again", w.finish(&z, &[]));
}
