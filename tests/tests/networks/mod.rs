//! Small networks of every kind, as graphs with generated weights.
#![allow(dead_code, reason = "every test file uses its own part")]

use fhec::{Model, Request};
use fhec_ir::Graph;
use fhec_ir::spec::GraphSpec;

/// A ring degree that protects nothing, as log2.
pub(crate) const TOY_LOG_N: u32 = 11;

/// The graph of a list of nodes.
pub(crate) fn graph(nodes: &str) -> Graph {
    let spec: GraphSpec = ron::from_str(&format!("(nodes: [{nodes}])")).unwrap();
    spec.build().unwrap()
}

/// A request for a network in a ring that protects nothing.
pub(crate) fn toy_request(graph: Graph) -> Request {
    Request { toy: true, log_n: Some(TOY_LOG_N..=TOY_LOG_N), ..Request::new(Model::graph("network", graph)) }
}

/// Convolutions, pools and dense layers.
pub(crate) const LENET: &str = r#"
    (name: "x", op: Input(1, 12, 12)),
    (name: "c1", of: ["x"], op: Conv2d(weight: Between([4, 1, 3, 3], 1, -0.4, 0.4), bias: Some(Seed([4], 2)))),
    (name: "s1", of: ["c1"], op: Poly(Values([3, 1], [0.3, 0.5, 0.2]))),
    (name: "p1", of: ["s1"], op: Pool(kernel: (2, 2), stride: (2, 2), divisor: Some(4.0))),
    (name: "c2", of: ["p1"], op: Conv2d(weight: Between([6, 4, 3, 3], 3, -0.3, 0.3), bias: Some(Seed([6], 4)))),
    (name: "s2", of: ["c2"], op: Poly(Values([3, 1], [0.3, 0.5, 0.2]))),
    (name: "f", of: ["s2"], op: Flatten),
    (name: "d1", of: ["f"], op: Linear(weight: Between([12, 54], 5, -0.2, 0.2), bias: Some(Seed([12], 6)))),
    (name: "s3", of: ["d1"], op: Poly(Values([3, 1], [0.3, 0.5, 0.2]))),
    (name: "d2", of: ["s3"], op: Linear(weight: Between([5, 12], 7, -0.4, 0.4), bias: Some(Seed([5], 8)))),
    (name: "o", of: ["d2"], op: Output),
"#;

/// Shortcuts as they are and with a stride.
pub(crate) const RESNET: &str = r#"
    (name: "x", op: Input(3, 8, 8)),
    (name: "c0", of: ["x"], op: Conv2d(weight: Between([4, 3, 3, 3], 1, -0.3, 0.3), bias: Some(Seed([4], 2)), pads: (top: 1, left: 1, bottom: 1, right: 1))),
    (name: "s0", of: ["c0"], op: Poly(Values([3, 1], [0.3, 0.5, 0.2]))),
    (name: "c1", of: ["s0"], op: Conv2d(weight: Between([4, 4, 3, 3], 3, -0.2, 0.2), bias: Some(Seed([4], 4)), pads: (top: 1, left: 1, bottom: 1, right: 1))),
    (name: "s1", of: ["c1"], op: Poly(Values([3, 1], [0.3, 0.5, 0.2]))),
    (name: "c2", of: ["s1"], op: Conv2d(weight: Between([4, 4, 3, 3], 5, -0.2, 0.2), pads: (top: 1, left: 1, bottom: 1, right: 1))),
    (name: "a1", of: ["c2", "s0"], op: Add),
    (name: "s2", of: ["a1"], op: Poly(Values([3, 1], [0.3, 0.5, 0.2]))),
    (name: "c3", of: ["s2"], op: Conv2d(weight: Between([8, 4, 3, 3], 6, -0.2, 0.2), stride: (2, 2), pads: (top: 1, left: 1, bottom: 1, right: 1))),
    (name: "s3", of: ["c3"], op: Poly(Values([3, 1], [0.3, 0.5, 0.2]))),
    (name: "c4", of: ["s3"], op: Conv2d(weight: Between([8, 8, 3, 3], 7, -0.15, 0.15), pads: (top: 1, left: 1, bottom: 1, right: 1))),
    (name: "sl", of: ["s2"], op: Slice((start: (0, 0, 0), end: (4, 8, 8), step: (1, 2, 2)))),
    (name: "pd", of: ["sl"], op: Pad((before: (2, 0, 0), after: (2, 0, 0)))),
    (name: "a2", of: ["c4", "pd"], op: Add),
    (name: "s4", of: ["a2"], op: Poly(Values([3, 1], [0.3, 0.5, 0.2]))),
    (name: "p", of: ["s4"], op: Pool(kernel: (4, 4), stride: (4, 4), divisor: Some(16.0))),
    (name: "f", of: ["p"], op: Flatten),
    (name: "d", of: ["f"], op: Linear(weight: Between([5, 8], 9, -0.5, 0.5), bias: Some(Seed([5], 10)))),
    (name: "o", of: ["d"], op: Output),
"#;

/// A vector spread over an image by a kernel as large as the image, and a gate of one number per channel repeated over it.
pub(crate) const SPREAD: &str = r#"
    (name: "x", op: Input(6, 1, 1)),
    (name: "d", of: ["x"], op: Linear(weight: Between([5, 6], 1, -0.4, 0.4), bias: Some(Seed([5], 2)))),
    (name: "u", of: ["d"], op: Conv2d(weight: Between([2, 5, 3, 4], 3, -0.4, 0.4), pads: (top: 2, left: 3, bottom: 2, right: 3))),
    (name: "s", of: ["u"], op: Poly(Values([3, 1], [0.3, 0.5, 0.2]))),
    (name: "p", of: ["s"], op: Pool(kernel: (3, 4), stride: (3, 4), divisor: Some(12.0))),
    (name: "r", of: ["p"], op: Conv2d(weight: Values([2, 1, 3, 4], [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]), pads: (top: 2, left: 3, bottom: 2, right: 3), groups: 2)),
    (name: "m", of: ["s", "r"], op: Mul),
    (name: "c", of: ["m"], op: Conv2d(weight: Between([3, 2, 2, 2], 4, -0.4, 0.4))),
    (name: "f", of: ["c"], op: Flatten),
    (name: "e", of: ["f"], op: Linear(weight: Between([4, 18], 5, -0.3, 0.3))),
    (name: "o", of: ["e"], op: Output),
"#;

/// Normalizations and pools between stacked convolutions.
pub(crate) const VGG: &str = r#"
    (name: "x", op: Input(2, 8, 8)),
    (name: "c0", of: ["x"], op: Conv2d(weight: Between([4, 2, 3, 3], 1, -0.3, 0.3), bias: Some(Seed([4], 2)), pads: (top: 1, left: 1, bottom: 1, right: 1))),
    (name: "b0", of: ["c0"], op: BatchNorm(scale: Between([4], 3, 0.5, 1.0), shift: Between([4], 4, -0.3, 0.3))),
    (name: "s0", of: ["b0"], op: Poly(Values([3, 1], [0.3, 0.5, 0.2]))),
    (name: "p0", of: ["s0"], op: Pool(kernel: (2, 2), stride: (2, 2), divisor: Some(4.0))),
    (name: "c1", of: ["p0"], op: Conv2d(weight: Between([6, 4, 3, 3], 5, -0.3, 0.3), bias: Some(Seed([6], 6)), pads: (top: 1, left: 1, bottom: 1, right: 1))),
    (name: "s1", of: ["c1"], op: Poly(Values([3, 1], [0.3, 0.5, 0.2]))),
    (name: "c2", of: ["s1"], op: Conv2d(weight: Between([6, 6, 3, 3], 7, -0.2, 0.2), pads: (top: 1, left: 1, bottom: 1, right: 1))),
    (name: "s2", of: ["c2"], op: Poly(Values([3, 1], [0.3, 0.5, 0.2]))),
    (name: "p2", of: ["s2"], op: Pool(kernel: (2, 2), stride: (2, 2), divisor: Some(4.0))),
    (name: "f", of: ["p2"], op: Flatten),
    (name: "d0", of: ["f"], op: Linear(weight: Between([10, 24], 8, -0.3, 0.3), bias: Some(Seed([10], 9)))),
    (name: "s3", of: ["d0"], op: Poly(Values([3, 1], [0.3, 0.5, 0.2]))),
    (name: "d1", of: ["s3"], op: Linear(weight: Between([5, 10], 10, -0.4, 0.4), bias: Some(Seed([5], 11)))),
    (name: "o", of: ["d1"], op: Output),
"#;

/// Depthwise, pointwise, concatenated and sliced.
pub(crate) const BRANCHES: &str = r#"
    (name: "x", op: Input(3, 8, 8)),
    (name: "c0", of: ["x"], op: Conv2d(weight: Between([4, 3, 3, 3], 1, -0.3, 0.3), bias: Some(Seed([4], 2)), pads: (top: 1, left: 1, bottom: 1, right: 1))),
    (name: "s0", of: ["c0"], op: Poly(Values([3, 1], [0.3, 0.5, 0.2]))),
    (name: "dw", of: ["s0"], op: Conv2d(weight: Between([4, 1, 3, 3], 3, -0.4, 0.4), groups: 4, stride: (2, 2), pads: (top: 1, left: 1, bottom: 1, right: 1))),
    (name: "s1", of: ["dw"], op: Poly(Values([3, 1], [0.3, 0.5, 0.2]))),
    (name: "pw", of: ["s1"], op: Conv2d(weight: Between([4, 4, 1, 1], 4, -0.5, 0.5), bias: Some(Seed([4], 5)))),
    (name: "short", of: ["s0"], op: Conv2d(weight: Between([2, 4, 1, 1], 6, -0.5, 0.5), stride: (2, 2))),
    (name: "cat", of: ["pw", "short"], op: Concat),
    (name: "s2", of: ["cat"], op: Poly(Values([3, 1], [0.3, 0.5, 0.2]))),
    (name: "part", of: ["s2"], op: Slice((start: (1, 0, 0), end: (6, 4, 4), step: (1, 1, 1)))),
    (name: "c3", of: ["part"], op: Conv2d(weight: Between([4, 5, 3, 3], 7, -0.3, 0.3), pads: (top: 1, left: 1, bottom: 1, right: 1))),
    (name: "f", of: ["c3"], op: Flatten),
    (name: "d", of: ["f"], op: Linear(weight: Between([5, 64], 8, -0.2, 0.2), bias: Some(Seed([5], 9)))),
    (name: "o", of: ["d"], op: Output),
"#;
