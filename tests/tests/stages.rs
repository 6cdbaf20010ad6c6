//! The text forms of the stages between graph and program. A changed snapshot is a changed program: its commit says why.

mod networks;

use std::path::Path;

use fhec::stages::StageKind;
use fhec::{Model, Request, compile};
use networks::{graph, toy_request};

const STAGES: [StageKind; 5] =
    [StageKind::Circuit, StageKind::Timed, StageKind::Placed, StageKind::Scheduled, StageKind::Program];

/// A block with a shortcut that changes extent, as in the middle of a residual network.
const BLOCK: &str = r#"
    (name: "x", op: Input(4, 8, 8)),
    (name: "c1", of: ["x"], op: Conv2d(weight: Between([4, 4, 3, 3], 1, -0.2, 0.2), bias: Some(Seed([4], 2)), pads: (top: 1, left: 1, bottom: 1, right: 1))),
    (name: "s1", of: ["c1"], op: Poly(Values([3, 1], [0.3, 0.5, 0.2]))),
    (name: "c2", of: ["s1"], op: Conv2d(weight: Between([4, 4, 3, 3], 3, -0.2, 0.2), pads: (top: 1, left: 1, bottom: 1, right: 1))),
    (name: "a1", of: ["c2", "x"], op: Add),
    (name: "s2", of: ["a1"], op: Poly(Values([3, 1], [0.3, 0.5, 0.2]))),
    (name: "c3", of: ["s2"], op: Conv2d(weight: Between([8, 4, 3, 3], 4, -0.2, 0.2), stride: (2, 2), pads: (top: 1, left: 1, bottom: 1, right: 1))),
    (name: "sc", of: ["s2"], op: Conv2d(weight: Between([8, 4, 1, 1], 5, -0.3, 0.3), stride: (2, 2))),
    (name: "s3", of: ["c3"], op: Poly(Values([3, 1], [0.3, 0.5, 0.2]))),
    (name: "c4", of: ["s3"], op: Conv2d(weight: Between([8, 8, 3, 3], 6, -0.15, 0.15), pads: (top: 1, left: 1, bottom: 1, right: 1))),
    (name: "a2", of: ["c4", "sc"], op: Add),
    (name: "o", of: ["a2"], op: Output),
"#;

fn snapshots(name: &str, request: &Request) {
    let built = compile(request, &mut ()).unwrap().built;
    for stage in STAGES {
        let text = built.text(stage);
        // Versions and ranges of made-up pictures say nothing about a stage.
        let lines = text.lines().filter(|line| !line.starts_with("the file claims:"));
        insta::assert_snapshot!(format!("{name}-{}", stage.name()), lines.collect::<Vec<_>>().join("\n"));
    }
}

#[test]
fn stages_of_lenet() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../onnx-models/lenet-mnist-0.onnx");
    snapshots("lenet", &Request::new(Model::file(&path).unwrap()));
}

#[test]
fn stages_of_a_residual_block() {
    snapshots("residual-block", &toy_request(graph(BLOCK)));
}
