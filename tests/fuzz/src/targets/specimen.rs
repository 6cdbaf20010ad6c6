//! Sound inputs that are small enough to be read many times a second.

use fhe_bytecode::codec::{DEFAULT_LIMIT, decode};
use fhe_bytecode::{CheckedProgram, Pool, TowerIdx};
use fhec::pipeline::LayoutChoice;
use fhec::{Model, Request, compile};
use fhec_ir::spec::GraphSpec;

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

/// One of the networks above.
///
/// # Panics
/// When the specification is not one of this file's.
pub(super) fn model(spec: &str) -> Model {
    let spec: GraphSpec = ron::from_str(spec).expect("a sound specification");
    Model::graph("specimen", spec.build().expect("a sound graph"))
}

/// A program in a ring of the given degree.
///
/// # Panics
/// When the specification is not one of this file's.
pub(super) fn program(spec: &str, layout: LayoutChoice, log_n: u32) -> CheckedProgram {
    compiled(vec![model(spec)], layout, log_n)
}

/// The golden program, with ports and tails, the same with its chain written as a pool, and one whose lower levels have a
/// smaller ring.
///
/// # Panics
/// When a golden file is none.
pub(super) fn golden() -> [CheckedProgram; 3] {
    let program =
        decode(include_bytes!("../../../golden/v3.fhebc"), DEFAULT_LIMIT).expect("a golden program");
    let mut spec = program.spec().clone();
    let n = spec.params.towers.len() as u16;
    let levels = (1..=n).map(|n| (0..n).map(TowerIdx).collect()).collect();
    spec.params.digit_size = 1;
    spec.params.pool = Some(Pool { levels, digits: vec![1; usize::from(n)] });
    [program, CheckedProgram::new(spec).expect("the same program"), rings()]
}

/// The golden program whose lower levels have a quarter of the ring.
///
/// # Panics
/// When the golden file is none.
pub(super) fn rings() -> CheckedProgram {
    decode(include_bytes!("../../../golden/rings.fhebc"), DEFAULT_LIMIT).expect("a golden program")
}

/// A program of four members.
///
/// # Panics
/// When the specification is not one of this file's.
pub(super) fn ensemble_program(spec: &str, layout: LayoutChoice, log_n: u32) -> CheckedProgram {
    compiled((0..4).map(|_| model(spec)).collect(), layout, log_n)
}

fn compiled(models: Vec<Model>, layout: LayoutChoice, log_n: u32) -> CheckedProgram {
    let (toy, log_n, precision) = (log_n < SMALLEST_SECURE, Some(log_n..=log_n), Some(6.0));
    let request = Request { models, layout, toy, log_n, precision, ..Request::default() };
    compile(&request, &mut ()).expect("a program of a small graph").built.program
}

/// The smallest ring that is used in earnest, as log2.
const SMALLEST_SECURE: u32 = 12;
