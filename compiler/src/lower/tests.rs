//! Circuits compute what their graphs compute, with the same depth.

use fhec_ir::spec::GraphSpec;
use fhec_ir::{MemberIdx, cost, evaluate, verify};

use super::{Circuit, CircuitOp, Map, eval, lower};

/// Lowers a graph given in RON, compares results and depth, and hands out the circuit.
fn check(nodes: &str) -> Circuit {
    let spec: GraphSpec = ron::from_str(&format!("(nodes: [{nodes}])")).unwrap();
    let graph = spec.build().unwrap();
    let circuit = lower(verify(&graph).unwrap());
    let inputs: Vec<Vec<f64>> = graph
        .inputs()
        .iter()
        .enumerate()
        .map(|(i, &id)| {
            (0..graph.shape(id).len()).map(|j| ((i * 31 + j * 17) % 23) as f64 / 11.0 - 1.0).collect()
        })
        .collect();
    let given: Vec<&[f64]> = inputs.iter().map(Vec::as_slice).collect();
    let expected = evaluate(&graph, &given, MemberIdx::FIRST).unwrap();
    let trace = eval::trace(&circuit, &given, MemberIdx::FIRST);
    for (want, &id) in expected.iter().zip(&circuit.outputs) {
        let got = &trace.values[id.index()];
        assert_eq!(want.data.len(), got.len());
        let worst = want.data.iter().zip(got).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        let size = want.data.iter().fold(1.0, |m: f64, x| m.max(x.abs()));
        assert!(worst < 1e-9 * size, "off by {worst}");
    }
    let mut reached = vec![0; circuit.values.len()];
    for id in circuit.ids() {
        let sources = circuit.value(id).op.sources_with_depth();
        reached[id.index()] = sources.into_iter().map(|(s, d)| reached[s.index()] + d).max().unwrap_or(0);
    }
    let found = circuit.outputs.iter().map(|o| reached[o.index()]).max().unwrap_or(0);
    assert_eq!(found, cost::depths(&graph).total(), "depth");
    circuit
}

const CONV: &str = r#"
    (name: "x", op: Input(2, 6, 6)),
    (name: "c", of: ["x"], op: Conv2d(weight: Seed([4, 2, 3, 3], 1), bias: Some(Seed([4], 2)), pads: (top: 1, left: 1, bottom: 1, right: 1))),
"#;

#[test]
fn sum_of_convolution_and_shortcut_is_one_value() {
    let circuit = check(&format!(
        r#"{CONV}
        (name: "s", of: ["c"], op: Poly(Values([3, 1], [0.5, 0.0, 1.0]))),
        (name: "d", of: ["s"], op: Conv2d(weight: Seed([4, 4, 1, 1], 3))),
        (name: "a", of: ["d", "s"], op: Add),
        (name: "o", of: ["a"], op: Output),"#
    ));
    let CircuitOp::Affine(last) = &circuit.values.last().unwrap().op else { panic!("a sum") };
    assert!(matches!(last.terms[..], [_, _]) && matches!(last.terms[1].map, Map::Identity));
}

#[test]
fn shortcut_with_stride_and_padded_channels_is_a_map_of_size_one() {
    let circuit = check(&format!(
        r#"{CONV}
        (name: "d", of: ["c"], op: Conv2d(weight: Seed([8, 4, 3, 3], 3), stride: (2, 2), pads: (top: 1, left: 1, bottom: 1, right: 1))),
        (name: "l", of: ["c"], op: Slice((start: (0, 0, 0), end: (4, 6, 6), step: (1, 2, 2)))),
        (name: "p", of: ["l"], op: Pad((before: (2, 0, 0), after: (2, 0, 0)))),
        (name: "a", of: ["d", "p"], op: Add),
        (name: "o", of: ["a"], op: Output),"#
    ));
    assert_eq!(circuit.values.len(), 3);
}

#[test]
fn convolution_reads_through_a_concatenation() {
    let circuit = check(&format!(
        r#"{CONV}
        (name: "e", of: ["x"], op: Conv2d(weight: Seed([3, 2, 1, 1], 5))),
        (name: "k", of: ["c", "e"], op: Concat),
        (name: "q", of: ["k"], op: Poly(Values([3, 7], [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]))),
        (name: "d", of: ["q"], op: Conv2d(weight: Seed([7, 1, 3, 3], 7), groups: 7)),
        (name: "o", of: ["d"], op: Output),"#
    ));
    assert!(circuit.values.iter().any(|v| matches!(&v.op, CircuitOp::Affine(a) if a.terms.len() == 2)));
}

#[test]
fn slice_of_channels_costs_nothing_before_a_convolution() {
    check(&format!(
        r#"{CONV}
        (name: "l", of: ["c"], op: Slice((start: (1, 1, 0), end: (4, 6, 6), step: (2, 2, 3)))),
        (name: "d", of: ["l"], op: Conv2d(weight: Seed([3, 2, 2, 2], 3))),
        (name: "o", of: ["d"], op: Output),"#
    ));
}

#[test]
fn dense_layer_reads_a_flattened_pool() {
    let circuit = check(&format!(
        r#"{CONV}
        (name: "p", of: ["c"], op: Pool(kernel: (2, 2), stride: (2, 2), divisor: Some(1.0))),
        (name: "f", of: ["p"], op: Flatten),
        (name: "d", of: ["f"], op: Linear(weight: Seed([5, 36], 4), bias: Some(Seed([5], 8)))),
        (name: "o", of: ["d"], op: Output),"#
    ));
    assert_eq!(circuit.values.len(), 3);
}

#[test]
fn convolution_reads_through_a_pool() {
    let circuit = check(&format!(
        r#"{CONV}
        (name: "p", of: ["c"], op: Pool(kernel: (2, 2), stride: (2, 2), divisor: Some(1.0))),
        (name: "d", of: ["p"], op: Conv2d(weight: Seed([3, 4, 2, 2], 3), pads: (top: 1, left: 1, bottom: 0, right: 1))),
        (name: "o", of: ["d"], op: Output),"#
    ));
    assert_eq!(circuit.values.len(), 3);
}

#[test]
fn average_pooling_costs_one_multiplication() {
    check(&format!(
        r#"{CONV}
        (name: "p", of: ["c"], op: Pool(kernel: (3, 2), stride: (2, 2), divisor: Some(6.0))),
        (name: "o", of: ["p"], op: Output),"#
    ));
}

#[test]
fn quartic_with_all_coefficients_keeps_its_depth() {
    check(&format!(
        r#"{CONV}
        (name: "q", of: ["c"], op: Poly(Values([5, 1], [0.1, 0.2, -0.3, 0.4, 1.0]))),
        (name: "r", of: ["q"], op: Poly(Values([4, 1], [0.1, 0.2, -0.3, 1.0]))),
        (name: "o", of: ["r"], op: Output),"#
    ));
}

#[test]
fn bivariate_quadratic_keeps_its_depth() {
    check(&format!(
        r#"{CONV}
        (name: "e", of: ["x"], op: Conv2d(weight: Seed([4, 2, 1, 1], 5))),
        (name: "b", of: ["c", "e"], op: Bivar(Values([6, 1], [0.1, 0.2, 0.3, 1.0, 0.5, 0.6]))),
        (name: "o", of: ["b"], op: Output),"#
    ));
}

#[test]
fn batch_norm_scale_and_constant_keep_their_meaning_on_vectors() {
    check(&format!(
        r#"{CONV}
        (name: "f", of: ["c"], op: Flatten),
        (name: "n", of: ["f"], op: BatchNorm(scale: Seed([144], 3), shift: Seed([144], 4))),
        (name: "s", of: ["n"], op: Scale(Vector([2.0]))),
        (name: "a", of: ["s"], op: AddConst(Seed([144], 6))),
        (name: "m", of: ["a", "a"], op: Mul),
        (name: "o", of: ["m"], op: Output),"#
    ));
}

#[test]
fn gradients_agree_with_differences() {
    let circuit = check(&format!(
        r#"{CONV}
        (name: "s", of: ["c"], op: Poly(Values([3, 1], [0.5, 0.3, 1.0]))),
        (name: "p", of: ["s"], op: Pool(kernel: (2, 2), stride: (2, 2), divisor: Some(1.0))),
        (name: "d", of: ["p"], op: Conv2d(weight: Seed([3, 4, 2, 2], 3))),
        (name: "o", of: ["d"], op: Output),"#
    ));
    let x: Vec<f64> = (0..72).map(|i| f64::from(i * 5 % 7) / 7.0 - 0.4).collect();
    let output = |x: &[f64]| {
        let trace = eval::trace(&circuit, &[x], MemberIdx::FIRST);
        trace.values[circuit.outputs[0].index()].iter().sum::<f64>()
    };
    let trace = eval::trace(&circuit, &[&x], MemberIdx::FIRST);
    let n_out = trace.values[circuit.outputs[0].index()].len();
    let grads = eval::gradients(&circuit, &trace, &[vec![1.0; n_out]], MemberIdx::FIRST);
    for i in [0, 17, 40, 71] {
        let mut moved = x.clone();
        moved[i] += 1e-6;
        let difference = (output(&moved) - output(&x)) / 1e-6;
        assert!((difference - grads[0][0][i]).abs() < 1e-3, "{i}: {difference} against {}", grads[0][0][i]);
    }
}

/// Products and multiplications on the longest path of a polynomial of x.
fn polynomial(coeffs: &[f64]) -> (usize, u32) {
    let nodes = format!(
        r#"(name: "x", op: Input(1, 2, 2)), (name: "p", of: ["x"], op: Poly(Values([{}, 1], {coeffs:?}))),
        (name: "o", of: ["p"], op: Output)"#,
        coeffs.len()
    );
    let spec: GraphSpec = ron::from_str(&format!("(nodes: [{nodes}])")).unwrap();
    let circuit = lower(verify(&spec.build().unwrap()).unwrap());
    for x in [-1.3, 0.4, 2.0] {
        let result = eval::scores(&circuit, &[&[x; 4]])[0];
        let expected = coeffs.iter().rev().fold(0.0, |sum, c| sum * x + c);
        assert!((result - expected).abs() < 1e-5 * (1.0 + expected.abs()), "{result} instead of {expected}");
    }
    let is_product = |v: &&super::Value| matches!(v.op, CircuitOp::Product(_));
    let n_products = circuit.values.iter().filter(is_product).count();
    (n_products, crate::timed::Timed::new(circuit.into(), 1).positions().depth())
}

#[test]
fn polynomials_take_the_fewest_multiplications() {
    let coeffs = [0.5, -0.25, 0.75, 0.5, -1.5, 0.25, 0.5, 2.0, 0.125];
    let expected = [(1, 2), (2, 2), (3, 3), (4, 3), (4, 3), (5, 3), (6, 4)];
    for (degree, expected) in (2..=8).zip(expected) {
        assert_eq!(polynomial(&coeffs[..=degree]), expected, "degree {degree}");
    }
}

#[test]
fn monic_polynomials_save_a_multiplication_at_powers_of_two() {
    for (degree, depth) in [(2, 1), (3, 2), (4, 2), (5, 3), (8, 3)] {
        let mut coeffs = vec![0.5; degree];
        coeffs.push(1.0);
        assert_eq!(polynomial(&coeffs).1, depth, "degree {degree}");
    }
}
