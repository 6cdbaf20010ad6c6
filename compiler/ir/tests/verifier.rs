//! One rejecting test per invariant of the verifier, and the printed form.

use fhec_ir::spec::{GraphSpec, NodeSpec, OpSpec, TensorSpec};
use fhec_ir::{Divisor, Graph, NodeId, Op, Pads, Pool, Shape, Tensor, ValueRange, verify};

/// input -> conv -> poly -> output.
fn small() -> (Graph, [NodeId; 4]) {
    let node = |name: &str, of: &[&str], op| NodeSpec {
        name: name.into(),
        of: of.iter().map(ToString::to_string).collect(),
        op,
    };
    let conv = OpSpec::Conv2d {
        weight: TensorSpec::Seed(vec![4, 3, 3, 3], 1),
        bias: None,
        stride: [1, 1],
        pads: Pads::same(1),
        dilation: [1, 1],
        groups: 1,
    };
    let poly = OpSpec::Poly(TensorSpec::Values(vec![3, 1], vec![0.5, 0.25, 2.0]));
    let nodes = vec![
        node("x", &[], OpSpec::Input(3, 8, 8)),
        node("conv", &["x"], conv),
        node("act", &["conv"], poly),
        node("y", &["act"], OpSpec::Output),
    ];
    let graph = GraphSpec { nodes }.build().unwrap();
    let ids: Vec<NodeId> = graph.ids().collect();
    (graph, [ids[0], ids[1], ids[2], ids[3]])
}

fn check(graph: &Graph, expected: &str) {
    let errors = verify(graph).expect_err("the graph is broken").to_string();
    assert!(errors.contains(expected), "`{errors}` does not say `{expected}`");
}

#[test]
fn sound_graph_passes_and_prints() {
    let (graph, _) = small();
    assert!(verify(&graph).is_ok());
    let text = graph.to_string();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "%0 = input : [3,8,8]");
    assert_eq!(lines[1], "%1 = conv2d %0, w0 {k=3x3, s=1, p=1} : [4,8,8]");
    assert_eq!(lines[2], "%2 = poly %1, w1 {c=(0.5 0.25 2)} : [4,8,8]");
    assert_eq!(lines[3], "%3 = output %2 : [4,8,8]");
    assert!(lines[4].starts_with("w0 : [4,3,3,3] f64 #"));
}

#[test]
fn missing_output_is_rejected() {
    check(&Graph::new(), "no output");
}

#[test]
fn cycle_is_rejected() {
    let (mut graph, [_, conv, act, _]) = small();
    graph.set_operand(conv, 0, act);
    check(&graph, "cycle");
}

#[test]
fn gap_in_operand_slots_is_rejected() {
    let (mut graph, [x, _, act, _]) = small();
    graph.set_operand(act, 3, x);
    check(&graph, "operand slots are [0, 3]");
}

#[test]
fn stale_shape_is_rejected() {
    let (mut graph, [_, conv, ..]) = small();
    graph.node_mut(conv).shape = Shape::new(4, 7, 8);
    check(&graph, "the shape is [4,7,8] but [4,8,8] follows");
}

#[test]
fn operand_that_does_not_fit_is_rejected() {
    let (mut graph, [x, _, act, _]) = small();
    graph.set_operand(act, 1, x);
    check(&graph, "poly takes 1 operand(s), not 2");
}

#[test]
fn constant_that_is_not_finite_is_rejected() {
    let (mut graph, [_, _, act, _]) = small();
    let value = graph.add_tensor(Tensor::scalar(f64::NAN));
    graph.set_op(act, Op::AddConst { value }, "test").unwrap();
    check(&graph, "is not finite at `%2 = add_const %1, w1 {v=NaN} : [4,8,8]`");
}

#[test]
fn constant_with_too_many_members_is_rejected() {
    let (mut graph, [_, _, act, _]) = small();
    let value = graph.add_member_tensors(vec![Tensor::scalar(1.0), Tensor::scalar(2.0)]);
    graph.set_op(act, Op::AddConst { value }, "test").unwrap();
    check(&graph, "has 2 values for 1 members");
}

#[test]
fn output_with_a_consumer_is_rejected() {
    let (mut graph, [_, _, _, y]) = small();
    graph.add(Op::Output, &[y], "again").unwrap();
    check(&graph, "an output has consumers");
}

#[test]
fn zero_divisor_is_rejected() {
    let (mut graph, [_, _, act, _]) = small();
    let pool = Pool { kernel: [1, 1], stride: [1, 1], pads: Pads::NONE, divisor: Divisor::Constant(0.0) };
    graph.set_op(act, Op::Pool(pool), "test").unwrap();
    check(&graph, "the divisor is 0");
}

#[test]
fn range_of_the_wrong_width_is_rejected() {
    let (mut graph, [_, conv, ..]) = small();
    graph.node_mut(conv).range = Some(ValueRange { lo: vec![0.0], hi: vec![1.0] });
    check(&graph, "range does not fit");
}
