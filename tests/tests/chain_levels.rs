//! The chain of a program has as many levels as `fhec levels` counts.

mod networks;

use fhe_bytecode::Level;
use fhec::levels::{LevelsOptions, analyze};
use fhec::pipeline::Built;
use fhec::{Request, compile};
use networks::{BRANCHES, LENET, RESNET, VGG, graph, toy_request};

/// What `fhec levels` counts with all passes and tower reuse, and the program of the same graph.
fn levels_and_program(nodes: &str, precision: f64) -> (u32, Built) {
    let graph = graph(nodes);
    let analysis = analyze("model", &graph, &LevelsOptions::default()).unwrap();
    let request = Request { precision: Some(precision), ..toy_request(graph) };
    let built = compile(&request, &mut ()).unwrap().built;
    (analysis.report.levels["FRT"], built)
}

fn n_levels(built: &Built) -> u32 {
    u32::from(built.program.params().max_level().0)
}

fn check(nodes: &str, expected: u32) {
    let (counted, built) = levels_and_program(nodes, 6.0);
    assert_eq!((counted, n_levels(&built)), (expected, expected), "{nodes}");
}

const CONV: &str = r#"
    (name: "x", op: Input(2, 6, 6)),
    (name: "c", of: ["x"], op: Conv2d(weight: Between([4, 2, 3, 3], 1, -0.4, 0.4), bias: Some(Seed([4], 2)), pads: (top: 1, left: 1, bottom: 1, right: 1))),
"#;

#[test]
fn networks_have_the_levels_that_are_counted() {
    for (nodes, expected) in [(LENET, 4), (RESNET, 6), (VGG, 5), (BRANCHES, 4)] {
        check(nodes, expected);
    }
}

#[test]
fn cubic_that_cannot_be_monic_has_the_levels_that_are_counted() {
    check(
        r#"(name: "x", op: Input(2, 6, 6)),
        (name: "q", of: ["x"], op: Poly(Values([4, 1], [0.1, 0.2, -0.3, 3.0]))),
        (name: "o", of: ["q"], op: Output),"#,
        2,
    );
}

#[test]
fn mean_without_padding_has_its_two_multiplications() {
    check(
        r#"(name: "x", op: Input(2, 6, 6)),
        (name: "q", of: ["x"], op: Poly(Values([3, 1], [0.0, 0.0, 1.0]))),
        (name: "p", of: ["q"], op: Pool(kernel: (3, 3), stride: (2, 2), pads: (top: 1, left: 1, bottom: 1, right: 1))),
        (name: "o", of: ["p"], op: Output),"#,
        2,
    );
}

#[test]
fn sum_of_windows_that_no_layer_reads_through_has_its_multiplication() {
    check(
        &format!(
            r#"{CONV}
            (name: "q", of: ["c"], op: Poly(Values([3, 1], [0.0, 0.0, 1.0]))),
            (name: "p", of: ["q"], op: Pool(kernel: (2, 2), stride: (2, 2), divisor: Some(1.0))),
            (name: "o", of: ["p"], op: Output),"#
        ),
        2,
    );
}

#[test]
fn slice_that_no_layer_reads_through_has_its_multiplication() {
    check(
        &format!(
            r#"{CONV}
            (name: "s", of: ["c"], op: Slice((start: (0, 0, 0), end: (4, 6, 6), step: (1, 2, 2)))),
            (name: "q", of: ["s"], op: Poly(Values([3, 1], [0.0, 0.0, 1.0]))),
            (name: "o", of: ["q"], op: Output),"#
        ),
        2,
    );
}

#[test]
fn level_that_one_prime_cannot_hold_has_two_towers() {
    let nodes =
        format!(r#"{CONV} (name: "q", of: ["c", "c"], op: Mul), (name: "o", of: ["q"], op: Output),"#);
    let (counted, built) = levels_and_program(&nodes, 20.0);
    assert_eq!((counted, built.positions().n_levels(), n_levels(&built)), (1, 1, 1));
    let params = built.program.params();
    assert!(params.log2_q_at(Level(1)) - params.log2_q_at(Level(0)) > 60.0, "one level of several towers");
}

#[test]
fn cubic_activations_have_the_levels_that_are_counted() {
    let nodes = format!(
        r#"{CONV} (name: "q", of: ["c"], op: Poly(Values([4, 1], [0.1, 0.5, 0.2, 0.1]))),
        (name: "f", of: ["q"], op: Flatten),
        (name: "d", of: ["f"], op: Linear(weight: Between([5, 144], 3, -0.2, 0.2))),
        (name: "o", of: ["d"], op: Output),"#
    );
    let (counted, built) = levels_and_program(&nodes, 6.0);
    assert_eq!((counted, built.positions().n_levels()), (2, 2));
}
